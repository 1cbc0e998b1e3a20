"""The examples of the docs work as shown."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.docs.blocks import RUN, WRITTEN, blocks, to_run

REASONS = ("needs ", "runs ", "installs ", "run in ")


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in WRITTEN if to_run(page)], ids=lambda page: page.stem)
def test_what_a_page_shows_runs_from_its_first_block_to_its_last(page, run_in_home):
    shown = to_run(page)
    if not shutil.which("curl") and any("curl " in block.text for block in shown):
        pytest.skip("there is no curl here")
    ended = run_in_home("".join(map(script, shown)))
    began = [line for line in ended.stderr.splitlines() if line.startswith("at ")]
    assert ended.returncode == 0, f"{began[-1]}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    assert len(began) == len(shown)


def script(block):
    """A block as a part of a script that says where it is."""
    text = f"python3 - <<'BLOCK'\n{block.text}BLOCK\n" if block.language == "python" else block.text
    return f"echo 'at {block.place}' >&2\n{text}"


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_a_block_that_does_not_run_here_says_why(page):
    for block in blocks(page):
        if block.reason:
            mark, _, reason = block.reason.partition(": ")
            assert (block.language in RUN, mark) == (True, "notest"), block.place
            assert reason.startswith(REASONS), block.place


LITERAL = re.compile(
    r"\bkb (?:get|tag|delete|updatenote|history|revert|restore|links|similar|undo) \d"
    r"|(?:documents|notes)/\d|--replaces \d|document_id\W+\d"
)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_nothing_that_can_be_pasted_names_a_document_of_the_reader_or_purges_without_a_question(page):
    for block in blocks(page):
        if block.language in RUN:
            assert not LITERAL.search(block.text), block.place
            assert not any("--yes" in line and "--purge" in line for line in block.text.splitlines()), block.place


def test_every_block_has_a_known_language():
    for page in WRITTEN:
        for block in blocks(page):
            assert block.language in (*RUN, "text", "yaml", ""), block.place


OF_SERVERS = (
    "backup.md",
    "check.md",
    "containers.md",
    "export.md",
    "models.md",
    "postgresql.md",
    "proxy.md",
    "scale.md",
    "systemd.md",
    "upgrade.md",
)


def test_few_blocks_are_left_out():
    left_out = [block for page in WRITTEN for block in blocks(page) if block.reason.startswith("notest")]
    elsewhere = [block for block in left_out if block.page.name not in OF_SERVERS]
    assert len(elsewhere) <= 8, [block.place for block in elsewhere]
