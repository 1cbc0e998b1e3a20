"""The fields at the beginning of a file, in YAML, TOML or JSON: found, removed and added to the byte.

Everything else stays the same: comments, order, quotation marks, line ends.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from typing import Final, Literal, NamedTuple

from kb.markdown.front_matter import FrontMatter, front_matter

Form = Literal["yaml", "toml", "json"]
Value = str | int | list[str]

BLOCK: Final = re.compile(
    r"(?s)\A(?P<open>(?P<fence>---|\+\+\+)[ \t]*\r?\n)(?P<inner>|.*?\n)(?:(?P=fence)|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
ENTRIES: Final = {
    "yaml": re.compile(r"(?P<name>[^\s#:\]},-][^:\n]{0,100}?)[ \t]*:(?=[ \t\r\n]|\Z)"),
    "toml": re.compile(r"(?P<name>[\w\"'.-]+)[ \t]*="),
}
LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
SPACE: Final = re.compile(r"[\s,]*")
REST_OF_LINE: Final = re.compile(r"[ \t]*(?:\r?\n|\Z)")
CONTINUES: Final = (" ", "\t", "-", "]", "}")
LONGEST: Final = 1 << 16
MOST_LINES: Final = 200
"""A value in TOML with more lines is not searched for its end."""

PLAIN: Final = re.compile(r"[^\W\d][\w .,()/+-]*")
PLAIN_TAG: Final = re.compile(r"[^\W\d][\w/-]*")
WORDS_OF_YAML: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
UNWRITABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
ITEM: Final = re.compile(r"\n(?P<indent>[ \t]*)-[ \t]")

BEFORE_VALUE: Final = {
    "yaml": re.compile(r"[^:\n]*:[ \t]*"),
    "toml": re.compile(r"[^=\n]*=[ \t]*"),
    "json": re.compile(r'"[^"]*"\s*:\s*'),
}
QUOTED: Final = re.compile(r"""(?s)"(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'""")
PLAIN_END: Final = re.compile(r"(?<=[ \t])#|\n|\Z")
COMMENTS: Final = re.compile(r"(?:#[^\n]*+)?+(?:\s++(?:#[^\n]*+)?+)*+")
OF_BLOCK: Final = ("|", ">")


class Entry(NamedTuple):
    """A field, or a comment or blank line, whose name is empty: its place in the text."""

    name: str
    start: int
    end: int


class Properties(NamedTuple):
    """The fields at the beginning of a text.

    Args:
        text: the whole text.
        form: how they are written.
        start: where the first field begins.
        after: where the rest of the text begins.
        entries: the fields, in order.
    """

    text: str
    form: Form
    start: int
    after: int
    entries: tuple[Entry, ...]

    @property
    def names(self) -> Set[str]:
        """The names of the fields, in lower case."""
        return {entry.name for entry in self.entries if entry.name}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but blank lines."""
        return not any(self.text[entry.start : entry.end].strip() for entry in self.entries)

    def find(self, name: str) -> Entry | None:
        """Return the first field of a name."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def written(self, name: str) -> str:
        """Return a field's text, or an empty string if it's missing."""
        entry = self.find(name)
        return self.text[entry.start : entry.end] if entry else ""

    def scalar(self, name: str) -> str:
        """Return the value of a field on one line, without quotation marks, or an empty string if it's missing."""
        _, _, value = self.written(name).partition("=" if self.form == "toml" else ":")
        return value.strip().strip("\"'")

    def read(self, names: Mapping[str, str]) -> FrontMatter:
        """Return what some fields mean, by the names under which they count."""
        fence = "+++" if self.form == "toml" else "---"
        lines = (re.sub(re.escape(name), to, self.written(name), count=1, flags=re.I) for name, to in names.items())
        written = filter(None, lines)  # YAML reads JSON without spaces only in braces
        fields = f"{{{', '.join(written)}}}\n" if self.form == "json" else "".join(written)
        return front_matter(f"{fence}\n{fields}{fence}\n")

    def without(self, name: str) -> str:
        """Return the text without the first field of a name."""
        entry = self.find(name)
        if entry is None:
            return self.text
        start, end = entry.start, entry.end
        if self.form == "json":
            at = self.entries.index(entry)
            if at + 1 < len(self.entries):
                end = self.entries[at + 1].start
            else:
                start = self.entries[at - 1].end if at else self.start
        return self.text[:start] + self.text[end:]

    def having(self, name: str, value: Value) -> str:
        """Return the text with a value for a field; a new field becomes the first one."""
        if entry := self.find(name):
            return self.text[: entry.start] + self._replaced(entry, value) + self.text[entry.end :]
        head, rest = self.text[: self.start], self.text[self.start :]
        if self.form != "json":
            return f"{head}{line_of(self.form, name, value)}{self._line_end}{rest}"
        before = SPACE.match(rest)
        space, comma = (before[0] if before else "", ",") if self.entries else ("", "")
        return f"{head}{space}{line_of(self.form, name, value)}{comma}{rest}"

    def saying(self, name: str, value: str) -> str:
        """Return the text with other words for a field that it has: its name, quotation marks and comments stay."""
        entry = self.find(name)
        if entry is None:
            return self.text
        written = self.text[entry.start : entry.end]
        head = BEFORE_VALUE[self.form].match(written)
        start = head.end() if head else 0
        end = _value_end(written, start)
        new = _quoted_as(self.form, written[start:end], value)
        before = " " if written[:start].endswith(":") and self.form == "yaml" else ""
        after = " " if written[end:].startswith("#") else ""
        return f"{self.text[: entry.start + start]}{before}{new}{after}{self.text[entry.start + end :]}"

    @property
    def _line_end(self) -> str:
        return "\r\n" if self.text[: self.start].endswith("\r\n") else "\n"

    def _replaced(self, entry: Entry, value: Value) -> str:
        """Return the lines of a field with another value, as a list below its name if it is one."""
        written = self.text[entry.start : entry.end]
        end = written[len(written.rstrip()) :] if self.form != "json" else ""
        item = ITEM.search(written)
        if not (item and self.form == "yaml" and isinstance(value, list)):
            return line_of(self.form, entry.name, value) + end
        head = written[: written.index("\n")].rstrip("\r")
        return self._line_end.join([head, *(f"{item['indent']}- {_yaml(tag, PLAIN_TAG)}" for tag in value)]) + end


def properties_of(text: str) -> Properties | None:
    """Return the fields at the beginning of a text, or None if there is no form that can have more of them."""
    if text.startswith("{"):
        return _json_properties(text)
    block = BLOCK.match(text)
    if not block:
        return None
    form: Form = "toml" if block["fence"] == "+++" else "yaml"
    if form == "toml" and not front_matter(text).is_understood:
        return None
    found = list(_toml_entries(block["inner"]) if form == "toml" else _yaml_entries(block["inner"]))
    if any(name is None for name, _ in found):
        return None
    entries, at = list[Entry](), block.end("open")
    for name, lines in found:
        entries.append(Entry(name or "", at, at + len(lines)))
        at += len(lines)
    return Properties(text, form, block.end("open"), block.end(), tuple(entries))


def has_other_form(text: str) -> bool:
    """Return whether a text begins with a block that cannot have fields, such as a list."""
    return BLOCK.match(text) is not None and properties_of(text) is None


def line_of(form: Form, name: str, value: Value) -> str:
    """Return a field with its value, without the end of the line."""
    if form == "yaml":
        return f"{name}: {_yaml_value(value)}"
    written = json.dumps(_clean(value), ensure_ascii=False)
    return f'"{name}": {written}' if form == "json" else f"{name} = {written}"


def _value_end(written: str, start: int) -> int:
    """Return where the value of a field ends, which begins at `start`: before comments, unless there are more lines."""
    quoted, plain = QUOTED.match(written, start), PLAIN_END.search(written, start)
    end = quoted.end() if quoted else plain.start() if plain else len(written)
    end = start + len(written[start:end].rstrip())
    if COMMENTS.fullmatch(written, end) and not written.startswith(OF_BLOCK, start):
        return end
    return start + len(written[start:].rstrip())


def _quoted_as(form: Form, former: str, value: str) -> str:
    """Return a value with the quotation marks of the former one, if they can enclose it."""
    value = UNWRITABLE.sub(" ", value)
    if former.startswith("'") and (form == "yaml" or "'" not in value):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    if form == "yaml" and not former.startswith('"'):
        return _yaml(value, PLAIN)
    return json.dumps(value, ensure_ascii=False)


def _clean(value: Value) -> Value:
    if isinstance(value, list):
        return [UNWRITABLE.sub(" ", each) for each in value]
    return UNWRITABLE.sub(" ", value) if isinstance(value, str) else value


def _yaml_value(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_yaml(tag, PLAIN_TAG) for tag in value)}]"
    return _yaml(value, PLAIN) if isinstance(value, str) else str(value)


def _yaml(value: str, plain: re.Pattern[str]) -> str:
    value = UNWRITABLE.sub(" ", value)
    if plain.fullmatch(value) and value.strip() == value and value.casefold() not in WORDS_OF_YAML:
        return value
    return json.dumps(value, ensure_ascii=False)


def _yaml_entries(inner: str) -> Iterator[tuple[str | None, str]]:
    """Yield each field's name and lines; the name is "" for a blank line or a comment, None for a line of neither."""
    name, lines, goes_on = "", "", False
    for line in LINE.findall(inner):
        if goes_on and line.startswith(CONTINUES):
            lines += line
            continue
        if lines:
            yield name, lines
        found = _name(line, "yaml")
        if found is None:
            yield None, line
            return
        name, lines, goes_on = found, line, goes_on or bool(found)
    if lines:
        yield name, lines


def _toml_entries(inner: str) -> Iterator[tuple[str | None, str]]:
    """Yield the fields before the first table, as `_yaml_entries` does; one without a name if a value is too long."""
    lines = list[str]()
    for line in LINE.findall(inner):
        if not lines and line.startswith("["):
            return
        lines.append(line)
        if len(lines) > MOST_LINES:
            yield None, ""
            return
        if _is_toml("".join(lines)):
            yield _name(lines[0], "toml") or "", "".join(lines)
            lines.clear()


def _is_toml(lines: str) -> bool:
    try:
        tomllib.loads(lines.replace("\r\n", "\n"))
    except (ValueError, RecursionError):
        return False
    return True


def _name(line: str, form: Form) -> str | None:
    """Return the name of a field that a line begins; "" for a blank line or a comment, None for another line."""
    if not line.strip() or line.startswith("#"):
        return ""
    entry = ENTRIES[form].match(line)
    return entry["name"].lower().strip("\"'") if entry else None


def _json_properties(text: str) -> Properties | None:
    try:
        values, after = json.JSONDecoder().raw_decode(text[:LONGEST])
        end = REST_OF_LINE.match(text, after)
        if not isinstance(values, dict) or not end:
            return None
        return Properties(text, "json", 1, end.end(), tuple(_members(text)))
    except (ValueError, RecursionError):
        return None


def _members(text: str) -> Iterator[Entry]:
    """Yield the members of the object at the beginning of a text."""
    decoder, at = json.JSONDecoder(), _after_space(text, 1)
    while text[at] != "}":
        name, end = decoder.raw_decode(text, at)
        _, end = decoder.raw_decode(text, _after_space(text, text.index(":", end) + 1))
        yield Entry(str(name).lower(), at, end)
        at = _after_space(text, end)


def _after_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return space.end() if space else at
