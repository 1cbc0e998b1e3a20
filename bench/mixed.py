"""Compare the ingestion of mixed documents with the embedder, in turn and in one run. Both make the same vectors.

    python -m bench.mixed [--json FILE] [NUMBER_OF_DOCUMENTS]      default: 9,679

The texts of all collections become notes, text, Markdown, HTML, mail and Word files, the same number of each. Eight
clients add them in several portions. After each portion, the embedder embeds the engine's chunks of it.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sqlite3
import sys
import tempfile
import time
from email.message import EmailMessage
from html import escape
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import docx

from bench.collection import collection
from bench.origin import Record
from bench.serving import CONNECTIONS, launched, open_model, until_done
from kb.client.client import EngineClient
from kb.ingest.chunk import Chunker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kb.embed.protocol import Embedder

    Document = dict[str, str]

COLLECTIONS: Final = ("scifact", "cranfield", "locomo_turns", "locomo_sessions")
PORTIONS: Final = 5
LEAST_KEPT: Final = 0.97
CHUNKS: Final = "SELECT id, header, text FROM source_texts WHERE id > ? ORDER BY id"


def markdown(title: str, text: str) -> bytes:
    """Return a Markdown file."""
    return f"# {title}\n\n{text}\n".encode()


def html(title: str, text: str) -> bytes:
    """Return a page."""
    body = f"<h1>{escape(title)}</h1><p>{escape(text)}</p>"
    return f"<!doctype html><html><head><title>{escape(title)}</title></head><body>{body}</body></html>".encode()


def mail(title: str, text: str) -> bytes:
    """Return a message."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = title, "anna@example.org", "ben@example.org"
    message.set_content(text)
    return message.as_bytes()


def word(title: str, text: str) -> bytes:
    """Return a Word file."""
    document, file = docx.Document(), io.BytesIO()
    document.add_heading(title)
    document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


MAKERS: Final[dict[str, Callable[[str, str], bytes] | None]] = {
    "note": None,
    "txt": lambda title, text: f"{title}\n\n{text}\n".encode(),
    "md": markdown,
    "html": html,
    "eml": mail,
    "docx": word,
}


def documents() -> Iterator[Document]:
    """Yield the documents of the collections, in turn."""
    shelves = [collection(name).documents.values() for name in COLLECTIONS]
    return (each for each in chain.from_iterable(zip_longest(*shelves)) if each and each["text"].strip())


def made(number: int, document: Document) -> tuple[str, str, str | bytes]:
    """Return a document's name, its title, and a note's text or a file's content."""
    kind = list(MAKERS)[number % len(MAKERS)]
    title, text, make = document.get("title") or f"Document {number}", document["text"], MAKERS[kind]
    return f"{number}.{kind}", title, make(title, text) if make else text


async def add(client: EngineClient, portion: Sequence[tuple[str, str, str | bytes]]) -> None:
    """Add documents from several connections, and wait until all are done."""
    todo = iter(portion)

    async def send() -> None:
        for name, title, content in todo:
            if isinstance(content, str):
                await client.add_note(title=title, text=content)
            else:
                await client.add_file(name, io.BytesIO(content), source_path=name)

    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
    await until_done(client)


def inputs(database: Path, last: int, chunker: Chunker) -> tuple[int, list[str]]:
    """Return the highest id, and the model's input for the chunks with ids above the last."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    rows = connection.execute(CHUNKS, (last,)).fetchall()
    connection.close()
    return rows[-1][0], [chunker.passage(header, text) for _, header, text in rows]


async def measure(url: str, database: Path, embedder: Embedder, count: int) -> dict[str, float]:
    """Print and return the engine's rate, and its share of the embedder's rate."""
    numbered = [made(*each) for each in enumerate(islice(documents(), count))]
    size, last, chunker = -(-len(numbered) // PORTIONS), 0, Chunker(embedder)
    engine = alone = 0.0
    chunks = 0
    async with EngineClient(url) as client:
        await add(client, [("", f"Warm {number}", f"It is note {number}.") for number in range(20)])
        last, _ = inputs(database, last, chunker)
        for start in range(0, len(numbered), size):
            begun = time.perf_counter()
            await add(client, numbered[start : start + size])
            engine += time.perf_counter() - begun
            last, texts = inputs(database, last, chunker)
            begun = time.perf_counter()
            embedder.embed_passages(texts)
            alone += time.perf_counter() - begun
            chunks += len(texts)
            print(f"{start + size} documents: engine {engine:.1f} s, embedder alone {alone:.1f} s", flush=True)
    print(f"{len(numbered)} documents, {chunks} chunks: {chunks / engine:.1f} a second, alone {chunks / alone:.1f}")
    print(f"  kept {alone / engine:.3f} (at least {LEAST_KEPT})")
    return {"passages per second": chunks / engine, "share of the model's rate": alone / engine}


def main() -> int:
    """Return 0 if the engine keeps enough of the embedder's rate."""
    parser = argparse.ArgumentParser(description="Measure the ingestion of mixed documents.")
    parser.add_argument("documents", metavar="DOCUMENTS", type=int, nargs="?")
    parser.add_argument("--json", type=Record)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        embedder = open_model(Path(scratch))
        command = [sys.executable, "-m", "kb_cli.main", "serve", "--data-dir", scratch]
        with launched(command) as server:
            found = asyncio.run(measure(server.url, Path(scratch) / "kb.db", embedder, arguments.documents))
    if arguments.json:
        arguments.json.save({"mixed documents": found})
    return int(found["share of the model's rate"] < LEAST_KEPT)


if __name__ == "__main__":
    sys.exit(main())
