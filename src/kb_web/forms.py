"""Read forms with size limits; for forms of other sites, read only the beginning."""

from collections.abc import AsyncGenerator, Callable
from typing import Final

from starlette.datastructures import FormData
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request

from kb.api.errors import Invalid
from kb.asgi.body_limits import MAX_FIELD, check_charset

Check = Callable[[object], None]

BYTES_OF_CHARACTER: Final = 4
"""Maximum number of bytes for a character in UTF-8."""

OTHER_FIELDS: Final = 10
"""Maximum number of fields in addition to tags."""

MULTIPART: Final = "multipart/form-data"


async def read_form(request: Request, check: Check, *, fields: int, field: int = MAX_FIELD, files: int = 0) -> FormData:
    """Return the submitted form.

    Args:
        check: raises for a token from another page. It is called with the first field as soon as that is read, and with
            None if the first field is not the token.
        fields: the maximum number of fields.
        field: the maximum size of a field in bytes.
        files: the maximum number of files.

    Raises:
        Invalid: it is not a form, or it exceeds a limit.
    """
    check_charset(request.headers)
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == MULTIPART:
            return await _read_parts(request, check, max_fields=fields, max_part_size=field, max_files=files)
        parser = FormParser(request.headers, request.stream(), max_fields=fields, max_part_size=field)
        form = await parser.parse()
    except MultiPartException as error:
        too_large = f"a field can have at most {field} bytes."
        raise Invalid(f"form: {too_large if 'maximum size' in error.message else error.message}") from None
    check(form.get("token"))
    return form


async def _read_parts(request: Request, check: Check, **limits: int) -> FormData:
    async def stream() -> AsyncGenerator[bytes]:
        received, is_checked = 0, False
        async for block in request.stream():
            yield block  # the parser processes it, then requests the next one
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
