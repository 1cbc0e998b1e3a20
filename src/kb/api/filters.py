"""The filters of lists and searches. Those that both have are declared once, in the models at the end.

`kb.store.rows.Filter` has a field of the same name for each of them.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, Field

from kb.api.fields import DayBound, DocType, Instant, SourcePath
from kb.api.limits import MAX_NAME

ALL_TAGS: Final = Field(
    description="Only documents with all of these tags. Each tag includes the tags below it: `projects` matches"
    " `projects/kiln`."
)
ANY_TAG: Final = Field(description="Only documents with at least one of these tags or the tags below them.")
NO_TAG: Final = Field(description="Only documents with none of these tags and none of the tags below them.")

SourcePrefix = Annotated[
    SourcePath, Field(description="Only documents whose `source_path` begins with this text, such as `docs/`.")
]
SourcePart = Annotated[
    SourcePath,
    Field(description="Only documents whose `source_path` contains this text; the case of ASCII letters is ignored."),
]
Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        description="Only files with this name (without folders) and notes with this title; `*` and `?` are wildcards.",
    ),
]
IdPrefix = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,17}$", description="Only documents whose id begins with these digits.")
]
Lang = Annotated[
    str,
    Field(pattern=r"^[A-Za-z]{2}$", description="Only documents in this language, as an ISO 639-1 code such as `de`."),
    AfterValidator(str.lower),
]
Author = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        description="Only documents last changed by the key or program with this name, and notes with this `source`;"
        " case is ignored.",
    ),
]


class PathFilters(BaseModel):
    source_path: SourcePath | None = None
    source_prefix: SourcePrefix | None = None
    name: Name | None = None


class Filters(BaseModel):
    """The other filters that a list and a search share, except those for tags: they have defaults of their own."""

    tag_exact: Annotated[bool, Field(description="Leave out the tags below those in the filters.")] = False
    doc_type: DocType | None = None
    lang: Lang | None = None
    by: Author | None = None
    created_after: Annotated[Instant | None, Field(description="Only documents created at or after this time.")] = None
    created_before: Annotated[Instant | None, Field(description="Only documents created before this time.")] = None
    updated_after: Annotated[
        Instant | None,
        Field(
            description="Only documents changed at or after this time. For documents that never changed, their"
            " creation counts."
        ),
    ] = None
    after: Annotated[
        DayBound | None,
        Field(
            description="Only documents dated on or after this day; without `before`, also notes changed since then."
            " Without a date, the last change or the creation counts."
        ),
    ] = None
    before: Annotated[
        DayBound | None,
        Field(
            description="Only documents dated before this day. Without a date, the last change or the creation counts."
        ),
    ] = None


SHARED: Final[tuple[str, ...]] = (*PathFilters.model_fields, *Filters.model_fields)
