"""Find turns of phrase that the style sheet of CONTRIBUTING.md avoids: `python -m tests.docs.plain [FILE…]`.

Without files, check every text of the project against the patterns, exceptions and ceilings of plain.toml, and exit with 1 if
a file has more hits than its ceiling (0 unless listed) or an exception no longer matches. With files, show all their hits.
`--lower` sets each ceiling to the hits of today; it never raises one.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "tests/docs/plain.toml"
CEILING = "[ceiling]\n"

SKIPPED = ("src/kb/embed/models/calibration.txt", "docs/reference/")
"""Files with texts of others, and pages that are made from texts in src, which are checked there."""
PROGRAM = ("src/", "bench/", "compose/", "containers/", "systemd/", "packaging/", ".github/", ".ci/", "Makefile")
NOT_TEXT = r"```.*?```|`[^`\n]*`|<!--.*?-->"
JINJA = r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}"
TAGS = r"<[^>]+>"
ATTRIBUTES = r"\s(?:alt|aria-label|content|data-confirm|data-does|placeholder|title)=\"([^\"]*)\""
COMMENTS = {
    ".sql": r"--(.*)$",
    ".js": r"//(.*)$|/\*(.*?)\*/|'((?:[^'\\\n]|\\.)* (?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)* (?:[^\"\\\n]|\\.)*)\"|`([^`]* [^`]*)`",
    ".css": r"/\*(.*?)\*/",
}
OF_SHELL = r"(?:^|(?<=\s))#(?!!)(.*)$|\becho \"([^\"]*)\"|\becho '([^']*)'|^Description=(.*)$"


def texts(path, content):
    """Yield each text of a file for people, with the number of its first line."""
    kind = Path(path).suffix
    if kind == ".md":
        yield 1, blank(NOT_TEXT, content)
    elif kind == ".html":
        html = blank(JINJA, content)  # before the tags, because an expression may contain >
        yield 1, blank(TAGS, html)
        yield from ((html.count("\n", 0, each.start()) + 1, each[1]) for each in re.finditer(ATTRIBUTES, html))
        for each in re.finditer(JINJA, content):
            yield from (
                (content.count("\n", 0, each.start() + text.start()) + 1, text[1])
                for text in re.finditer(r"\"([^\"]*)\"", each[0])
                if " " in text[1]
            )
    elif kind == ".py":
        yield from texts_of_python(content)
    elif kind in (".txt", ".yaml") and path.startswith("src/"):
        yield 1, content
    else:
        found = re.compile(COMMENTS.get(kind, OF_SHELL), re.MULTILINE | (re.DOTALL if kind == ".css" else 0))
        yield from joined(
            (content.count("\n", 0, each.start()) + 1, next(group for group in each.groups() if group is not None))
            for each in found.finditer(content)
        )


def texts_of_python(content):
    """Yield the strings of a module that hold more than a word, and its comments."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    tokens = tokenize.generate_tokens(io.StringIO(content).readline)
    yield from joined((each.start[0], each.string.lstrip("#:")) for each in tokens if each.type == tokenize.COMMENT)


def joined(lines):
    """Join texts on consecutive lines, because a sentence may go on in the next comment."""
    first, block = 0, []
    for line, text in lines:
        if block and line != first + len(block):
            yield first, "\n".join(block)
            block = []
        first = first if block else line
        block.append(text)
    if block:
        yield first, "\n".join(block)


def blank(pattern, content):
    """Remove what matches, and keep the numbers of the lines."""
    return re.sub(pattern, lambda match: " " + "\n" * match[0].count("\n"), content, flags=re.DOTALL)


def group_of(path):
    """Return the group of texts that a file belongs to: docs, adr or program, or None for files that are not checked."""
    if path.startswith("docs/adr/"):
        return "adr"
    if path.endswith(".md") and (path.startswith(("docs/", "bench/")) or "/" not in path):
        return "docs"
    return "program" if path.startswith(PROGRAM) and not path.endswith((".json", ".svg", ".typed")) else None


class Rules:
    """The patterns and exceptions of plain.toml."""

    def __init__(self, config):
        """Compile the patterns. A blank in a pattern also matches the end of a line."""
        self.patterns = [(each, compiled(each["find"])) for each in config["pattern"]]
        self.allowed = config.get("allow", [])
        self.used = set()

    def hits(self, path, content):
        """Yield the line of each hit, its words, and the pattern."""
        group = group_of(path)
        found = {}
        for first, text in texts(path, content):
            exempt = list(self.exempt(path, text))
            for pattern, expression in self.patterns:
                if group not in pattern.get("in", [group]) or any(fnmatchcase(path, g) for g in pattern.get("not", [])):
                    continue
                for match in expression.finditer(text):
                    if not any(start <= match.start() and match.end() <= end for start, end in exempt):
                        line = first + text.count("\n", 0, match.start())
                        found[line, match.start(), pattern["name"]] = " ".join(match[0].split()), pattern
        yield from ((line, *hit) for (line, _, _), hit in sorted(found.items()))

    def exempt(self, path, text):
        """Yield the places of a text that an exception covers, and note the exception as used."""
        for number, each in enumerate(self.allowed):
            if fnmatchcase(path, each["file"]):
                for match in re.finditer(r"\s+".join(map(re.escape, each["text"].split())), text):
                    self.used.add(number)
                    yield match.span()


def compiled(expression):
    """Compile a pattern in which a blank outside brackets may be a line's end with the next line's indent."""
    return re.compile(re.sub(r"(?<![\[?]) (?![\])])", r"(?: +| *\\n *)", expression), re.MULTILINE)


def checked_files():
    """Return the tracked files that are checked."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [
        path
        for path in listed.stdout.splitlines()
        if not path.startswith(SKIPPED) and group_of(path) and (ROOT / path).is_file()
    ]


def lower(ceiling, counts):
    """Write each ceiling, never higher than before."""
    lowered = {path: min(most, counts[path]) for path, most in ceiling.items()}
    head = CONFIG.read_text().partition(CEILING)[0]
    lines = [f'"{path}" = {most}\n' for path, most in sorted(lowered.items()) if most]
    CONFIG.write_text(head + CEILING + "".join(lines) if lines else head.rstrip() + "\n")


def main(arguments):
    config = tomllib.loads(CONFIG.read_text())
    rules, ceiling = Rules(config), config.get("ceiling", {})
    named = [each for each in arguments if each != "--lower"]
    found = {path: list(rules.hits(path, (ROOT / path).read_text())) for path in named or checked_files()}
    if "--lower" in arguments:
        lower(ceiling, Counter({path: len(hits) for path, hits in found.items()}))
        return 0
    over = {path: hits for path, hits in found.items() if hits and (named or len(hits) > ceiling.get(path, 0))}
    for path, hits in over.items():
        for line, words, pattern in hits:
            print(f"{path}:{line}: '{words}' ({pattern['name']}): {pattern['write']}")
        print(f"{path}: {len(hits)} hits, {ceiling.get(path, 0)} allowed")
    unused = [] if named else [each for n, each in enumerate(rules.allowed) if n not in rules.used]
    for each in unused:
        print(f"plain.toml: the exception {each['text']!r} in {each['file']} matches nothing; remove it")
    return 1 if over or unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
