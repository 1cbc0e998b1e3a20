"""Detect databases of kb 2 by their tables; the names of the columns vary."""

from dataclasses import dataclass
from pathlib import Path

import apsw

from kb.api.errors import StoreError

TABLES = ("documents", "chunks", "tags", "document_tags", "jobs")
ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "documents": {
        "title": ("name", "filename"),
        "source_path": ("path", "file_path", "filepath", "source", "uri", "url"),
        "doc_type": ("type", "kind", "file_type"),
        "content_hash": ("hash", "file_hash", "sha256", "checksum"),
        "created_at": ("created", "added_at", "ingested_at", "indexed_at"),
    },
    "chunks": {
        "document_id": ("doc_id",),
        "chunk_index": ("position", "idx", "index", "seq", "ordinal", "chunk_number"),
        "text": ("content", "chunk_text", "body"),
        "page": ("page_number", "page_num"),
    },
    "tags": {"name": ("tag", "label")},
    "document_tags": {"document_id": ("doc_id",)},
}
"""Names of columns in version 2, by table and name in version 3."""

NEEDED = (("documents", "id"), ("chunks", "id"), ("chunks", "document_id"), ("chunks", "text"),
          ("tags", "id"), ("tags", "name"), ("document_tags", "document_id"), ("document_tags", "tag_id"),
          ("jobs", "id"), ("jobs", "status"))  # fmt: skip
"""Columns that a database of version 2 must have."""


@dataclass(frozen=True, slots=True)
class Column:
    """The declaration of a column."""

    name: str
    type: str
    not_null: bool
    default: str | None
    key: int

    @property
    def needed(self) -> bool:
        return self.not_null and self.default is None and not self.key

    @property
    def optional_definition(self) -> str:
        """A definition of the column that allows rows without a value."""
        return f'"{self.name}" {self.type}' + ("" if self.default is None else f" DEFAULT ({self.default})")


def has_its_tables(connection: apsw.Connection) -> bool:
    """Return whether the database has version 2."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    return names.issuperset((*TABLES, "chunks_fts", "chunks_vec")) and "generation" not in names


def check_columns(connection: apsw.Connection, path: Path) -> None:
    """Check for the columns that the migration needs.

    Raises:
        StoreError: a column is missing.
    """
    for table, column in NEEDED:
        present = read_columns(connection, table)
        if column not in present and not find_alias(table, column, present):
            raise StoreError(f"kb cannot migrate the database {path} from version 2: {table} has no column {column}.")


def read_columns(connection: apsw.Connection, table: str) -> dict[str, Column]:
    rows = connection.execute(f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_xinfo('{table}')")
    return {row[0].lower(): Column(row[0], row[1].upper(), bool(row[2]), row[3], row[4]) for row in rows}


def find_alias(table: str, column: str, present: dict[str, Column]) -> str | None:
    return next((name for name in ALIASES.get(table, {}).get(column, ()) if name in present), None)
