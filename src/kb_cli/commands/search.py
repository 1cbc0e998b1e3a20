"""kb search."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import ask
from kb_cli.runtime.options import (
    After,
    AnyTag,
    Before,
    DocType,
    IdsOnly,
    Json,
    NoTag,
    SourcePath,
    Tags,
    Under,
    filters,
    some,
)

if TYPE_CHECKING:
    from rich.text import Text

EXCERPT_LINES = 3
INDENT = "    "
MORE = " …"
LEAD = 60
"""How many characters an excerpt shows before the first word that was looked for."""
WEB = ("http://", "https://")


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.")],
    top: Annotated[int, typer.Option("-n", "--top", metavar="N", min=1, help="How many passages at most.")] = 10,
    tags: Tags = None,
    any_tag: AnyTag = None,
    no_tag: NoTag = None,
    doc_type: DocType = None,
    path: SourcePath = None,
    under: Under = None,
    after: After = None,
    before: Before = None,
    documents: Annotated[bool, typer.Option("--documents", help="Each document once, with its best passage.")] = False,
    fts_only: Annotated[bool, typer.Option("--fts-only", help="Search by words alone.")] = False,
    vec_only: Annotated[bool, typer.Option("--vec-only", help="Search by meaning alone.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the file or page of the best result.")] = False,
    ids: IdsOnly = False,
    json: Json = False,
) -> int:
    """Find the passages that answer a query, best first. Tags must all match."""
    request = filters(path, under, after, before, doc_type) | {
        "query": " ".join(query),
        "top": top,
        "tags": some(tags),
        "tag_any": some(any_tag),
        "tag_not": some(no_tag),
        "fts_only": fts_only,
        "vec_only": vec_only,
        "group_by": "document" if documents else None,
    }
    answer = ask(lambda engine: engine.search(**request))
    if json:
        output.print_json(answer)
    elif ids:
        output.write("".join(f"{each}\n" for each in dict.fromkeys(hit["document_id"] for hit in answer["results"])))
    else:
        show(answer["results"])
    if not answer["results"]:
        if not json:
            output.complain(why_nothing(answer))
        return exits.NOTHING
    if open_:
        open_file(answer["results"][0])
    return exits.OK


def why_nothing(answer: dict[str, Any]) -> str:
    """That nothing was found, and whether it may only be a matter of waiting."""
    pending = answer.get("pending")
    return "nothing was found" + (f"; {pending} jobs are still on their way in" if pending else "")


def open_file(result: dict[str, Any]) -> None:
    """Open what a result is from with the program that this machine has for it.

    Raises:
        LocalError: it is not on this machine.
    """
    place = result["source_path"] or ""
    if not (place.startswith(WEB) or Path(place).is_file()):
        document_id = result["document_id"]
        where = f"{place} is not on this machine" if place else f"document {document_id} is no file"
        raise exits.LocalError(f"{where}: 'kb get {document_id}' shows its text.")
    if is_program(place):
        raise exits.LocalError(f"{place} is a program, and is not started from here.")
    if typer.launch(place):
        raise exits.LocalError(f"No program opens {place} here.")


def is_program(place: str) -> bool:
    """Whether opening it would start it: where documents say that they come from is others' word."""
    if os.name == "nt":
        return Path(place).suffix.upper() in os.environ.get("PATHEXT", "").upper().split(os.pathsep)
    return os.access(place, os.X_OK)


def show(results: list[dict[str, Any]]) -> None:
    """Print the passages for a person; what matches the query stands out."""
    for rank, result in enumerate(results, 1):
        output.write("\n" if rank > 1 else "")
        heading(rank, result)
        output.show(excerpt(result["text"], result.get("highlights", [])))


def heading(rank: int, result: dict[str, Any]) -> None:
    """Print which document a passage is from, where it stands there, and where that came from."""
    from rich.text import Text

    facts = [f"id {result['document_id']}", place(result["place"]), f"score {result['score']:.3f}"]
    more = [fact for fact in (result.get("date"), output.tags_of(result)) if fact]
    title = Text.assemble((f"{rank:>2}  ", "dim"), (output.one_line(result["title"]), "bold"))
    where = Text(output.one_line(" · ".join(facts + more)), style="cyan")
    output.show(title, indented(where) if output.is_terminal() else Text(INDENT) + where)
    if result["source_path"]:
        output.show(Text(INDENT) + output.fitting_path(result["source_path"], len(INDENT)))


def place(where: dict[str, Any]) -> str:
    """Where a passage stands, such as `page 3 / Methods / lines 10-14`."""
    page = [f"page {where['page']}"] if where["page"] else []
    first, last = where["line_start"], where["line_end"]
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return " / ".join([*page, *where["heading"], lines])


def excerpt(text: str, highlights: Sequence[Sequence[int]]) -> "Text":
    """A few lines of the text, from a little before its first highlight."""
    return indented(flat(text, highlights), EXCERPT_LINES)


def indented(text: "Text", most: int | None = None) -> "Text":
    """The text in lines of the terminal's width, indented; at most so many."""
    from rich.text import Text

    console = output.console_for_stdout()
    lines = text.wrap(console, max(console.width - len(INDENT) - len(MORE), 1))
    for line in lines:
        line.rstrip()
    if most is not None and len(lines) > most:
        lines[most - 1].append(MORE)
    return Text(INDENT) + Text(f"\n{INDENT}").join(lines[:most])


def flat(text: str, highlights: Sequence[Sequence[int]]) -> "Text":
    """The text in one line with its highlights, beginning a little before the first of them."""
    from rich.text import Text

    styled = Text(output.visible(text))
    for start, end in highlights:
        styled.stylize("bold red", start, end)
    words = list(re.finditer(r"\S+", styled.plain))
    first = next((start for start, _ in highlights), 0)
    begin = 0 if first <= LEAD else next((i for i, word in enumerate(words) if word.start() >= first - LEAD), 0)
    line = Text(" ").join(styled[word.start() : word.end()] for word in words[begin:])
    return Text("… ") + line if begin else line
