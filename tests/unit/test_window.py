"""A section is found by its heading, as are those that share a passage."""

import pytest

from kb.documents.window import Place, window
from kb.store.rows import ChunkPlace

HEADINGS = [
    ("7. Term", "7.2 End"),
    ("7. Term – 8. Closing words",),
    ("8. Closing words", "8.1 Law"),
    ("8. Closing words", "8.1 Law"),
    ("Chapter 9 – Maps",),
    ("Chapter 9 – Maps",),
]
PLACES = [ChunkPlace(number + 1, number, heading, None) for number, heading in enumerate(HEADINGS)]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("7. Term", (0, 2)),
        ("8. closing words", (1, 3)),
        ("closing", (1, 3)),
        ("7. Term – 8. Closing words", (1, 1)),
        ("8.1 Law", (2, 2)),
        ("Chapter 9 – Maps", (4, 2)),
        ("Maps", (4, 2)),
    ],
)
def test_a_section_is_found_with_the_passages_that_it_shares(heading, expected):
    assert window(PLACES, 1, Place(heading=heading), 0) == expected
