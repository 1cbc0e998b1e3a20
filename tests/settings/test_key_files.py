"""Marks of encodings, line ends and blanks in a file of keys do not matter; an emptied file opens nothing."""

from __future__ import annotations

import logging

import pytest

from kb.api.errors import SettingError
from kb.asgi.key_check import SecretFile
from kb.settings import keys_in

KEY = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "raw",
    [
        f"{KEY}\n".encode(),
        f"{KEY}\r\n".encode(),
        f"\ufeff{KEY}\r\n".encode(),
        f"  {KEY} \t\n".encode(),
        f"\n\n# the key\n{KEY}".encode(),
        f"{KEY}\r\n".encode("utf-16"),
        f"\ufeff# made by PowerShell\r\n{KEY}\r\n".encode("utf-16-be"),
    ],
    ids=["plain", "crlf", "bom", "blanks", "comment", "utf-16", "utf-16-be"],
)
def test_the_key_is_found_whatever_program_wrote_the_file(tmp_path, raw):
    (tmp_path / "keys").write_bytes(raw)
    assert keys_in(tmp_path / "keys") == [KEY]
    assert SecretFile(tmp_path / "keys", "KB_API_KEY_FILE").identify(KEY)


@pytest.mark.parametrize("raw", [b"", b"\n \n", b"# nothing\n", "clé\n".encode(), b"two words\n", b"\xff\xfe"])
def test_a_file_without_a_usable_key_is_refused_at_the_start(tmp_path, raw):
    (tmp_path / "keys").write_bytes(raw)
    with pytest.raises(SettingError, match="KB_API_KEY_FILE"):
        SecretFile(tmp_path / "keys", "KB_API_KEY_FILE")


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe\x00", "é".encode()])
def test_a_file_that_is_emptied_or_broken_later_opens_nothing(tmp_path, raw):
    (tmp_path / "keys").write_text(KEY)
    file = SecretFile(tmp_path / "keys", "KB_API_KEY_FILE")
    (tmp_path / "keys").write_bytes(raw)
    assert file.identify(KEY)
    assert not file.identify("")


def test_quotes_are_a_part_of_the_key_and_the_log_says_so(tmp_path, caplog):
    (tmp_path / "keys").write_text(f'"{KEY}"\n')
    with caplog.at_level(logging.WARNING):
        assert keys_in(tmp_path / "keys") == [f'"{KEY}"']
    assert "in quotes" in caplog.text
    assert KEY not in caplog.text
