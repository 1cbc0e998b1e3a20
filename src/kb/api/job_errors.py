"""How the errors of failed jobs are worded: the engine writes these phrases, and its clients know them again."""

from __future__ import annotations

from typing import Final, Literal

OF_ENGINE: Final = "The engine "
"""How the error begins of a job that failed for no reason of its content, which was kept."""
IN_BIN: Final = "The document that it came in is in the bin: it is read when that is restored."
NO_OCR: Final = "OCR is not done"
NO_SPEECH: Final = "speech is not read"
NO_VIDEO: Final = "videos are not read"
NO_DOC: Final = "install antiword or catdoc and start kb again, or save the file as .docx"
NO_PPT: Final = "install catdoc and start kb again, or save the file as .pptx"
NO_WPD: Final = "install libwpd-tools and start kb again, or save the file as .docx"

Remedy = Literal["retry", "extractor", "other-content"]
"""What helps a failed job: another try with the content that was kept, or a program beside the engine (`KB_EXTRACT`),
or nothing but other content."""


def remedy_for(error: str | None) -> Remedy:
    """Return what helps a job that failed with this error."""
    error = error or ""
    if error.startswith(OF_ENGINE) or error == IN_BIN:
        return "retry"
    needed = (NO_OCR, NO_SPEECH, NO_VIDEO, NO_DOC, NO_PPT, NO_WPD)
    return "extractor" if error.endswith(needed) else "other-content"
