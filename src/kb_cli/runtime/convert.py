"""The conversion of a command's arguments.

Typer converts them with pydantic, which takes longer to load than most commands take altogether. What this takes the
place of is not Typer's public API; tests/cli/test_help.py says when it is no longer needed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from typer import BadParameter, Context, Typer
from typer.core import TyperArgument, TyperOption
from typer.main import get_command

HELP_OPTIONS: Final = ["--help", "-h"]


def build_command(app: Typer) -> Any:  # noqa: ANN401 - a command's type is not public
    """Return the command that Typer builds, with the conversions of `converter_for` where it knows the type."""
    command: Any = get_command(app)
    for parameter in command.get_params(Context(command, help_option_names=HELP_OPTIONS)):
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = hide_type  # type: ignore[method-assign,assignment] # Typer asks no one else
        if isinstance(parameter, (TyperArgument, TyperOption)):
            annotation: Any = parameter.type_descriptor.annotation
            element = get_args(annotation)[0] if get_origin(annotation) is list else annotation
            if convert := converter_for(element, parameter.min):
                parameter.get_runtime_param = Coercion(convert)  # type: ignore[method-assign,assignment] # likewise
    return command


def hide_type(ctx: Context) -> None:
    """Leave an argument's type out of the help: to Python it is such as list[str]."""


class Coercion:
    """Stands where Typer makes its own of a parameter's type.

    Args:
        convert: makes the value of a word; its `ValueError` says what is wrong with the word.
    """

    def __init__(self, convert: Callable[[Any], object]) -> None:
        self._convert = convert

    def __call__(self) -> Coercion:
        return self

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Any) -> Any:  # noqa: ANN401 - typer's own
        """Return the value of the words that were given for a parameter, or of its default."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        try:
            return [self._convert(word) for word in value] if many else self._convert(value)
        except ValueError as error:
            raise BadParameter(str(error), ctx=ctx, param=param) from None


def converter_for(kind: Any, minimum: float | None) -> Callable[[Any], object] | None:  # noqa: ANN401 - any type
    """Return what makes a value of this type of a word; None if the type is not known here."""
    if get_origin(kind) is Literal:
        return choice_converter(get_args(kind))
    if kind is int:
        return integer_converter(minimum)
    if kind is Path:
        return parse_path
    return kind if kind in (str, bool) else None


def parse_path(word: str | Path) -> Path:
    """Return the path; an empty one would be the folder one happens to be in."""
    if not str(word):
        raise ValueError("the path is empty")
    return Path(word)


def choice_converter(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a converter that takes one of these words."""

    def convert(word: str) -> str:
        if word not in choices:
            raise ValueError(f"{word!r} is not one of {', '.join(choices)}")
        return word

    return convert


def integer_converter(minimum: float | None) -> Callable[[Any], int]:
    """Return a converter that takes whole numbers, none below the minimum."""

    def convert(word: str | int) -> int:
        try:
            number = int(word)
        except ValueError:
            raise ValueError(f"{word!r} is not a whole number") from None
        if minimum is not None and number < minimum:
            raise ValueError(f"{number} is less than {minimum}")
        return number

    return convert
