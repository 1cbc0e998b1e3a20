"""A reader's output for a file, with every character in a section."""

from __future__ import annotations

from kb.formats.extract import extract


def read(data, name="file"):
    _, extracted = extract(data.encode() if isinstance(data, str) else data, name)
    assert "".join(extracted.text[part.start : part.end] for part in extracted.sections) == extracted.text
    return extracted


def reader(usual):
    """The reader of a file with this name, unless a test names another."""
    return lambda data, name=usual: read(data, name)


def sections(extracted):
    return [(section.heading, extracted.text[section.start : section.end]) for section in extracted.sections]
