"""kb keys and kb audit."""

from typing import Annotated, Any, Literal

from kb.api.date_parsing import moment
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.completion import complete_actions
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, argument, given_tags, option
from kb_cli.sync.folder_names import meant_path

MAKE = "make"
ROTATE = "rotate"
REVOKE = "revoke"
END = "end"
WORDS = 2


def keys(
    words: Annotated[
        list[str] | None,
        argument(
            "make NAME | rotate NAME | revoke NAME | end ID",
            "An action, and the name of a key, such as laptop-agent, or the ID of a program.",
            complete=complete_actions(MAKE, ROTATE, REVOKE, END),
        ),
    ] = None,
    right: Annotated[
        Literal["read", "write", "admin"], option("--right RIGHT", "The right of a new key: read, write or admin.")
    ] = "read",
    tags: Annotated[
        list[str] | None, option("--tags A,B", "Limit a new key to documents with one of these tags: work,taxes.")
    ] = None,
    path: Annotated[
        str | None, option("--path FOLDER", "Limit a new key to documents below this path, such as ~/work.")
    ] = None,
    reads_all: Annotated[
        bool, option("--reads-all", "Let a new key read all documents; --tags and --path only limit what it writes.")
    ] = False,
    expires: Annotated[
        str | None, option("--expires DATE", "The day or time when a new key expires: 2027-01-31.")
    ] = None,
    per_minute: Annotated[
        int | None, option("--calls N", "How many requests a new key can make per minute.", min=1)
    ] = None,
    grace: Annotated[
        int, option("--grace MINUTES", "How many minutes the old key stays valid after a rotation.", min=0)
    ] = 0,
    json: Json = False,
) -> None:
    """List, make, rotate and revoke keys with rights, and disconnect programs that signed in with them.

    kb prints a key only once, when you make or rotate it, and stores only its hash. This works if the engine has a
    KB_API_KEY and you use that key, or one with the admin right.
    """
    if not words:
        return list_keys(json=json)
    if len(words) != WORDS or words[0] not in (MAKE, ROTATE, REVOKE, END):
        raise exit_codes.UsageError(
            "Use 'make', 'rotate' or 'revoke' with the name of one key, as in 'kb keys make laptop-agent', or 'end'"
            " with the ID of a program."
        )
    action, name = words
    if action == END:
        answer = call(lambda client: client.end_grant(name))
    elif action == REVOKE:
        answer = call(lambda client: client.revoke_key(name))
    elif action == ROTATE:
        answer = call(lambda client: client.rotate_key(name, grace_minutes=grace))
    else:
        meant = path and meant_path(path)
        until = moment(expires, "--expires", None) if expires else None
        answer = call(
            lambda client: client.make_key(
                name,
                right=right,
                tags=given_tags(tags),
                path=meant,
                expires_at=until,
                per_minute=per_minute,
                reads_all=reads_all,
            )
        )
    return output.print_json(answer) if json else report(action, name, answer)


def report(action: str, name: str, answer: dict[str, Any]) -> None:
    if action == END:
        output.print_line(f"{answer['client_name']} is disconnected")
    elif action == REVOKE:
        output.print_line(f"key {name} is no longer valid")
    else:
        output.print_error(f"key {name} may {described(answer)}; kb shows it only once:")
        output.print_line(answer["key"])


def list_keys(*, json: bool) -> None:
    """Print the keys, and below them the programs that signed in with keys."""
    answer = call(lambda client: client.keys()) | call(lambda client: client.grants())
    output.print_list(answer, "keys", KEY_COLUMNS, NO_KEYS, json=json)
    if answer["grants"] and not json:
        output.print_line("")
        output.print_list(answer, "grants", GRANT_COLUMNS, json=False)


def audit(
    document: Annotated[int | None, option("--document ID", "Only changes to the document with this ID.")] = None,
    by: Annotated[str | None, option("--by NAME", "Only changes by the key with this name.")] = None,
    limit: Annotated[int, option("-n N", "The maximum number of lines.", min=1)] = 50,
    json: Json = False,
) -> None:
    """Show all changes, with their time and key, newest first.

    Each line contains the time, the key, the client, the action, and the document, job or key. The log contains
    none of the documents' content. KB_AUDIT_DAYS sets how long kb keeps it.
    """
    answer = call(lambda client: client.audit(document_id=document, by=by, limit=limit))
    nothing = "the log has no such change" if by or document else "the log has no changes"
    output.print_list(answer, "lines", LINE_COLUMNS, nothing, json=json)


def described(key: dict[str, Any]) -> str:
    tags = f" documents tagged {' or '.join(key['tags'])}" if key["tags"] else ""
    path = f" under {key['path']}" if key["path"] else ""
    until = f" until {output.format_time(key['expires_at'])}" if key.get("expires_at") else ""
    calls = f" {key['per_minute']} times per minute" if key.get("per_minute") else ""
    right = "read all, write" if key.get("reads_all") else key["right"]
    return f"{right}{tags}{path}{calls}{until}"


def subject(line: dict[str, Any]) -> str:
    if line["key"]:
        return f"key {line['key']}"
    return f"job {line['job_id']}" if line["job_id"] else f"document {line['document_id']}"


KEY_COLUMNS: output.Columns = {
    "NAME": "name",
    "RIGHTS": described,
    "MADE": "created_at",
    "LAST USED": lambda key: output.format_time(key["used_at"]) or "never",
}
GRANT_COLUMNS: output.Columns = {
    "PROGRAM": "client_name",
    "KEY": "key_name",
    "MAY": lambda grant: "write" if "write" in grant["scopes"] else "read",
    "LAST USED": lambda grant: output.format_time(grant["used_at"]) or "never",
    "ID": "id",
}
NO_KEYS = "no keys with rights exist; make one with 'kb keys make NAME'"
LINE_COLUMNS: output.Columns = {"TIME": "at", "KEY": "by", "CLIENT": "client", "ACTION": "action", "WHAT": subject}
