"""The tests that a change is likely to break: `python -m tests.changed COMMIT` prints what pytest is to run.

Chosen are the changed tests, the tests that import a changed module, directly or through others, and those named for it. An
import does not count through the modules that put the whole program together, for through them everything imports everything.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PACKAGES = ("kb", "kb_mcp", "kb_web", "kb_cli")
COMPOSING = {
    "kb.core",
    "kb.app",
    "kb.routes",
    "kb_web.app",
    "kb_mcp.app",
    "kb_mcp.server",
    "kb_cli.main",
    "kb_cli.server",
}
"""The modules that put the program together; tests of the whole find a change by its name."""

BY_NAME = re.compile(rf'"((?:{"|".join(PACKAGES)})(?:\.\w+)+):\w+"')
"""A module that is imported when it is needed, as the commands are."""


def main():
    since = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    paths = changed_paths(since)
    print(*sorted(tests_of(paths)), sep="\n")


def changed_paths(since):
    """The files that differ from a commit, those that git does not know yet among them."""
    commands = (["git", "diff", "--name-only", since], ["git", "ls-files", "--others", "--exclude-standard"])
    shown = (
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout for command in commands
    )
    return {Path(line) for each in shown for line in each.splitlines()}


def tests_of(paths):
    """The test files to run for changed files, as paths from the root."""
    test_files = [path.relative_to(ROOT) for path in sorted(ROOT.glob("tests/*/test_*.py"))]
    imports = {path: imported_by(ROOT / path) for path in test_files}
    reached = importers_of({name for path in paths for name in modules_of(path)})
    reached |= {module_name(path) for path in paths if path.parts[0] == "tests"}
    words = {word for path in paths if path.parts[0] == "src" for word in words_of(path)}
    return {
        str(path)
        for path in test_files
        if path in paths or imports[path] & reached or words & set(path.stem.split("_")) or path.parent.name in words
    }


def modules_of(path):
    """The modules that a changed file of the program is, or that name it: a template, a statement."""
    if path.parts[0] != "src":
        return set()
    if path.suffix == ".py":
        return {module_name(path.relative_to("src"))}
    room = next(parent for parent in (ROOT / path).parents if (parent / "__init__.py").exists())
    sources = room.rglob("*.py")
    return {
        module_name(source.relative_to(ROOT / "src")) for source in sources if path.stem in source.read_text("utf-8")
    }


def importers_of(modules):
    """These modules and those that import them, directly or not."""
    graph = grimp.build_graph(*PACKAGES)
    for module in graph.modules & {module_name(path.relative_to(ROOT / "src")) for path in ROOT.glob("src/**/*.py")}:
        source = ROOT / "src" / f"{module.replace('.', '/')}.py"
        for name in BY_NAME.findall(source.read_text("utf-8")) if source.exists() else ():
            graph.add_import(importer=module, imported=name)
    reached, added = set(modules), set(modules)
    while added:
        importers = {each for name in added & graph.modules for each in graph.find_modules_that_directly_import(name)}
        added = importers - reached - COMPOSING
        reached |= added
    return reached


def imported_by(path, seen=frozenset()):
    """The modules that a test imports, those of its helpers among them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for name in names - seen:
        helper = ROOT / f"{name.replace('.', '/')}.py"
        if name.startswith("tests.") and not name.endswith("conftest") and helper.exists():
            names |= imported_by(helper, seen | names)
    return names


def words_of(path):
    """The words by which tests and their folders are named for a file: `web` and `search` for `web/templates/search.html`."""
    return {word for part in (*path.parts[2:-1], path.stem) for word in re.split(r"[_.]", part) if len(word) > 2}


def module_name(path):
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


if __name__ == "__main__":
    main()
