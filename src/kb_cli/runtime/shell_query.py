"""A query as a shell passes it on: in several arguments, without the quotes that were typed, and among options."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kb.api.search_wording import KEYS
from kb_cli.runtime.exit_codes import UsageError

END: Final = "--"
OPERATOR: Final = re.compile(rf"(-?(?:{'|'.join(KEYS)}):)(.*)", re.IGNORECASE | re.DOTALL)
EXCLUSION: Final = re.compile(r"-[^\W_#-].+|-#.+", re.DOTALL)
SHORT_WITH_NUMBER: Final = re.compile(r"(-[a-z])\d+")


def as_typed(args: Sequence[str], options: Mapping[str, bool]) -> list[str]:
    """Return the arguments of a search in which each word after a dash is excluded, and quotes are back.

    Args:
        args: the arguments.
        options: the names of the options, and whether a value follows.

    Raises:
        UsageError: a word after a dash is the name of a long option.
    """
    end = args.index(END) if END in args else len(args)
    kept, words = list[str](), list[int]()
    excluded = list[str]()
    for argument, is_value in _with_values(args[:end], options):
        if not is_value and _is_excluded(argument, options):
            excluded.append(_quoted(argument))
            continue
        if not is_value and not argument.startswith("-"):
            words.append(len(kept))
        kept.append(argument)
    if len(words) > 1:  # a single one is the whole query
        for place in words:
            kept[place] = _quoted(kept[place])
    return [*kept, *args[end:], *([END] if excluded and end == len(args) else []), *excluded]


def _with_values(args: Sequence[str], options: Mapping[str, bool]) -> Iterator[tuple[str, bool]]:
    """Yield the arguments, each with whether it is the value of an option before it."""
    is_value = False
    for argument in args:
        yield argument, is_value
        is_value = not is_value and options.get(argument, False)


def _is_excluded(argument: str, options: Mapping[str, bool]) -> bool:
    if not EXCLUSION.fullmatch(argument) or argument in options:
        return False
    if f"-{argument}" in options:
        raise UsageError(
            f"No such option: {argument}. Write -{argument} for the option; to exclude the word, quote the query:"
            f" kb search 'words {argument}'"
        )
    short = SHORT_WITH_NUMBER.fullmatch(argument)
    return not (short and options.get(short[1]))


def _quoted(argument: str) -> str:
    """Return an argument with the quotes that the shell removed."""
    operator = OPERATOR.fullmatch(argument)
    if operator:
        return f'{operator[1]}"{operator[2]}"' if " " in operator[2] and '"' not in operator[2] else argument
    if argument.startswith("-") and not argument.startswith("-#"):
        return f'-"{argument[1:].strip(chr(34))}"'
    return argument
