"""Optional fields of a note. docs/architecture.md shows how to add one.

`OptionalFields` in `kb.store.rows` has the same fields as columns; `kb.wording` has the words before their values.
"""

from typing import Annotated

from pydantic import Field

from kb.api.fields import GivenDay, Reply, Request, Source


class OptionalFieldsRequest(Request):
    """The fields as a sender gives them, and as an export has them."""

    source: Annotated[Source | None, Field(description="The origin of the note: a URL, a book or a person.")] = None
    valid_until: Annotated[
        GivenDay | None, Field(description="The last day on which the note is true. After that, it ranks below others.")
    ] = None


class OptionalFieldsReply(Reply):
    """The fields in answers. Give a new field a default, so that answers of an older engine stay valid."""

    source: str | None
    valid_until: str | None = None
