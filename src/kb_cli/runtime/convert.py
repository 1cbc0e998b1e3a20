"""The conversion of a command's words.

Typer converts every word with pydantic, which takes longer to load than most commands take altogether.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from typer import BadParameter, Context
from typer.core import TyperArgument, TyperOption
from typer.main import get_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer import Typer
    from typer._click import Command


def plain_command(app: Typer) -> Command:
    """The command that typer builds, with conversions from here where `converter` knows the type."""
    command = get_command(app)
    for parameter in command.get_params(Context(command)):
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = no_type  # type: ignore[method-assign,assignment]
        if isinstance(parameter, (TyperArgument, TyperOption)):
            kind: Any = parameter.type_descriptor.annotation
            single = get_args(kind)[0] if get_origin(kind) is list else kind
            if convert := converter(single, parameter.type_descriptor.parameter_info.min):
                parameter._runtime_param = Plain(convert)  # type: ignore[assignment] # where typer keeps its own
    return command


def no_type(ctx: Context) -> None:
    """What the help shows of an argument's type, which to Python is such as list[str]."""


class Plain:
    """Stands where typer would put its own converter.

    Args:
        convert: makes the value of a word; its `ValueError` says what is wrong with the word.
    """

    def __init__(self, convert: Callable[[Any], object]) -> None:
        self._convert = convert

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Any) -> Any:  # noqa: ANN401 - typer's own
        """The value of the words that were given for a parameter, or of its default."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        try:
            return [self._convert(word) for word in value] if many else self._convert(value)
        except ValueError as error:
            raise BadParameter(str(error), ctx=ctx, param=param) from None


def converter(kind: Any, minimum: float | None) -> Callable[[Any], object] | None:  # noqa: ANN401 - any type
    """What makes a value of this type of a word; None if this is not known here."""
    if get_origin(kind) is Literal:
        return one_of(get_args(kind))
    if kind is int:
        return whole_number(minimum)
    if kind is Path:
        return path
    return kind if kind in (str, bool) else None


def path(word: str | Path) -> Path:
    """Takes a path; an empty one would be the folder one happens to be in."""
    if not str(word):
        raise ValueError("the path is empty")
    return Path(word)


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Takes one of these words."""

    def convert(word: str) -> str:
        if word not in choices:
            raise ValueError(f"{word!r} is not one of {', '.join(choices)}")
        return word

    return convert


def whole_number(minimum: float | None) -> Callable[[Any], int]:
    """Takes a whole number, not below the minimum."""

    def convert(word: str | int) -> int:
        try:
            number = int(word)
        except ValueError:
            raise ValueError(f"{word!r} is not a whole number") from None
        if minimum is not None and number < minimum:
            raise ValueError(f"{number} is less than {minimum}")
        return number

    return convert
