"""Convert the arguments of commands.

Typer converts them with pydantic, which takes longer to load than most commands take to run. The replaced parts are not
in Typer's public API; tests/cli/test_help.py fails when this module is no longer needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from typer import BadParameter, Context, Typer
from typer.core import TyperArgument, TyperOption
from typer.main import get_command

from kb_cli.runtime.document_paths import DocumentId, id_at

PATH_SIGNS: Final = "/\\."
"""A word with one of these is a path, not a number."""

HELP_OPTIONS: Final = ["--help", "-h"]


def build_command(app: Typer) -> Any:  # noqa: ANN401 - a command's type is not public
    """Return the command that Typer builds, with converters from `converter_for` for the types it knows."""
    command: Any = get_command(app)
    for parameter in command.get_params(Context(command, help_option_names=HELP_OPTIONS)):
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = hide_type  # type: ignore[method-assign,assignment] # only Typer calls it
        if isinstance(parameter, (TyperArgument, TyperOption)):
            annotation: Any = parameter.type_descriptor.annotation
            element = get_args(annotation)[0] if get_origin(annotation) in (list, tuple) else annotation
            if convert := converter_for(element, parameter.min):
                parameter.get_runtime_param = Coercion(convert)  # type: ignore[method-assign,assignment] # see above
    return command


def hide_type(ctx: Context) -> None:
    """Hide the type of an argument in the help: Python would show list[str]."""


class Coercion:
    """Replaces Typer's conversion of a parameter.

    Args:
        convert: converts a word to a value; its `ValueError` describes the fault.
    """

    def __init__(self, convert: Callable[[Any], object]) -> None:
        self._convert = convert

    def __call__(self) -> Coercion:
        return self

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Any) -> Any:  # noqa: ANN401 - typer's own
        many = param.multiple or param.nargs != 1
        if value is None:
            return () if many else None
        try:
            return [self._convert(word) for word in value] if many else self._convert(value)
        except ValueError as error:
            raise BadParameter(str(error), ctx=ctx, param=param) from None


def converter_for(kind: Any, minimum: float | None) -> Callable[[Any], object] | None:  # noqa: ANN401 - any type
    """Return a converter for this type; None if the type is unknown here."""
    if get_origin(kind) is Literal:
        return partial(to_choice, get_args(kind))
    if kind is int:
        return partial(to_integer, minimum)
    if kind is DocumentId:
        return partial(to_document_id, minimum)
    if kind is Path:
        return to_path
    return kind if kind in (str, bool) else None


def to_path(word: str | Path) -> Path:
    if not str(word):
        raise ValueError("the path is empty")  # it would mean the current folder
    return Path(word)


def to_choice(choices: tuple[str, ...], word: str) -> str:
    if word not in choices:
        raise ValueError(f"{word!r} is not one of {', '.join(choices)}")
    return word


def to_document_id(minimum: float | None, word: str | int) -> int:
    is_path = isinstance(word, str) and any(sign in word for sign in PATH_SIGNS)
    return id_at(str(word)) if is_path else to_integer(minimum, word)


def to_integer(minimum: float | None, word: str | int) -> int:
    try:
        number = int(word)
    except ValueError:
        raise ValueError(f"{word!r} is not a whole number") from None
    if minimum is not None and number < minimum:
        raise ValueError(f"{number} is less than {minimum}")
    return number
