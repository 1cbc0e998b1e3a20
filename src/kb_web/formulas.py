"""Formulas in LaTeX, as MathML: browsers draw it without a script."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

if TYPE_CHECKING:
    from math_core import LatexToMathML

MAX_CHARS: Final = 4_000
"""Longer formulas stay text: each letter takes ten times its size as MathML."""

STYLE: Final = re.compile(r' style="text-align: (left|right)[^"]*"| style="[^"]*"')


def mathml(formula: str, *, is_block: bool) -> Markup | None:
    """Return a formula as MathML, or None if it is too long or has a mistake."""
    from math_core import LatexError

    if len(formula) > MAX_CHARS:
        return None
    try:
        drawn = _converter().convert_with_local_state(formula, displaystyle=is_block)
    except LatexError:
        return None
    # The pages allow no style attributes.
    return Markup(STYLE.sub(lambda style: f' class="to-{style[1]}"' if style[1] else "", drawn))  # noqa: S704 - escaped


@cache
def _converter() -> LatexToMathML:
    from math_core import LatexToMathML

    return LatexToMathML(ignore_unknown_commands=True)
