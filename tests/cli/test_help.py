"""Each command's help, as it was when someone last read it: `KB_GOLDEN=1 pytest tests/cli/test_help.py` writes it anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, get_args

import pytest
import typer
from typer.core import TyperArgument, TyperOption
from typer.main import get_command

from kb.api import fields
from kb.client import client
from kb_cli.commands.jobs import Status
from kb_cli.main import COMMANDS, LazyCommands
from kb_cli.runtime.convert import Coercion

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.requirement("L-2")
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_reads_as_it_was_read(outside, command):
    ended = outside(*command.split(), "--help", env={"COLUMNS": "80", "TERM": "dumb"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert max(map(len, ended.stdout.splitlines())) <= 80
    golden = GOLDEN / f"kb {command}".strip()
    if os.environ.get("KB_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.with_name(f"{golden.name}.txt").write_text(ended.stdout)
    assert golden.with_name(f"{golden.name}.txt").read_text() == ended.stdout


def test_the_states_of_jobs_are_the_engines():
    assert get_args(Status) == get_args(fields.JobStatus)
    assert set(client.ENDED) == fields.ENDED


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("kb upd", ["updatenote"]),
        ("kb list --type mark", ["markdown"]),
        ("kb jobs --status r", ["running"]),
        ("kb mcp cur", ["cursor"]),
        ("kb jobs d", ["drop", "dismiss"]),
        ("kb jobs dismiss d", []),
        ("kb keys ro", ["rotate"]),
        ("kb backup v", ["verify"]),
        ("kb service u", ["uninstall"]),
        ("kb reembed ro", ["rollback"]),
    ],
)
def test_values_are_completed(outside, words, offered):
    env = {"_KB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert outside(env=env).stdout.split() == offered


def test_tags_are_completed_behind_a_comma_and_a_silent_engine_offers_none(kb, outside, tag):
    kb.note(tag, "--tags", tag)
    env = {"_KB_COMPLETE": "complete_bash", "COMP_WORDS": f"kb search --tags a,{tag[:8]}", "COMP_CWORD": "3"}
    assert kb(env=env).stdout.split() == [f"a,{tag}"]
    ended = outside(env=env | {"KB_ENGINE_URL": "http://127.0.0.1:9"})
    assert (ended.stdout.split(), ended.stderr) == ([], "")


def test_the_words_of_every_command_are_converted_here():
    for command in LazyCommands(COMMANDS).values():
        parameters = command.get_params(typer.Context(command))
        for parameter in parameters:
            if isinstance(parameter, (TyperArgument, TyperOption)) and parameter.name != "help":
                assert isinstance(parameter.get_runtime_param(), Coercion), (command.name, parameter.name)


def test_typer_by_itself_still_converts_with_pydantic():
    program = """
import sys, typer
app = typer.Typer(add_completion=False)
@app.command()
def main(word: str): print("pydantic" in sys.modules)
app(["x"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n", "Typer converts without pydantic: Coercion can go"


def test_typer_by_itself_still_shows_pythons_types_of_arguments():
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    def main(words: Annotated[list[str], typer.Argument(metavar="WORDS")]):
        pass

    command = get_command(app)
    shown = command.get_help(typer.Context(command))
    assert "list[str]" in shown, "Typer leaves Python's types out: hide_type can go"


def test_a_command_of_an_earlier_build_names_its_replacement(outside):
    ended = outside("migrate-store")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "use 'kb export' and 'kb import'" in ended.stderr
