"""kb search."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb_cli import exits, output
from kb_cli.options import DocType, Json, Tags, split
from kb_cli.run import ask

if TYPE_CHECKING:
    from rich.text import Text

EXCERPT_LINES = 3
INDENT = "    "
LEAD = 60
"""How many characters an excerpt shows before the first word that was looked for."""
SHORTEST_WORD = 3


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.")],
    top: Annotated[int, typer.Option("-n", "--top", min=1, help="How many passages at most.")] = 10,
    tags: Tags = None,
    doc_type: DocType = None,
    fts_only: Annotated[bool, typer.Option("--fts-only", help="Search by words alone.")] = False,
    vec_only: Annotated[bool, typer.Option("--vec-only", help="Search by meaning alone.")] = False,
    json: Json = False,
) -> int:
    """Find the passages that answer a query, best first. Tags must all match."""
    request = {"query": " ".join(query), "top": top, "tags": split(tags), "doc_type": doc_type}
    answer = ask(lambda engine: engine.search(**request, fts_only=fts_only, vec_only=vec_only))
    if json:
        output.print_json(answer)
    else:
        show(answer["results"], query)
    return exits.OK if answer["results"] else exits.NOTHING


def show(results: list[dict[str, Any]], query: list[str]) -> None:
    """Print the passages for a person; the words of the query stand out."""
    if not results:
        output.complain("nothing was found")
        return
    words = pattern(" ".join(query))
    for rank, result in enumerate(results, 1):
        output.write("\n" if rank > 1 else "")
        heading(rank, result)
        output.show(excerpt(result["text"], words))


def heading(rank: int, result: dict[str, Any]) -> None:
    """Print which document a passage is from, and where it stands there."""
    from rich.text import Text

    facts = [f"id {result['document_id']}", place(result["place"]), f"score {result['score']:.3f}"]
    tags = [output.tags_of(result)] if result["tags"] else []
    title = Text.assemble((f"{rank:>2}  ", "dim"), (output.one_line(result["title"]), "bold"))
    output.show(title, Text(INDENT + output.one_line(" · ".join(facts + tags)), style="cyan"))


def place(where: dict[str, Any]) -> str:
    """Where a passage stands, such as `page 3 / Methods / lines 10-14`."""
    page = [f"page {where['page']}"] if where["page"] else []
    first, last = where["line_start"], where["line_end"]
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return " / ".join([*page, *where["heading"], lines])


def pattern(query: str) -> re.Pattern[str]:
    """Finds the words of a query in a text. Short ones stand everywhere, and are left out if there are others."""
    words = re.findall(r"\w+", query)
    telling = [word for word in words if len(word) >= SHORTEST_WORD or not word.isascii()] or words
    either = "|".join(rf"\b{word}\b" if word.isascii() else re.escape(word) for word in telling)
    return re.compile(either or r"(?!)", re.IGNORECASE)


def excerpt(text: str, words: re.Pattern[str]) -> "Text":
    """A few lines of the text, from a little before it first says one of the words."""
    from rich.text import Text

    console = output.console_for_stdout()
    flat = Text(from_first(words, output.one_line(text)))
    lines = flat.wrap(console, max(console.width - len(INDENT), 1))
    for line in lines:
        line.rstrip()
    shown = Text("\n").join(lines[:EXCERPT_LINES])
    if len(lines) > EXCERPT_LINES:
        shown.append(" …")
    shown.highlight_regex(words, style="bold yellow")
    return Text(INDENT) + Text(f"\n{INDENT}").join(shown.split("\n"))


def from_first(words: re.Pattern[str], line: str) -> str:
    """The line from a little before the first of the words, beginning with a whole word."""
    found = words.search(line)
    if not found or found.start() <= LEAD:
        return line
    return "… " + line[line.find(" ", found.start() - LEAD, found.start()) + 1 or found.start() :]
