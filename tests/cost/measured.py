"""The operations whose work is counted, on a database that is the same everywhere."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, closing
from functools import partial
from multiprocessing import get_context

import httpx2
import numpy as np
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from bench.corpus import write_documents
from kb.app import create_app
from kb.asgi.subapps import AppContext
from kb.store import open as open_
from kb.store.default_space import DEFAULT_SPACE
from kb.store.sqlite.store import SqliteStore
from kb.store.sqlite.upkeep import Upkeep
from kb_mcp.app import create_app as create_gateway
from tests.support.counting import counted, counting

PASSAGES, EACH, WORDS, SENTENCE = 2_000, 10, 3_000, 12
QUERIES = 40
URL = "http://127.0.0.1"
MODES = {
    "keyword search": {"fts_only": True},
    "semantic search": {"vec_only": True},
    "hybrid search": {},
    "grouped search": {"group_by": "document"},
}
OPERATIONS = (*MODES, "search over MCP", "list documents", "add a note", "update a note", "kb --help")
HELP = "import sys; from kb_cli.main import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"


class Corpus:
    """Passages and queries of invented words, some of them frequent, with vectors composed of the words' vectors."""

    def __init__(self):
        self.chance = random.Random(11)
        letters = ("bcdfgklmnprst", "aeiou")
        self.words = [
            "".join(self.chance.choice(letters[at % 2]) for at in range(self.chance.randint(3, 9)))
            for _ in range(WORDS)
        ]
        self.frequencies = [1 / (rank + 5) for rank in range(WORDS)]
        self.vectors = np.random.default_rng(11).normal(size=(WORDS, DEFAULT_SPACE.dimensions)).astype(np.float32)

    def drawn(self, count):
        return self.chance.choices(range(WORDS), self.frequencies, k=count)

    def sentence(self, chosen):
        return " ".join(self.words[each] for each in chosen).capitalize() + "."

    def document(self):
        rows = [self.drawn(4 * SENTENCE) for _ in range(EACH)]
        texts = [
            " ".join(self.sentence(row[at : at + SENTENCE]) for at in range(0, len(row), SENTENCE)) for row in rows
        ]
        vectors = self.vectors[rows].sum(1)
        return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def query(self, number):
        """Return a query: words, one word, a phrase, a misspelt word, or a question."""
        words = [self.words[each] for each in self.drawn(4)]
        match number % 5:
            case 0:
                return words[0]
            case 1:
                return f'"{words[0]} {words[1]}" {words[2]}'
            case 2:
                return f"{words[0]}x {words[1]} {words[2]}"
            case 3:
                return f"what did the {words[0]} say about {' '.join(words[1:])}"
            case _:
                return " ".join(words)


def fill(database, corpus):
    """Write the passages."""
    with closing(SqliteStore(database, DEFAULT_SPACE)) as store:
        write_documents(store, (corpus.document() for _ in range(PASSAGES // EACH)))


def measure_apart(folder, environment):
    """Return the counts of each operation, from a process of its own: apps and a model would stay in a worker's memory."""
    with ProcessPoolExecutor(1, get_context("spawn")) as child:
        return child.submit(measure, folder, environment).result()


def measure(folder, environment):
    """Return the counts of each operation."""
    open_.START_SECONDS = 3600  # what the background thread has read would be a matter of luck
    corpus = Corpus()
    fill(folder / "kb.db", corpus)
    queries = [corpus.query(number) for number in range(QUERIES)]
    with counting():
        return asyncio.run(served(environment, queries)) | {"kb --help": Modules()}


async def served(environment, queries):
    """Return the counts of each operation of the apps."""
    engine = create_app(AppContext(environment))
    gateway = create_gateway(AppContext(environment, engine))
    async with AsyncExitStack() as stack:
        for app in (engine, gateway):
            await stack.enter_async_context(app.router.lifespan_context(app))
        Upkeep(engine.state.services.store).learn_terms()
        http = await stack.enter_async_context(reach(engine, base_url=f"{URL}/api/v1"))
        transport = StreamableHttpTransport(f"{URL}/mcp", httpx_client_factory=partial(reach, gateway))
        agent = await stack.enter_async_context(Client(transport))

        async def search(asked=queries, **options):
            for query in asked:
                (await http.post("search", json={"query": query, **options})).raise_for_status()

        async def change(number):
            (await http.patch("notes/7", json={"text": f"The harbour opens at {number}."})).raise_for_status()

        async def add(text):
            (await http.post("jobs", json={"text": text})).raise_for_status()

        async def list_():
            (await http.get("documents")).raise_for_status()

        async def ask():
            await agent.call_tool("kb_search", {"query": queries[4]})

        acts = {name: partial(search, **options) for name, options in MODES.items()}
        acts |= {"search over MCP": ask, "list documents": list_}
        acts |= {"update a note": partial(change, 2), "add a note": partial(add, "The ferry leaves at nine.")}
        await change(1)
        await add("The ferry leaves at ten.")
        await search()  # reads the words that are then kept in memory
        for options in MODES.values():
            await search(queries[:5], **options)
        await ask()
        await list_()
        found = {}
        for name, act in acts.items():
            with counted() as work:
                await act()
            found[name] = work
        return found


def reach(app, **options):
    """Return an HTTP client of an app in this process."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), **options)


class Modules:
    """The modules that `kb --help` imports."""

    def __init__(self):
        ended = subprocess.run([sys.executable, "-c", HELP, "--help"], capture_output=True, check=True, text=True)
        self.modules = ended.stderr.split()

    def counts(self):
        """Return the number of modules, also of Python's own, which differ a little between versions."""
        return {"modules": len(self.modules)}
