"""Add settings to files of other programs, and preserve the rest, including comments and order."""

import json
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

_STRING: Final = r'"(?:\\.|[^"\\])*"'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/|\A\ufeff", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_INDENT: Final = re.compile(r'^([ \t]+)"', re.MULTILINE)
_YAML_COMMENT: Final = re.compile(r"(?:^|\s)#")
_STRANGE: Final = "kb cannot edit a file in this format"
_DECODER: Final = json.JSONDecoder()


def merge(file: Path, text: str, addition: str) -> str:
    """Return the text of a file merged with an addition.

    Args:
        file: its suffix gives the format: JSON (comments allowed), TOML or YAML.
        text: the current text.
        addition: the settings to add, in the same format.

    Raises:
        ValueError: the text cannot be parsed, or has a form that kb cannot edit.
    """
    load, edit = _FORMATS[file.suffix]
    if not text.strip():
        return f"{addition}\n"
    before, added = load(text), load(addition)
    expected = _merged(before, added)
    if expected == before:
        return text
    try:
        after = edit(text, added)
        is_right = load(after) == expected
    except (ImportError, ValueError):
        raise
    except Exception:  # noqa: BLE001 - whatever a library raises, the file stays unchanged
        is_right = False
    if not is_right:
        raise ValueError(_STRANGE)
    return after


def _merged(before: object, additions: dict[str, Any]) -> dict[str, Any]:
    present = before or {}
    if not isinstance(present, dict):
        raise ValueError("kb expected a table, but found something else")
    return present | {
        name: _merged(present.get(name), value) if isinstance(value, dict) else _extended(present.get(name), value)
        for name, value in additions.items()
    }


def _extended(present: object, value: object) -> object:
    """Return a list of tables with the new ones at its end; any other value unchanged."""
    if not (isinstance(present, list) and isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        return value
    return [*present, *(item for item in value if item not in present)]


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with matches replaced by blanks, except for strings, so that positions stay the same."""
    return pattern.sub(lambda match: match[0] if match[0].startswith('"') else " " * len(match[0]), text)


def _plain_json(text: str) -> str:
    return _blanked(_TRAILING_COMMA, _blanked(_COMMENT, text))


def _load_json(text: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(_plain_json(text))


class _Object(NamedTuple):
    """The spans of an object's values, and the position of its closing brace."""

    values: dict[str, tuple[int, int]]
    close: int


def _object(plain: str, begin: int) -> _Object:
    values, at = dict[str, tuple[int, int]](), _skip(plain, begin + 1)
    while plain[at] != "}":
        name, at = _DECODER.raw_decode(plain, at)
        start = _skip(plain, _skip(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, start)
        values[name] = (start, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return _Object(values, at)


def _skip(plain: str, at: int) -> int:
    while plain[at].isspace():
        at += 1
    return at


def _edit_json(text: str, additions: dict[str, Any]) -> str:
    return _put_json(text, additions, _plain_json(text).index("{"), 1)


def _put_json(text: str, additions: dict[str, Any], begin: int, depth: int) -> str:
    """Put members into the object at a position."""
    for name, value in additions.items():
        plain = _plain_json(text)
        members = _object(plain, begin)
        if name not in members.values:
            text = _add_json(text, members, f"{json.dumps(name)}: {_dump(text, value, depth)}", depth)
            continue
        start, end = members.values[name]
        if isinstance(value, dict) and plain[start] == "{":
            text = _put_json(text, value, start, depth + 1)
        elif (present := json.loads(plain[start:end])) != (whole := _extended(present, value)):
            text = text[:start] + _dump(text, whole, depth) + text[end:]
    return text


def _add_json(text: str, members: _Object, member: str, depth: int) -> str:
    """Put a member after the last one of an object and after its comments."""
    body = text[: members.close].rstrip()
    closing = text[len(body) : members.close]
    if "\n" not in closing:
        closing = _line(text, depth - 1)
    last = max((end for _, end in members.values.values()), default=None)
    if last is not None and "," not in _blanked(_COMMENT, text)[last : members.close]:
        body = f"{body[:last]},{body[last:]}"
    return body + _line(text, depth) + member + closing + text[members.close :]


def _dump(text: str, value: object, depth: int) -> str:
    unit = match[1] if (match := _INDENT.search(text)) else "  "
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", _line(text, depth))


def _line(text: str, depth: int) -> str:
    """Return a line break with the indentation of the file."""
    unit = match[1] if (match := _INDENT.search(text)) else "  "
    return ("\r\n" if "\r\n" in text else "\n") + unit * depth


def _edit_toml(text: str, additions: dict[str, Any]) -> str:
    import tomlkit

    line = "\r\n" if "\r\n" in text else "\n"
    head = text if text.endswith("\n") else f"{text}{line}"
    appended = head + line + tomlkit.dumps(additions).replace("\n", line)
    with suppress(ValueError):  # keeps every comment with its table
        if tomllib.loads(appended) == _merged(tomllib.loads(text), additions):
            return appended
    document = tomlkit.parse(text)
    _put_toml(document, additions)
    return tomlkit.dumps(document)


def _put_toml(table: Any, additions: dict[str, Any]) -> None:  # noqa: ANN401 - one of several table types
    import tomlkit

    for name, value in additions.items():
        if isinstance(value, dict) and name in table:
            _put_toml(table[name], value)
        elif table.get(name) != value:
            table[name] = value
            if isinstance(table[name], tomlkit.items.Table):
                table[name].add(tomlkit.nl())


def _load_yaml(text: str) -> Any:  # noqa: ANN401 - YAML
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:  # its full text quotes the file, which may contain keys
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"{error.problem}{line}") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _edit_yaml(text: str, additions: dict[str, Any], path: tuple[str, ...] = ()) -> str:
    """Put entries into the mapping at a path; new ones are written as JSON, which is valid YAML."""
    import yaml

    for name, value in additions.items():
        mapping = yaml.compose(text, Loader=yaml.SafeLoader)
        for step in path:
            mapping = _entries(mapping)[step]
        node = _entries(mapping).get(name)
        if node is None:
            text = _add_yaml(text, mapping, f"{name}: {json.dumps(value)}")
        elif isinstance(value, dict) and isinstance(node, yaml.MappingNode) and not node.flow_style:
            text = _edit_yaml(text, value, (*path, name))
        else:
            start, end = node.start_mark.index, node.end_mark.index
            if _YAML_COMMENT.search(text[start:end]):
                raise ValueError("kb would have to delete a comment")
            present = _load_yaml(text[start:end])
            whole = _merged(present, value) if isinstance(value, dict) else _extended(present, value)
            text = f"{text[:start].rstrip(' ')} {json.dumps(whole)}{text[end:]}"
    return text


def _entries(mapping: Any) -> dict[str, Any]:  # noqa: ANN401 - a YAML node
    return {key.value: value for key, value in mapping.value} if mapping else {}


def _add_yaml(text: str, mapping: Any, entry: str) -> str:  # noqa: ANN401 - a YAML node
    """Put an entry after the last line of a mapping."""
    if mapping is None:  # only comments
        return f"{text.rstrip()}\n{entry}\n"
    if mapping.flow_style:
        raise ValueError("the table is written in braces")
    indent = " " * mapping.value[0][0].start_mark.column
    last = mapping
    while isinstance(last.value, list) and last.value and not last.flow_style:
        last = last.value[-1][1] if isinstance(last.value[-1], tuple) else last.value[-1]
    end = last.end_mark.index
    if text[end - 1] != "\n":
        end = text.find("\n", end) + 1 or len(text)
    head = text[:end] if text[:end].endswith("\n") else f"{text[:end]}\n"
    return f"{head}{indent}{entry}\n{text[end:]}"


_FORMATS: Final[dict[str, tuple[Callable[[str], Any], Callable[[str, dict[str, Any]], str]]]] = {
    ".json": (_load_json, _edit_json),
    ".toml": (tomllib.loads, _edit_toml),
    ".yaml": (_load_yaml, _edit_yaml),
}
