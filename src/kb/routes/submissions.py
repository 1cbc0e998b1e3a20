"""The bodies of submissions: a note as JSON, or a file as a form."""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from kb.api.errors import Invalid
from kb.api.fields import WORD
from kb.api.job_models import FileRequest
from kb.api.limit_errors import check_note, check_tags, too_many_tags
from kb.api.limits import MAX_PATH, MAX_TAGS, MAX_TITLE
from kb.api.note_models import NoteRequest
from kb.api.tag_tree import split_tags
from kb.asgi.body_limits import MAX_FIELD, check_charset
from kb.routes.request_limits import JSON_LIMITS, too_many_values
from kb.settings import Settings

OTHER_FIELDS = len(FileRequest.model_fields) - 1
"""The number of fields of a form, without its tags and its file."""

_EMPTY_OR_WORD = rf"^$|{WORD}"
_FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "title": {"type": "string", "pattern": _EMPTY_OR_WORD, "maxLength": MAX_TITLE},
        "source_path": {"type": "string", "pattern": _EMPTY_OR_WORD, "maxLength": MAX_PATH},
        "tags": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^[^\x00-\x1f\x7f]*$"},
            "description": "Repeated fields, or one field with commas.",
        },
    },
}
BODIES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NoteRequest.model_json_schema()},
            "multipart/form-data": {"schema": _FORM},
        },
    }
}


def parse_note(body: bytes, settings: Settings) -> NoteRequest:
    """Return a note.

    Raises:
        RequestValidationError, Invalid, TooLarge: the body is not a note, or exceeds a limit.
    """
    if not JSON_LIMITS.fits(body):
        raise too_many_values()
    try:
        note = NoteRequest.model_validate_json(body)
    except ValidationError as error:
        _refuse(error)
    check_note(note.text, settings.max_note_chars)
    check_tags(tags=note.tags, thread=note.all_tags[len(note.tags) :])
    return note


@asynccontextmanager
async def read_form(request: Request, settings: Settings) -> AsyncIterator[FormData]:
    """Read a form. A large file is kept on disk.

    Raises:
        Invalid: the form has too many fields, a too large field, or is not in UTF-8.
    """
    check_charset(request.headers)
    limits = {"max_files": 1, "max_fields": OTHER_FIELDS + MAX_TAGS, "max_part_size": MAX_FIELD}
    try:
        form = await request.form(**limits)
    except HTTPException as error:
        if "number of fields" in error.detail:
            raise too_many_tags("tags") from None
        if "Part exceeded" in error.detail:
            raise Invalid(f"form: a field has at most {MAX_FIELD} bytes. Send the file as the part 'file'.") from None
        raise
    try:
        yield form
    finally:
        await form.close()


def parse_form(form: FormData, settings: Settings) -> tuple[UploadFile, FileRequest]:
    """Return the file of a form and its other fields.

    Raises:
        RequestValidationError, Invalid: a field is missing, unknown or wrong, or exceeds a limit.
    """
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Invalid("file: send the file in a form field named 'file'.")
    request = _file_request(form)
    # Blank fields are not tags, but they count towards the limit of fields.
    blanks = sum(map(_is_blank, form.getlist("tags")))
    check_tags(tags=[*request.tags, *[""] * blanks])
    return file, request


def basename(filename: str) -> str:
    """Return the name of a file without folders, even folders of Windows, and without the escapes of forms."""
    for escaped, character in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):
        filename = filename.replace(escaped, character)
    if re.match(r"[A-Za-z]:\\|\\\\", filename):
        filename = filename.replace("\\", "/")
    return filename.rpartition("/")[2]


def _file_request(form: FormData) -> FileRequest:
    if unknown := form.keys() - {"file", *FileRequest.model_fields}:
        raise Invalid(f"{min(unknown)}: unknown field. The fields are file, title, source_path and tags.")
    try:
        return FileRequest(
            title=_text(form.get("title")),
            source_path=_text(form.get("source_path")),
            tags=list(_split(form.getlist("tags"))),
        )
    except ValidationError as error:
        _refuse(error)


def _refuse(error: ValidationError) -> NoReturn:
    raise RequestValidationError(error.errors(include_url=False)) from None


def _split(tags: Iterable[UploadFile | str]) -> Iterable[str]:
    """Yield the tags from repeated fields and from fields with commas."""
    for field in tags:
        yield from split_tags(_text(field) or "")


def _is_blank(field: UploadFile | str) -> bool:
    return isinstance(field, str) and not field.strip()


def _text(field: UploadFile | str | None) -> str | None:
    if isinstance(field, UploadFile):
        raise Invalid("title, source_path, tags: send them as plain fields, not as files.")
    return field or None
