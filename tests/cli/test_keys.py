from __future__ import annotations


def test_keys_are_made_listed_rotated_and_revoked(kb):
    made = kb("keys", "make", "from-the-shell", "--right", "write", "--tags", "a,b", "--path", "/notes")
    token = made.stdout.strip()
    assert token.startswith("kb_")
    assert "write documents with a tag of a, b under /notes/" in made.stderr
    [row] = [line.split("\t") for line in kb("keys").stdout.splitlines() if line.startswith("from-the-shell")]
    assert row[1] == "write documents with a tag of a, b under /notes/"
    assert row[3] == "never"
    assert kb("keys", "make", "from-the-shell").returncode == 6
    rotated = kb.json("keys", "rotate", "from-the-shell")
    assert rotated["key"].startswith("kb_")
    assert rotated["key"] != token
    assert kb("keys", "revoke", "from-the-shell").returncode == 0
    assert kb("keys", "revoke", "from-the-shell").returncode == 5
    for wrong in (["make"], ["revoke", "a", "b"], ["give", "a"]):
        assert kb("keys", *wrong).returncode == 2, wrong
    actions = [line["action"] for line in kb.json("audit")["lines"] if line["key"] == "from-the-shell"]
    assert actions == ["key-revoke", "key-rotate", "key-make"]


def test_the_audit_log_shows_who_changed_a_document(kb, tag):
    note = kb.note(f"The {tag} is lit at six.", "--tags", tag)
    kb("tag", note, "--add", "seen")
    rows = [line.split("\t") for line in kb("audit", "--document", note).stdout.splitlines()]
    assert [row[3] for row in rows] == ["retag", "add"]
    assert {row[4] for row in rows} == {f"document {note}"}
    assert rows[0][2].endswith("(cli)")
    assert tag not in kb("audit").stdout
