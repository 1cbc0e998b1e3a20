"""Forms of the pages as they are read: bounded, and of others no more than their beginning."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

from starlette.datastructures import FormData
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request

from kb.api.errors import Invalid
from kb.asgi.body_limits import MAX_FIELD, check_charset

Check = Callable[[object], None]

BYTES_OF_CHARACTER: Final = 4
"""The most that UTF-8 takes for one."""

OTHER_FIELDS: Final = 10
"""How many fields a form may have beside tags."""

MULTIPART: Final = "multipart/form-data"


async def read_form(request: Request, check: Check, *, fields: int, field: int = MAX_FIELD, files: int = 0) -> FormData:
    """Return the form that was sent.

    Args:
        request: the request.
        check: raises for a token that is not the page's. It is called with the first field as soon as that is read,
            and with nothing if that is another or none.
        fields: the most fields.
        field: the most bytes of each.
        files: the most files.

    Raises:
        Invalid: it is none, or goes over a limit.
    """
    check_charset(request.headers)
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == MULTIPART:
            return await _read_parts(request, check, max_fields=fields, max_part_size=field, max_files=files)
        parser = FormParser(request.headers, request.stream(), max_fields=fields, max_part_size=field)
        form = await parser.parse()
    except MultiPartException as error:
        too_large = f"a field has at most {field} bytes."
        raise Invalid(f"form: {too_large if 'maximum size' in error.message else error.message}") from None
    check(form.get("token"))
    return form


async def _read_parts(request: Request, check: Check, **limits: int) -> FormData:
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

    parser = MultiPartParser(request.headers, stream(), **limits)
    return await parser.parse()


def _first(parser: MultiPartParser) -> object:
    """Return the first field, if it is the token."""
    name, value = parser.items[0] if parser.items else ("", None)
    return value if name == "token" else None
