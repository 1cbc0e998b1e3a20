"""Phrases in the errors of failed jobs, which the engine writes and its clients recognise."""

from typing import Final, Literal

OF_ENGINE: Final = "The engine "
"""The beginning of the error if the engine was the cause, not the content; kb kept the content."""
IN_BIN: Final = "The document that contains it is in the bin. kb reads it when you restore that document."
IN_BIN_BEFORE: Final = "The document that it came in is in the bin: it is read when that is restored."
"""The same in jobs and exports of earlier builds."""
NO_OCR: Final = "OCR is not done"
NO_SPEECH: Final = "speech is not read"
NO_VIDEO: Final = "videos are not read"
NO_DOC: Final = "install antiword or catdoc and start kb again, or save the file as .docx"
NO_PPT: Final = "install catdoc and start kb again, or save the file as .pptx"
NO_WPD: Final = "install libwpd-tools and start kb again, or save the file as .docx"

Remedy = Literal["retry", "extractor", "other-content"]
"""The remedy for a failed job: a retry with the kept content, an extractor (`KB_EXTRACTORS`), or other content."""


def remedy_for(error: str | None) -> Remedy:
    """Return the remedy for a job that failed with this error."""
    error = error or ""
    if error.startswith(OF_ENGINE) or error in (IN_BIN, IN_BIN_BEFORE):
        return "retry"
    needed = (NO_OCR, NO_SPEECH, NO_VIDEO, NO_DOC, NO_PPT, NO_WPD)
    return "extractor" if error.endswith(needed) else "other-content"
