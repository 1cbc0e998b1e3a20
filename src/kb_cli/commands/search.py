"""kb search and kb similar."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any

from kb.api.errors import Invalid
from kb.api.limits import DEFAULT_TOP
from kb.api.search_wording import FEW, PROBABLY_NOT, end_of_exact, has_no_word, written
from kb.markdown.signs import MARKDOWN, replacements
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.last_search import highlight_line, remember
from kb_cli.runtime.open_files import open_source
from kb_cli.runtime.options import (
    EMPTY,
    FilterOptions,
    Id,
    IdsOnly,
    Json,
    argument,
    explain_nothing,
    option,
    with_options,
)
from kb_cli.runtime.terminal_styles import BOLD, CYAN, DIM, MATCH, Styled, width_of_terminal
from kb_cli.sync.folder_names import local_place

EXCERPT_LINES = 3
INDENT = "    "
MORE = " …"
LEAD = 60
"""The maximum number of characters in an excerpt before the first matching word."""
MOST_OF_DOCUMENT = 3
"""The number of passages of one document that a terminal shows; the others are counted."""
MOST_COPIES = 3


@with_options
def search(
    query: Annotated[list[str], argument("QUERY", "Words or a question.")],
    top: Annotated[int | None, option("-n --top N", "The maximum number of passages, 10 by default.", min=1)] = None,
    *,
    filters: FilterOptions,
    documents: Annotated[bool, option("--documents", "Show each document only once, with its best passage.")] = False,
    newest: Annotated[bool, option("--newest", "Sort the results by date, newest first.")] = False,
    fts_only: Annotated[bool, option("--fts-only", "Search only by words (keyword search).")] = False,
    vec_only: Annotated[bool, option("--vec-only", "Search only by meaning (semantic search).")] = False,
    exact: Annotated[bool, option("--exact", "Compare all vectors: slower, but no match is missed.")] = False,
    open_: Annotated[bool, option("--open", "Open the best result's file or web page.")] = False,
    explain: Annotated[bool, option("--explain", "Show how kb computed each score.")] = False,
    ids: IdsOnly = False,
    json: Json = False,
) -> int:
    """Find the passages that answer a query, best first.

    kb searches by words and by meaning, so it nearly always finds something. If no document contains any word from
    the query, kb says so.

    The query can contain operators: tag:x, #x, path:x, type:pdf, after:2026-03, before:2026, by:ada, -word, "a phrase",
    and a dash before any of them to exclude it. Put such a query in single quotes; docs/query.md has the rules.
    """
    if not " ".join(query).strip():
        raise exit_codes.UsageError("The query is empty. Enter words or a question: 'kb search spare key'.")
    if fts_only and vec_only:
        raise Invalid("Use --fts-only or --vec-only, not both. To search by words and by meaning, leave both out.")
    request = filters.to_request("tags") | {
        "query": " ".join(query),
        "top": top or DEFAULT_TOP,
        "fts_only": fts_only,
        "vec_only": vec_only,
        "exact": exact,
        "group_by": "document" if documents else None,
        "sort": "recent" if newest else "relevance",
        "explain": explain,
    }
    answer = call(lambda client: client.search(**request))
    report(answer, filters, ids=ids, json=json, vec_only=vec_only, is_counted=top is not None)
    if not answer["results"]:
        return exit_codes.FAILURE
    if open_:
        best = answer["results"][0]
        open_source(
            best | {"source_path": local_place(best["source_path"])}, highlight_line(best), best["place"]["page"]
        )
    return exit_codes.OK


def report(
    answer: dict[str, Any], filters: FilterOptions, *, ids: bool, json: bool, vec_only: bool, is_counted: bool
) -> None:
    results = answer["results"]
    if json:
        output.print_json(answer)
        return
    if not ids:
        for file in answer["unreadable"]:
            output.print_error(
                f"{output.one_line(file['filename'])}: kb could not read this file: {output.one_line(file['error'])}"
            )
        if more := answer["unreadable_count"] - len(answer["unreadable"]):
            output.print_error(f"{more} more files with that name are unreadable: 'kb jobs --status failed' lists them")
    if not results:
        output.print_error(explain_empty(answer, filters))
        report_operators(answer)
    elif ids:
        output.write(
            "".join(f"{document_id}\n" for document_id in dict.fromkeys(result["document_id"] for result in results))
        )
    else:
        report_operators(answer)
        for file in answer["unknown"]:
            output.print_error(describe_unknown(file))
        if answer["as_typed"]:
            output.print_error(f"as typed: kb search {shlex.quote(output.one_line(answer['as_typed']))}")
        if has_no_word(results) and not vec_only:
            is_filtered = any(vars(filters).values()) or answer["operators"]
            matching = " that matches the filters" if is_filtered else ""
            output.print_error(f"no document{matching} contains any of these words; the closest in meaning:")
        elif answer["weak"]:
            output.print_error(f"{PROBABLY_NOT}; the closest:")
        if others := answer["other_languages"]:
            there = "that language" if len(others) == 1 else "those languages"
            output.print_error(f"other documents are in {', '.join(others)}: also search in {there}")
        shown = results[:FEW] if answer["weak"] and not is_counted else results
        with output.paged():
            print_results(shown)
            if more := len(results) - len(shown):
                output.print_styled(Styled(f"\n{INDENT}{more} more: -n {len(results)}", DIM))
        if output.is_terminal():
            remember(results)


def report_operators(answer: dict[str, Any]) -> None:
    if operators := output.one_line(written(answer["operators"])):
        output.print_error(f"filters: {operators}")


def describe_unknown(unknown: dict[str, Any]) -> str:
    """Return a message: the word that no document contains, the word used instead, and other similar words."""
    word, nearest = output.one_line(unknown["word"]), [output.one_line(word) for word in unknown["nearest"]]
    searched = f"; kb searched for '{nearest[0]}'" if nearest else ""
    others = f" (similar words: {', '.join(nearest[1:])})" if nearest[1:] else ""
    return f"no document contains '{word}'{searched}{others}"


def explain_empty(answer: dict[str, Any], filters: FilterOptions) -> str:
    """Return a message: kb found nothing, the reason if known, and the number of unfinished jobs."""
    pending = answer.get("pending")
    reason = explain_nothing(filters, answer["operators"])
    if pending and reason == EMPTY:
        reason = ""
    waiting = f"; {'1 job is' if pending == 1 else f'{pending} jobs are'} unfinished" if pending else ""
    return f"nothing found{f': {reason}' if reason else ''}{waiting}"


def print_results(results: list[dict[str, Any]]) -> None:
    shown: Counter[int] = Counter()
    most = MOST_OF_DOCUMENT if output.is_terminal() else len(results)
    exact, what_follows = end_of_exact(results)
    for rank, result in enumerate(results, 1):
        shown[result["document_id"]] += 1
        if shown[result["document_id"]] <= most:
            output.write("\n" if rank > 1 else "")
            print_heading(rank, result)
            output.print_styled(excerpt(result))
            print_copies(result)
            if result.get("explanation"):
                print_explanation(result)
        if rank == exact and what_follows:
            output.print_styled(Styled(f"\n    ── {what_follows} ──", DIM))
    for document_id, count in shown.items():
        if count > most:
            output.write(f"\n{INDENT}+{count - most} more in document {document_id}: 'kb get {document_id}'\n")


def print_copies(result: dict[str, Any]) -> None:
    if copies := result.get("copies"):
        count = result.get("copy_count", len(copies))
        number = "1 other document" if count == 1 else f"{count} other documents"
        paths = [output.one_line(copy["source_path"] or copy["title"]) for copy in copies[:MOST_COPIES]]
        more = ", …" if count > len(paths) else ""
        output.print_styled(indent(Styled(f"also in {number}: {', '.join(paths)}{more}", DIM)))


def print_heading(rank: int, result: dict[str, Any]) -> None:
    facts = [f"id {result['document_id']}", format_place(result["place"])]
    replaced = f"replaced by {result['replaced_by']}" if result.get("replaced_by") else None
    more = [fact for fact in (output.format_date(result.get("date")), output.format_tags(result), replaced) if fact]
    title = Styled(f"{rank:>2}  ", DIM) + Styled(output.one_line(result["title"]), BOLD)
    where = Styled(output.one_line(" · ".join(facts + more)), CYAN)
    output.print_styled(title, indent(where) if output.is_terminal() else Styled(INDENT) + where)
    if result["source_path"]:
        output.print_styled(Styled(INDENT) + output.format_path(result["source_path"], len(INDENT)))


def print_explanation(result: dict[str, Any]) -> None:
    """Print the parts of a score: words, meaning, the query as typed, and the share of each word."""
    why = result["explanation"]
    legs = [f"{name} {format_leg(why[name])}" for name in ("words", "meaning") if why[name]]
    legs += [f"as typed {why['typed']:.3f}"] if why.get("typed") else []
    lines = [f"score {result['score']:.3f} = {' + '.join(legs)}"]
    if why["terms"]:
        lines.append(f"words {result['fts_score']:.2f} = {' + '.join(map(format_term, why['terms']))}")
    for line in lines:
        output.print_styled(indent(Styled(line, DIM)))


def format_term(term: dict[str, Any]) -> str:
    added = f"{output.one_line(term['term'])} {term['score']:.2f}"
    is_known = term.get("idf") is not None
    return added + (f" (idf {term['idf']:.2f}, ×{term['count']})" if is_known else "")


def format_leg(leg: dict[str, Any]) -> str:
    """Return the share of a leg (words or meaning), with its score, its score with neighbours, and its rank."""
    facts = ["no match" if leg["score"] is None else f"{leg['score']:.3f}"]
    facts += [] if leg["in_context"] is None else [f"{leg['in_context']:.3f} with its neighbours"]
    facts.append(f"no. {leg['place']}" if leg["place"] else "no match")
    return f"{leg['share']:.3f} ({', '.join(facts)})"


def format_place(place: dict[str, Any]) -> str:
    """Return the position of a passage, such as `page 3 / Methods / lines 10-14`."""
    page = [f"page {place['page']}"] if place["page"] else []
    first, last = place["line_start"], place["line_end"]
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return " / ".join([*page, *place["heading"], lines])


def excerpt(result: dict[str, Any]) -> Styled:
    """Return a few lines of a passage, starting shortly before its first highlight."""
    is_markdown = result["doc_type"] in MARKDOWN
    return indent(flatten(result["text"], result.get("highlights", []), is_markdown=is_markdown), EXCERPT_LINES)


def indent(text: Styled, max_lines: int | None = None) -> Styled:
    lines = text.wrap(max(width_of_terminal() - len(INDENT) - len(MORE), 1))
    if max_lines is not None and len(lines) > max_lines:
        lines[max_lines - 1] += MORE
    return Styled(INDENT) + Styled.join(lines[:max_lines], f"\n{INDENT}")


def name_hidden(styled: Styled) -> Styled:
    """Replace invisible characters with their code points; keep the styles of the others."""
    pieces, end = [], 0
    for match in output.HIDDEN.finditer(styled.text):
        pieces += [styled[end : match.start()], Styled(output.name_hidden(match[0]))]
        end = match.end()
    return Styled.join([*pieces, styled[end:]])


def flatten(text: str, highlights: Sequence[Sequence[int]], *, is_markdown: bool = False) -> Styled:
    """Return the text with its highlights, starting shortly before the first one.

    A terminal gets its line breaks and signs of Markdown; a pipe gets one line without them.
    """
    styled = Styled(output.escape_controls(text))
    for start, end in highlights:
        styled.stylize(start, end, MATCH)
    is_kept = output.is_terminal()
    signs = replacements(text) if is_markdown and not is_kept else {}
    first = next((start for start, _ in highlights), 0)
    first = sum(len(signs.get(at, " ")) for at in range(first))
    styled = name_hidden(styled.replaced(signs))
    words = list(re.finditer(r"\S+", styled.text))
    begin = 0 if first <= LEAD else next((i for i, word in enumerate(words) if word.start() >= first - LEAD), 0)
    lines = groupby(words[begin:], lambda word: styled.text.count("\n", 0, word.start()) if is_kept else 0)
    rows = (Styled.join((styled[word.start() : word.end()] for word in line), " ") for _, line in lines)
    shown = Styled.join(rows, "\n")
    return Styled("… ") + shown if begin else shown


def similar(
    document_id: Id,
    top: Annotated[int, option("-n --top N", "The maximum number of documents.", min=1)] = 10,
    ids: IdsOnly = False,
    json: Json = False,
) -> int:
    """List the documents closest in meaning to a document.

    The closest comes first. 'kb duplicates' lists duplicates.
    """
    answer = call(lambda client: client.similar(document_id, top=top))
    results = answer["results"]
    if json:
        output.print_json(answer)
    elif ids:
        output.write("".join(f"{result['document_id']}\n" for result in results))
    elif results:
        print_results(results)
    else:
        output.print_error("no other document has a similar meaning")
    return exit_codes.OK if results else exit_codes.FAILURE
