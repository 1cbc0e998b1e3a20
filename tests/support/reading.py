"""What a reader makes of a file, in which every character belongs to a section."""

from __future__ import annotations

from kb.formats.extract import extract


def read(data, name="file"):
    _, extracted = extract(data.encode() if isinstance(data, str) else data, name)
    assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
    return extracted


def reader(usual):
    """What reads a file that is called so unless a test says otherwise."""
    return lambda data, name=usual: read(data, name)


def sections(extracted):
    return [(section.heading, extracted.text[section.start : section.end]) for section in extracted.sections]
