"""What to say when nothing was found: most often a word is misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kb_cli.runtime.options import Filters


HOW_TO_ADD: Final = "'kb add FOLDER' brings files in, and 'kb addnote' a note"
EMPTY: Final = f"no document is here yet; {HOW_TO_ADD}"


def explain_nothing(filters: Filters) -> str:
    """Return why no document passes the filters, as far as that can be known; nothing if it cannot."""
    from kb_cli.runtime.call import call
    from kb_cli.runtime.completion import fetch_tags
    from kb_cli.runtime.options import nearest, split_tags

    wanted = split_tags([*(filters.tags or []), *(filters.any_tag or [])])
    tags = fetch_tags() if wanted else []
    for tag in wanted:
        if tag not in tags:
            return f"no document has the tag {tag!r}{nearest(tag, tags)}"
    if any(vars(filters).values()):
        return "no document passes these filters"
    return "" if call(lambda client: client.count_documents()) else EMPTY
