"""kb search."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.call import call
from kb_cli.runtime.options import Filters, IdsOnly, Json, with_filters

if TYPE_CHECKING:
    from rich.text import Text

EXCERPT_LINES = 3
INDENT = "    "
MORE = " …"
LEAD = 60
"""How many characters an excerpt shows before the first word that was looked for."""
URL_SCHEMES = ("http://", "https://")


@with_filters
def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.")],
    top: Annotated[int, typer.Option("-n", "--top", metavar="N", min=1, help="How many passages at most.")] = 10,
    *,
    filters: Filters,
    documents: Annotated[bool, typer.Option("--documents", help="Each document once, with its best passage.")] = False,
    fts_only: Annotated[bool, typer.Option("--fts-only", help="Search by words alone.")] = False,
    vec_only: Annotated[bool, typer.Option("--vec-only", help="Search by meaning alone.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare every vector: slower, and misses none.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the file or page of the best result.")] = False,
    ids: IdsOnly = False,
    json: Json = False,
) -> int:
    """Find the passages that answer a query, best first. Tags must all match."""
    request = filters.to_request("tags") | {
        "query": " ".join(query),
        "top": top,
        "fts_only": fts_only,
        "vec_only": vec_only,
        "exact": exact,
        "group_by": "document" if documents else None,
    }
    answer = call(lambda client: client.search(**request))
    report(answer, ids=ids, json=json)
    if not answer["results"]:
        return exit_codes.FAILURE
    if open_:
        open_source(answer["results"][0])
    return exit_codes.OK


def report(answer: dict[str, Any], *, ids: bool, json: bool) -> None:
    """Print what was found."""
    results = answer["results"]
    if json:
        output.print_json(answer)
    elif not results:
        output.print_error(explain_empty(answer))
    elif ids:
        output.write("".join(f"{each}\n" for each in dict.fromkeys(result["document_id"] for result in results)))
    else:
        print_results(results)


def explain_empty(answer: dict[str, Any]) -> str:
    """Say that nothing was found, and whether it may only be a matter of waiting."""
    pending = answer.get("pending")
    return "nothing was found" + (f"; {pending} jobs are still on their way in" if pending else "")


def open_source(result: dict[str, Any]) -> None:
    """Open what a result is from with the program that this machine has for it.

    Raises:
        LocalError: it is not on this machine, or is a program itself.
    """
    source = result["source_path"] or ""
    if not (source.startswith(URL_SCHEMES) or Path(source).is_file()):
        document_id = result["document_id"]
        reason = f"{source} is not on this machine" if source else f"document {document_id} is no file"
        raise exit_codes.LocalError(f"{reason}: 'kb get {document_id}' shows its text.")
    if is_program(source):
        raise exit_codes.LocalError(f"{source} is a program, and is not started from here.")
    if typer.launch(source):
        raise exit_codes.LocalError(f"No program opens {source} here.")


def is_program(path: str) -> bool:
    """Return whether opening it would start it: where documents say that they come from is others' word."""
    if os.name == "nt":
        return Path(path).suffix.upper() in os.environ.get("PATHEXT", "").upper().split(os.pathsep)
    return os.access(path, os.X_OK)


def print_results(results: list[dict[str, Any]]) -> None:
    """Print the passages for a person; what matches the query stands out."""
    for rank, result in enumerate(results, 1):
        output.write("\n" if rank > 1 else "")
        print_heading(rank, result)
        output.print_rich(excerpt(result["text"], result.get("highlights", [])))


def print_heading(rank: int, result: dict[str, Any]) -> None:
    """Print which document a passage is from, where it stands there, and where that came from."""
    from rich.text import Text

    facts = [f"id {result['document_id']}", format_place(result["place"]), f"score {result['score']:.3f}"]
    more = [fact for fact in (result.get("date"), output.format_tags(result)) if fact]
    title = Text.assemble((f"{rank:>2}  ", "dim"), (output.one_line(result["title"]), "bold"))
    where = Text(output.one_line(" · ".join(facts + more)), style="cyan")
    output.print_rich(title, indent(where) if output.is_terminal() else Text(INDENT) + where)
    if result["source_path"]:
        output.print_rich(Text(INDENT) + output.format_path(result["source_path"], len(INDENT)))


def format_place(place: dict[str, Any]) -> str:
    """Return where a passage stands, such as `page 3 / Methods / lines 10-14`."""
    page = [f"page {place['page']}"] if place["page"] else []
    first, last = place["line_start"], place["line_end"]
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return " / ".join([*page, *place["heading"], lines])


def excerpt(text: str, highlights: Sequence[Sequence[int]]) -> "Text":
    """Return a few lines of the text, from a little before its first highlight."""
    return indent(flatten(text, highlights), EXCERPT_LINES)


def indent(text: "Text", max_lines: int | None = None) -> "Text":
    """Return the text in lines of the terminal's width, indented."""
    from rich.text import Text

    console = output.console_for_stdout()
    lines = text.wrap(console, max(console.width - len(INDENT) - len(MORE), 1))
    for line in lines:
        line.rstrip()
    if max_lines is not None and len(lines) > max_lines:
        lines[max_lines - 1].append(MORE)
    return Text(INDENT) + Text(f"\n{INDENT}").join(lines[:max_lines])


def name_hidden(styled: "Text") -> "Text":
    """Show characters that nobody sees by their number; the styles of the others stay."""
    from rich.text import Text

    pieces, end = [], 0
    for match in output.HIDDEN.finditer(styled.plain):
        pieces += [styled[end : match.start()], Text(output.name_hidden(match[0]))]
        end = match.end()
    return Text().join([*pieces, styled[end:]])


def flatten(text: str, highlights: Sequence[Sequence[int]]) -> "Text":
    """Return the text in one line with its highlights, beginning a little before the first of them."""
    from rich.text import Text

    styled = Text(output.escape_controls(text))
    for start, end in highlights:
        styled.stylize("bold red", start, end)
    styled = name_hidden(styled)
    words = list(re.finditer(r"\S+", styled.plain))
    first = next((start for start, _ in highlights), 0)
    begin = 0 if first <= LEAD else next((i for i, word in enumerate(words) if word.start() >= first - LEAD), 0)
    line = Text(" ").join(styled[word.start() : word.end()] for word in words[begin:])
    return Text("… ") + line if begin else line
