"""Forms of the pages as they are read: bounded, and of others no more than their beginning."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import FormData
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request

from kb.api.errors import Invalid
from kb.asgi.bodies import MAX_FIELD, check_charset

Check = Callable[[object], None]

BYTES_OF_CHARACTER: Final = 4
"""The most that UTF-8 takes for one."""

OTHER_FIELDS: Final = 10
"""How many fields a form may have beside tags."""

MULTIPART: Final = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class FormLimits:
    """What is read of a form.

    Args:
        fields: how many fields.
        field: how many bytes of each.
        files: how many files.
    """

    fields: int
    field: int = MAX_FIELD
    files: int = 0


async def read_form(request: Request, limits: FormLimits, check: Check) -> FormData:
    """Return the form that was sent.

    Args:
        request: the request.
        limits: what is read of it.
        check: raises for a token that is not the page's. It is called with the first field as soon as that is read,
            and with nothing if that is another or none.

    Raises:
        Invalid: it is none, or goes over a limit.
    """
    check_charset(request.headers)
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == MULTIPART:
            return await _read_parts(request, limits, check)
        parser = FormParser(request.headers, request.stream(), max_fields=limits.fields, max_part_size=limits.field)
        form = await parser.parse()
    except MultiPartException as error:
        too_large = f"a field has at most {limits.field} bytes."
        raise Invalid(f"form: {too_large if 'maximum size' in error.message else error.message}") from None
    check(form.get("token"))
    return form


async def _read_parts(request: Request, limits: FormLimits, check: Check) -> FormData:
    async def stream() -> AsyncGenerator[bytes]:
        received, is_checked = 0, False
        async for block in request.stream():
            yield block  # the parser takes it, and then asks for the next one
            received += len(block)
            if not is_checked and (parser.items or received > MAX_FIELD):
                check(_first(parser))
                is_checked = True
        if not is_checked:
            check(_first(parser))

    parser = MultiPartParser(
        request.headers,
        stream(),
        max_files=limits.files,
        max_fields=limits.fields,
        max_part_size=limits.field,
    )
    return await parser.parse()


def _first(parser: MultiPartParser) -> object:
    """Return the first field, if it is the token."""
    name, value = parser.items[0] if parser.items else ("", None)
    return value if name == "token" else None
