"""Show all tags as a tree; rename, merge and delete them."""

from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid, KbError
from kb.api.tag_tree import SEPARATOR, clean_tag, is_in_branch, split_tags
from kb_web.document_html import Row, plain
from kb_web.documents import number_in
from kb_web.notices import one_operation
from kb_web.pages import count, redirect, render
from kb_web.sessions import Visit

PAGE: Final = 200
INDENTED: Final = 3
"""The deepest level with an indentation of its own."""

SUGGESTED: Final = 500


async def tags(request: Request, visit: Visit) -> Response:
    """List the tags; a form renames a tag or deletes it."""
    if request.method != "POST":
        return await show(request, visit)
    form = await visit.form(request)
    tag, new, find = (str(form.get(name, "")) for name in ("tag", "new", "find"))
    place = "tags" + ("?" + urlencode({"find": find}) if find else "")
    try:
        async with one_operation(visit, place) as outcome:
            outcome.text = await change(visit, str(form.get("act", "")), tag, new.strip())
    except KbError as error:
        return await show(request, visit, error.status, edited=tag, find=find, wrong=error.detail, new=new)
    return redirect(visit, place)


async def change(visit: Visit, act: str, tag: str, new: str) -> str:
    """Rename or delete a tag; return the outcome in words.

    Raises:
        Invalid: the action does not exist, or the new name is not one name.
    """
    if act == "delete":
        done = await visit.engine.delete_tag(tag)
        text = f"Deleted the tag “{plain(tag, 80)}” from {count(done['documents'], 'document')}."
    elif act == "rename":
        if len(split_tags(new)) != 1:
            raise Invalid("new: enter one name, without commas.")
        new = clean_tag(new) or new
        known = {each["tag"] for each in (await visit.engine.tags())["tags"]}
        done = await visit.engine.rename_tag(tag, new)
        does, to = ("Merged", "into") if new in known else ("Renamed", "to")
        text = f"{does} “{plain(tag, 80)}” {to} “{plain(new, 80)}” in {count(done['documents'], 'document')}."
    else:
        raise Invalid("act: must be rename or delete.")
    if done["from_text"]:
        text += f" {count(done['from_text'], 'document')} got “{plain(tag, 80)}” from the text of the file: change it"
        text += " there too, or the next sync adds the tag again."
    return text


async def show(
    request: Request,
    visit: Visit,
    status: int = HTTPStatus.OK,
    *,
    edited: str | None = None,
    find: str | None = None,
    wrong: str | None = None,
    new: str | None = None,
) -> Response:
    """Show a page of the tags that contain a text, as a tree."""
    asked = request.query_params
    edited = asked.get("edit") if edited is None else edited
    find = (asked.get("find", "") if find is None else find).strip()
    every = sorted((await visit.engine.tags())["tags"], key=alphabetical)
    found = [each for each in every if find.casefold() in each["tag"].casefold()]
    if edited is None:
        start = number_in(asked.get("from")) or 0
    else:  # the page with the tag
        start = next((index for index, each in enumerate(found) if each["tag"] == edited), 0) // PAGE * PAGE
    shown = found[start : start + PAGE]
    return render(
        request,
        "tags.html",
        status,
        tags=[tag_row(each, every if each["tag"] == edited else ()) for each in shown],
        total=len(found),
        find=find,
        edited=edited,
        is_listed=any(each["tag"] == edited for each in shown),
        new=edited if new is None else new,
        wrong=wrong,
        known=[each["tag"] for each in every[:SUGGESTED]] if edited else [],
        earlier=link(find, max(0, start - PAGE)) if start else None,
        later=link(find, start + PAGE) if start + PAGE < len(found) else None,
    )


def alphabetical(each: Row) -> tuple[list[str], str]:
    """Return the key that sorts tags by their levels, without regard to case."""
    return [level.casefold() for level in each["tag"].split(SEPARATOR)], each["tag"]


def link(find: str, start: int) -> str:
    """Return the query of a page."""
    return "?" + urlencode({"find": find, "from": start} if find else {"from": start})


def tag_row(each: Row, every: tuple[Row, ...] | list[Row]) -> Row:
    """Return a tag for the list: its level, and the number of tags below it."""
    tag = each["tag"]
    below = sum(is_in_branch(other["tag"], tag) for other in every) - 1 if every else 0
    return {**each, "level": min(tag.count(SEPARATOR), INDENTED), "below": below, "shown": plain(tag, 200)}
