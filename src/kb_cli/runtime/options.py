"""Options that several commands share, and explanations for empty results."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Final, TypeVar

import typer

from kb.api.date_parsing import moment
from kb.api.errors import Invalid
from kb.api.file_types import OWN_TYPES
from kb_cli.runtime.completion import complete_profiles, complete_tags, complete_types
from kb_cli.runtime.exit_codes import UsageError

T = TypeVar("T")

STDIN = "-"

AGO = re.compile(r"(\d{1,6})([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Json = Annotated[bool, typer.Option("--json", help="Print only JSON.")]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tags", metavar="A,B", help="Tags to add, separated by commas: work,taxes.", autocompletion=complete_tags
    ),
]
AllTags = Annotated[
    list[str] | None,
    typer.Option(
        "--tags",
        metavar="A,B",
        help="Only documents with all of these tags, such as work,taxes. A tag includes the tags below it.",
        autocompletion=complete_tags,
    ),
]
AnyTag = Annotated[
    list[str] | None,
    typer.Option(
        "--any", metavar="A,B", help="Only documents with at least one of these tags.", autocompletion=complete_tags
    ),
]
NoTag = Annotated[
    list[str] | None,
    typer.Option(
        "--not", metavar="A,B", help="Only documents without any of these tags.", autocompletion=complete_tags
    ),
]
ExactTag = Annotated[
    bool, typer.Option("--exact-tag", help="Do not include the tags below a tag: 'projects' without 'projects/kiln'.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until everything is searchable, and report any error.")]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="PATTERN",
        help="Skip files that match this pattern, written as in .gitignore: '*.log'. May be repeated.",
    ),
]
FollowLinks = Annotated[bool, typer.Option("--follow-links", help="Also follow links to files outside the folder.")]
DeleteMissing = Annotated[
    bool, typer.Option("--delete", help="Delete documents of the folder whose file no longer exists; never notes.")
]
FolderName = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="The name of the folder in source paths, such as vault, instead of its path."
    ),
]
TakeOver = Annotated[bool, typer.Option("--take-over", help="Give this folder the name of another folder or machine.")]
Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The document's id, as 'kb list' shows it.")]
Ids = Annotated[
    list[int], typer.Argument(metavar="ID", min=1, help="One or more document ids, as 'kb list' shows them.")
]
IdsOnly = Annotated[bool, typer.Option("--ids", help="Print only document ids, one per line.")]
DocType = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help=f"Only documents of this type: {', '.join(OWN_TYPES)}.",
        autocompletion=complete_types,
    ),
]
Lang = Annotated[
    str | None,
    typer.Option("--lang", metavar="CODE", help="Only documents in this language, as an ISO 639-1 code: de, fr."),
]
SourcePath = Annotated[
    str | None, typer.Option("--path", metavar="PATH", help="Only documents from this file or source path.")
]
Under = Annotated[
    str | None,
    typer.Option("--under", metavar="FOLDER", help="Only documents from this folder or below it, such as ~/reports."),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="PATTERN", help="Only documents with this file name or note title: 'memo*', '*.pdf'."
    ),
]
After = Annotated[
    str | None,
    typer.Option(
        "--after",
        metavar="DATE",
        help="Only documents dated on or after this date: 2026-01-31, 3 Nov, march, monday, 7d.",
    ),
]
Before = Annotated[str | None, typer.Option("--before", metavar="DATE", help="Only documents dated before this date.")]
AddedAfter = Annotated[
    str | None, typer.Option("--added-after", metavar="DATE", help="Only documents added on or after this date.")
]
AddedBefore = Annotated[
    str | None, typer.Option("--added-before", metavar="DATE", help="Only documents added before this date.")
]
DatedAfter = Annotated[str | None, typer.Option("--dated-after", hidden=True)]
DatedBefore = Annotated[str | None, typer.Option("--dated-before", hidden=True)]
Why = Annotated[
    str | None, typer.Option("--why", metavar="TEXT", help="The reason, which the history shows: 'a typo'.")
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile of the configuration file to use, such as work.",
        autocompletion=complete_profiles,
    ),
]
Text = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="The text of the note; - reads it from standard input.")
]


@dataclass(frozen=True)
class FilterOptions:
    """The filters of a command; each field is an option."""

    tags: AllTags = None
    any_tag: AnyTag = None
    no_tag: NoTag = None
    exact_tag: ExactTag = False
    doc_type: DocType = None
    lang: Lang = None
    path: SourcePath = None
    under: Under = None
    name: Name = None
    after: After = None
    before: Before = None
    added_after: AddedAfter = None
    added_before: AddedBefore = None
    dated_after: DatedAfter = None
    dated_before: DatedBefore = None

    def to_request(self, tags_name: str) -> dict[str, Any]:
        """Return the filters in use, by their names in the API.

        Args:
            tags_name: the endpoint's name of the filter for tags that must all match.

        Raises:
            UsageError: a filter is empty or not a valid date.
        """
        from kb_cli.sync.folder_names import meant_path, meant_prefix

        for option, path in (("--path", self.path), ("--under", self.under), ("--name", self.name)):
            if path == "":
                raise UsageError(f"{option} is empty. Give a value, or leave the option out.")
        if self.doc_type is not None and self.doc_type not in OWN_TYPES:
            check_type(self.doc_type)
        request = {
            "doc_type": self.doc_type,
            "lang": self.lang,
            "source_path": self.path and meant_path(self.path),
            "source_prefix": self.under and meant_prefix(self.under),
            "name": self.name,
            "created_after": parse_date("--added-after", self.added_after),
            "created_before": parse_date("--added-before", self.added_before),
            "after": parse_date("--after", self.after) or parse_date("--dated-after", self.dated_after),
            "before": parse_date("--before", self.before) or parse_date("--dated-before", self.dated_before),
            tags_name: parse_tag_filter("--tags", self.tags),
            "tag_any": parse_tag_filter("--any", self.any_tag),
            "tag_not": parse_tag_filter("--not", self.no_tag),
            "tag_exact": self.exact_tag or None,
        }
        return {name: value for name, value in request.items() if value is not None}


def with_filters(command: Callable[..., T]) -> Callable[..., T]:
    """Replace a command's parameter `filters` with the options of `FilterOptions`."""

    @wraps(command)
    def wrapper(**options: Any) -> T:  # noqa: ANN401 - of any type
        filters = FilterOptions(**{field.name: options.pop(field.name) for field in fields(FilterOptions)})
        return command(filters=filters, **options)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        parameters += (
            FILTER_PARAMETERS if parameter.name == "filters" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
        )
    wrapper.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # inspect reads it
    return wrapper


FILTER_PARAMETERS = [
    Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
    for field in fields(FilterOptions)
]


def check_type(doc_type: str) -> None:
    """Refuse a type that the engine neither reads, from any package, nor has documents of."""
    from kb_cli.runtime.engine_call import call

    status = call(lambda client: client.status())
    known = {*OWN_TYPES, *status.get("doc_types", ()), *status["documents"]}
    if doc_type not in known:
        raise UsageError(f"--type: {doc_type!r} is not a document type{nearest(doc_type, sorted(known))}.")


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a hint with the closest word, as the end of a sentence; empty if no word is close."""
    from difflib import get_close_matches

    known = list(words)
    folded = [candidate for candidate in known if candidate.casefold() == word.casefold()]
    matches = folded or get_close_matches(word, known, n=1)
    return f"; the closest is {matches[0]!r}" if matches else ""


def split_tags(tags: list[str] | None) -> list[str]:
    """Return the tags of an option that may be repeated and may contain several."""
    return [tag.strip() for value in tags or [] for tag in value.split(",") if tag.strip()]


def parse_tag_filter(option: str, tags: list[str] | None) -> list[str]:
    """Return the tags of a filter.

    Raises:
        UsageError: the filter is empty, for example from an unset variable; it would match all documents.
    """
    if tags is not None and not split_tags(tags):
        raise UsageError(f"{option} is empty. Name one or more tags, or leave the option out.")
    return split_tags(tags)


def parse_date(option: str, word: str | None) -> str | None:
    """Return a date or local time in the engine's format."""
    if word is None:
        return None
    try:
        if parsed := moment(word, option, zone=None):
            return parsed
    except Invalid as error:
        raise UsageError(error.detail) from None
    raise UsageError(f"{option} is empty. Give a date such as 2026-01-31 or 7d, or leave the option out.")


def parse_moment(option: str, word: str | None) -> str | None:
    """Return a past time, given as a date, a local time or an age, in the engine's format."""
    if word is None:
        return None
    if ago := AGO.fullmatch(word):
        past = datetime.now().astimezone() - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        return past.isoformat()
    return parse_date(option, word)


def read_text(words: list[str] | None) -> str | None:
    """Return the words as one line, for `-` the standard input, and without words the input from a pipe.

    Return None without any text, so that an editor is needed.
    """
    import sys

    if words and words != [STDIN]:
        return " ".join(words)
    if not (words or is_piped(sys.stdin.fileno())):
        return None
    try:
        text = sys.stdin.buffer.read().decode()
        return text if text or words else None
    except UnicodeDecodeError:
        raise UsageError("Standard input is not UTF-8 text. 'kb add -' accepts other content.") from None


def is_piped(descriptor: int) -> bool:
    """Return whether standard input is a pipe or a file, not a terminal or a null device."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


HOW_TO_ADD: Final = "add files with 'kb add FOLDER', or a note with 'kb addnote TEXT'"
EMPTY: Final = f"the knowledge base is empty; {HOW_TO_ADD}"


def explain_nothing(filters: FilterOptions) -> str:
    """Return why no document matches the filters; an empty text if kb does not know."""
    from kb_cli.runtime.completion import fetch_tags
    from kb_cli.runtime.engine_call import call

    asked_tags = split_tags([*(filters.tags or []), *(filters.any_tag or [])])
    tags = fetch_tags() if asked_tags else []
    for tag in asked_tags:
        if tag not in tags:
            return f"no document has the tag {tag!r}{nearest(tag, tags)}"
    if filters.lang:
        known = call(lambda client: client.status())["languages"]
        if filters.lang.lower() not in known:
            return (
                f"no document is in the language {filters.lang!r};"
                f" the languages of your documents are {counted(known) or 'unknown'}"
            )
    if any(vars(filters).values()):
        return "no document matches these filters"
    return "" if call(lambda client: client.count_documents()) else EMPTY


def counted(numbers: Mapping[str, int]) -> str:
    """Return the names, each with its number in brackets."""
    return ", ".join(f"{name} ({number})" for name, number in numbers.items())
