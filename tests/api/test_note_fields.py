"""An optional field of a note is declared once for requests, once for rows, and everything else follows."""

import re
from dataclasses import fields
from importlib.resources import files
from inspect import signature

import pytest

from kb.api.document_models import Document
from kb.api.note_fields import OptionalFieldsReply, OptionalFieldsRequest
from kb.api.note_models import NoteRequest
from kb.api.search_models import SearchResult
from kb.exchange.export_lines import StateLine
from kb.store.rows import OPTIONAL_FIELDS, Hit
from kb.wording import OPTIONAL_FIELDS as WORDS
from kb_cli.commands.addnote import addnote
from kb_mcp.tools.documents import DocumentTools


@pytest.mark.parametrize(
    "known",
    [
        OptionalFieldsRequest.model_fields,
        OptionalFieldsReply.model_fields,
        NoteRequest.model_fields,
        Document.model_fields,
        SearchResult.model_fields,
        StateLine.model_fields,
        [field.name for field in fields(Hit)],
        WORDS,
        signature(addnote).parameters,
        signature(DocumentTools.kb_addnote).parameters,
    ],
    ids=("asked", "answered", "note", "document", "result", "exported", "hit", "words", "command", "tool"),
)
def test_every_place_knows_every_optional_field(known):
    assert set(OPTIONAL_FIELDS) <= set(known)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_both_stores_keep_every_optional_field_of_documents_versions_and_jobs(store):
    migrations = files(f"kb.store.{store}").joinpath("migrations").iterdir()
    text = "\n".join(path.read_text() for path in migrations if path.name.endswith(".sql"))
    for table in ("documents", "versions", "jobs"):
        tables = re.findall(rf"(?:CREATE|ALTER) TABLE {table}\b.*?;", text, re.DOTALL)
        assert all(re.search(rf"\b{name} text\b", "\n".join(tables), re.IGNORECASE) for name in OPTIONAL_FIELDS), table
