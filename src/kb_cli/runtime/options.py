"""Options that several commands share, and explanations for empty results."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from kb.api.date_parsing import moment
from kb.api.errors import Invalid
from kb.api.file_types import KINDS, OWN_TYPES, named_type
from kb.api.tag_tree import split_tags
from kb_cli.runtime.completion import complete_profiles, complete_tags, complete_types
from kb_cli.runtime.document_paths import DocumentId
from kb_cli.runtime.exit_codes import UsageError

if TYPE_CHECKING:
    from kb_cli.sync.folder import Folder

T = TypeVar("T")

STDIN = "-"

AGO = re.compile(r"(\d{1,6})([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Completion = Callable[..., list[str]]


def option(words: str, about: str, complete: Completion | None = None, **more: Any) -> Any:  # noqa: ANN401 - typer's own
    """Describe an option by its words in the help: its names, then its value, such as "-n --top N"."""
    names = [word for word in words.split() if word.startswith("-")]
    metavar = " ".join(word for word in words.split() if not word.startswith("-"))
    return typer.Option(*names, metavar=metavar or None, help=about or None, autocompletion=complete, **more)


def argument(metavar: str, about: str, complete: Completion | None = None, **more: Any) -> Any:  # noqa: ANN401 - as above
    """Describe an argument by its name in the help."""
    return typer.Argument(metavar=metavar, help=about, autocompletion=complete, **more)


Json = Annotated[bool, option("--json", "Print only JSON.")]
Tags = Annotated[
    list[str] | None, option("--tags A,B", "Tags to add, separated by commas: work,taxes.", complete=complete_tags)
]
AllTags = Annotated[
    list[str] | None,
    option(
        "--tags A,B",
        "Only documents with all of these tags, such as work,taxes. A tag includes the tags below it.",
        complete=complete_tags,
    ),
]
AnyTag = Annotated[
    list[str] | None, option("--any A,B", "Only documents with at least one of these tags.", complete=complete_tags)
]
NoTag = Annotated[
    list[str] | None, option("--not A,B", "Only documents without any of these tags.", complete=complete_tags)
]
ExactTag = Annotated[bool, option("--exact-tag", "Exclude subtags: 'projects' without 'projects/kiln'.")]
NO_TERMINAL = "Cannot ask for confirmation without a terminal. Add --yes to delete."
Yes = Annotated[bool, option("--yes -y", "Do not ask for confirmation (required in scripts).")]
Wait = Annotated[bool, option("--wait", "Wait until everything is searchable, and report any error.")]
Exclude = Annotated[
    list[str] | None,
    option(
        "--exclude PATTERN",
        "Skip files that match this pattern, written as in .gitignore: '*.log'. You can repeat this.",
    ),
]
FollowLinks = Annotated[bool, option("--follow-links", "Also follow links to files outside the folder.")]
DeleteMissing = Annotated[
    bool, option("--delete", "Delete documents whose file is gone from the folder, but never notes.")
]
FolderName = Annotated[
    str | None, option("--as NAME", "The name of the folder in source paths, such as vault, instead of its path.")
]
TakeOver = Annotated[bool, option("--take-over", "Take over the name from another folder or machine.")]
ABOUT_ID = "The document's ID, as 'kb list' shows it, or its path."
Id = Annotated[DocumentId, argument("ID", ABOUT_ID, min=1)]
Ids = Annotated[list[DocumentId], argument("ID", "One or more document IDs, as 'kb list' shows them, or paths.", min=1)]
IdsOnly = Annotated[bool, option("--ids", "Print only document IDs, one per line.")]
DocType = Annotated[
    str | None,
    option(
        "--type TYPE",
        f"Only documents of this type: {', '.join(OWN_TYPES)}; or of a kind: {', '.join(KINDS)}.",
        complete=complete_types,
    ),
]
Lang = Annotated[str | None, option("--lang CODE", "Only documents in this language, as an ISO 639-1 code: de, fr.")]
By = Annotated[
    str | None, option("--by NAME", "Only documents last changed by this key or program, and notes with this source.")
]
SourcePath = Annotated[str | None, option("--path PATH", "Only documents from this file or source path.")]
Under = Annotated[
    str | None, option("--under FOLDER", "Only documents from this folder or below it, such as ~/reports.")
]
Name = Annotated[
    str | None, option("--name PATTERN", "Only documents with this file name or note title: 'memo*', '*.pdf'.")
]
After = Annotated[
    str | None,
    option("--after DATE", "Only documents dated on or after this date: 2026-01-31, 3 Nov, march, monday, 7d."),
]
Before = Annotated[str | None, option("--before DATE", "Only documents dated before this date.")]
AddedAfter = Annotated[str | None, option("--added-after DATE", "Only documents added on or after this date.")]
AddedBefore = Annotated[str | None, option("--added-before DATE", "Only documents added before this date.")]
DatedAfter = Annotated[str | None, option("--dated-after", "", hidden=True)]
DatedBefore = Annotated[str | None, option("--dated-before", "", hidden=True)]
Why = Annotated[str | None, option("--why TEXT", "A reason to record in the history, such as 'a typo'.")]
Profile = Annotated[
    str | None,
    option("--profile NAME", "The profile of the configuration file to use, such as work.", complete=complete_profiles),
]
Text = Annotated[list[str] | None, argument("TEXT", "The text of the note; - reads it from standard input.")]


@dataclass(frozen=True)
class FilterOptions:
    """The filters of a command; each field is an option."""

    tags: AllTags = None
    any_tag: AnyTag = None
    no_tag: NoTag = None
    exact_tag: ExactTag = False
    doc_type: DocType = None
    lang: Lang = None
    by: By = None
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
        """
        from kb_cli.sync.folder_names import meant_path, meant_prefix

        for option, path in (
            ("--by", self.by),
            ("--path", self.path),
            ("--under", self.under),
            ("--name", self.name),
        ):
            if path == "":
                raise UsageError(f"{option} is empty. Add a value, or leave out the option.")
        if self.doc_type is not None and self.doc_type not in OWN_TYPES:
            check_type(self.doc_type)
        request = {
            "doc_type": self.doc_type,
            "lang": self.lang,
            "by": self.by,
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


@dataclass(frozen=True)
class FolderOptions:
    """The options of a synced folder."""

    tags: Tags = None
    exclude: Exclude = None
    follow_links: FollowLinks = False
    delete: DeleteMissing = False
    name: FolderName = None

    def folder(self, path: Path, **more: bool) -> "Folder":
        """Return the folder at `path`; `more` has its other fields."""
        from kb_cli.runtime.files import absolute
        from kb_cli.sync.folder import Folder
        from kb_cli.sync.folder_names import chosen_prefix

        return Folder(
            absolute(path.expanduser()),
            chosen_prefix(self.name),
            tuple(given_tags(self.tags)),
            tuple(self.exclude or ()),
            self.delete,
            follow_links=self.follow_links,
            **more,
        )


def with_options(command: Callable[..., T]) -> Callable[..., T]:
    """Replace each parameter of a command that is a set of options, such as `FilterOptions`, with these options."""
    parameters = signature(command).parameters.values()
    sets: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

    @wraps(command)
    def wrapper(**options: Any) -> T:  # noqa: ANN401 - of any type
        for name, kind in sets.items():
            options[name] = kind(**{field.name: options.pop(field.name) for field in fields(kind)})
        return command(**options)

    spread: list[Parameter] = []
    for each in parameters:
        spread += (
            (
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
                for field in fields(sets[each.name])
            )
            if each.name in sets
            else [each.replace(kind=Parameter.KEYWORD_ONLY)]
        )
    wrapper.__signature__ = Signature(spread)  # type: ignore[attr-defined] # inspect reads it
    return wrapper


def check_type(doc_type: str) -> None:
    """Refuse a type that the engine neither reads, from any package, nor has documents of."""
    from kb_cli.runtime.engine_call import call

    status = call(lambda client: client.status())
    known = {*OWN_TYPES, *KINDS, *status.get("doc_types", ()), *status["documents"]}
    if named_type(doc_type, known) not in known:
        raise UsageError(f"--type: {doc_type!r} is not a document type{nearest(doc_type, sorted(known))}.")


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a hint with the closest word, as the end of a sentence; empty if no word is close."""
    from difflib import get_close_matches

    known = list(words)
    folded = [candidate for candidate in known if candidate.casefold() == word.casefold()]
    matches = folded or get_close_matches(word, known, n=1)
    return f"; the closest is {matches[0]!r}" if matches else ""


def given_tags(values: list[str] | None) -> list[str]:
    """Return the tags of an option that may be repeated and may contain several."""
    return [tag for value in values or [] for tag in split_tags(value)]


def parse_tag_filter(option: str, tags: list[str] | None) -> list[str]:
    if tags is not None and not given_tags(tags):
        raise UsageError(f"{option} is empty. Name one or more tags, or leave out the option.")
    return given_tags(tags)


def parse_date(option: str, word: str | None) -> str | None:
    """Return a date or local time in the engine's format."""
    if word is None:
        return None
    try:
        if parsed := moment(word, option, zone=None):
            return parsed
    except Invalid as error:
        raise UsageError(error.detail) from None
    raise UsageError(f"{option} is empty. Enter a date such as 2026-01-31 or 7d, or leave out the option.")


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
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (words or stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):  # a terminal or a null device
        return None
    try:
        text = sys.stdin.buffer.read().decode()
        return text if text or words else None
    except UnicodeDecodeError:
        raise UsageError("Standard input is not UTF-8 text. 'kb add -' accepts other content.") from None


HOW_TO_ADD: Final = "add files with 'kb add FOLDER', or a note with 'kb addnote TEXT'"
EMPTY: Final = f"the knowledge base is empty; {HOW_TO_ADD}"


def explain_nothing(filters: FilterOptions, operators: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return why no document matches the filters and the operators of a query; an empty text if kb does not know."""
    from kb_cli.runtime.completion import fetch_tags
    from kb_cli.runtime.engine_call import call

    typed_tags = [each["value"] for each in operators if each["operator"] == "tag" and not each["excluded"]]
    asked_tags = given_tags([*(filters.tags or []), *(filters.any_tag or []), *typed_tags])
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
    if operators or any(vars(filters).values()):
        return "no document matches these filters"
    return "" if call(lambda client: client.count_documents()) else EMPTY


def counted(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in numbers.items())
