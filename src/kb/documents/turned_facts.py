"""Whether a note with the words of another one says something else: a negation, an opposite, a unit, other roles."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Final, NamedTuple

from kb.index.words.function_words import BY_LANGUAGE, FUNCTION_WORDS

MOST_WORDS: Final = 150
"""A longer sentence says the same only if it has its words in the same order."""

MONEY: Final = r"$¢£¥\u20a0-\u20cf"
TOKEN: Final = re.compile(
    rf"(?P<word>[^\W_]+(?:['\u2019][^\W_]+)*)(?P<possessive>['\u2019](?!\w))?|[{MONEY}%\u2030\u00b0]"
)
UNIT: Final = re.compile(
    r"(?<![\w.,:])\d(?:[.,:]?\d)*+"
    rf"(?:\s?([{MONEY}%\u2030\u00b0]\s?\w?|[^\W\d_]+(?:/[^\W\d_]+)?)|(['\"\u2032\u2033]))"
)
"""A unit after a number; a quotation mark is a foot or an inch."""

SYMBOL: Final = re.compile(
    r"(?m)(?<!^)[<>]|[\u2190-\u21ff\u2260\u2264\u2265\u2610-\u2612\u2713-\u2718]|!=|(?<=\w)(?:[+#]|-(?!\w))"
)
"""Signs that stand for words: > and <, arrows, marks of lists, and the last one of C++, C# and A-."""

ORDERING: Final = re.compile(r"(?m)(?<!^)[<>=]|[\u2190-\u21ff\u2264\u2265]")
"""Signs between words whose order matters."""

JOINED: Final = re.compile(r"(?<![^\W_])([^\W_]++)\s?[-\u2013\u2014/:]\s?(?=([^\W_]++))")
"""Two words around a dash, as those of a route."""

JOINT_OWNER: Final = re.compile(r"\b(\w+) and (?=\w+['\u2019]s\b)")
CURRENCY: Final = re.compile(f"[{MONEY}]")
SHORT_UNIT: Final = 4
"""Case distinguishes units this short, such as Mb and MB, also before a slash."""

NEGATING: Final = """
    no not never cannot neither nor without nicht kein keine keinen nie ohne pas jamais sans aucun nunca sin ningún non
    mai senza niet geen nooit zonder
"""
NEGATIONS: Final = frozenset(NEGATING.split())
STATE: Final = re.compile(r"\b(?:was|were) (?:an?|the|my|our|your|his|her|their)\b", re.IGNORECASE)
"""What has ended, unlike *was done*."""

SIGN: Final = """
    not nobody none nothing only nur almost nearly unless former formerly ex until from against between through before
    after since during under below beneath over above off out other again about
"""
SIGNS: Final = frozenset(SIGN.split())
"""Words that both notes have, or neither: they turn what a sentence says. *Not* stands for all negations."""

OPPOSITES: Final = tuple(
    tuple(frozenset(side.split()) for side in line.split("|"))
    for line in """
        from|to
        in into inside|out outside|on onto|off|under below beneath|over above
        on at in|by|before|after|from|until|since|during
        and|or|to through
        with|without
        up|down
        more|less fewer
        first|last
        least minimum min|most maximum max
        all every each both|most|some several any|few
        is are am has have do does|was were had did used been
        will shall|was were had did used been
        i|me
        we|us
        he|him
        they|them
        i me my mine|you your yours|he him his|she her hers|we us our ours|they them their theirs
        mr|mrs ms miss
        can may|must
        yes|no
    """.strip().splitlines()
)
"""Groups of words that exclude each other: notes differ if each has one that the other lacks."""

SILENT: Final = """
    a an the is are was were be been am do does did has have had will and or also what
    der die das den dem des ein eine einen einem einer eines le la les un une el los las una il lo gli het een
"""
UNMARKED: Final = frozenset(SILENT.split())
"""Function words that say nothing about the role of the next word."""


PREPOSITIONS: Final = frozenset({"next", "near", "behind", "beside", "opposite"})
"""Further words before a place."""

ENDING: Final = re.compile(r"(?<=\w{3})(?:e?s|ed|ing)$")


SENTENCE_ENDS: Final = ".!?:;#*-\n"


class Role(NamedTuple):
    """The place of a word among the other content words, the function word before it, and whether it is a name."""

    place: int
    marker: str
    is_name: bool | None


def is_turned(new: str, known: str) -> bool:
    """Return whether a text has another negation, opposite, unit or order of roles than one with the same words."""
    words, known_words = set(_words(new)), set(_words(known))
    return (
        SIGNS & words != SIGNS & known_words
        or bool(STATE.search(new)) != bool(STATE.search(known))
        or any(_are_opposite(words, known_words, line) for line in OPPOSITES)
        or _has_other_function_words(words, known_words)
        or _has_other_unit(new, known)
        or sorted(SYMBOL.findall(new)) != sorted(SYMBOL.findall(known))
        or _is_reordered(new, known, is_passive=("by" in words) != ("by" in known_words))
    )


def _words(text: str) -> Iterator[str]:
    """Yield the words in lower case, with *not* for each negation."""
    for match in TOKEN.finditer(text.lower()):
        word = match[0].replace("\u2019", "'").removesuffix("'s")
        yield from (word.removesuffix("n't"), "not") if word.endswith("n't") else (word,)
        if word in NEGATIONS:
            yield "not"


def _are_opposite(words: set[str], known: set[str], sides: Sequence[frozenset[str]]) -> bool:
    there, before = ([bool(side & each) for side in sides] for each in (words - known, known - words))
    return any(
        one and other for number, one in enumerate(there) for place, other in enumerate(before) if place != number
    )


def _has_other_function_words(words: set[str], known: set[str]) -> bool:
    """Return whether texts in another language than English differ in a function word: each may be an opposite."""
    spoken = _function_words([*words, *known])
    return spoken is not BY_LANGUAGE["en"] and not (words ^ known).isdisjoint(spoken - UNMARKED)


def _function_words(words: Sequence[str]) -> frozenset[str]:
    return max(BY_LANGUAGE.values(), key=lambda each: sum(word in each for word in words))


def _has_other_unit(new: str, known: str) -> bool:
    units, known_units = _units(new), _units(known)
    return bool(units - known_units and known_units - units) or {*CURRENCY.findall(new)} != {*CURRENCY.findall(known)}


def _units(text: str) -> set[str]:
    units = (re.sub(r"\s", "", match[1] or match[2]) for match in UNIT.finditer(text))
    return {
        unit if len(unit.partition("/")[0]) <= SHORT_UNIT else unit.lower()
        for unit in units
        if unit not in BY_LANGUAGE["en"]
    }


def _is_reordered(new: str, known: str, *, is_passive: bool) -> bool:
    order, known_order = list(_words(new)), list(_words(known))
    if order == known_order:
        return False
    if len(order) > MOST_WORDS or ORDERING.search(new) or _joined(new) & {pair[::-1] for pair in _joined(known)}:
        return True
    if any(count > 1 for word, count in Counter(order).items() if word not in FUNCTION_WORDS):
        return True  # such a word has several roles
    roles, known_roles = _roles(new), _roles(known)
    if is_passive:
        return not _is_passive(*((roles, known_roles) if "by" in order else (known_roles, roles)))
    return _are_exchanged(roles, known_roles)


def _joined(text: str) -> set[tuple[str, ...]]:
    return {pair for pair in map(tuple, JOINED.findall(text.lower())) if pair[0] != pair[1]}


def _is_passive(roles: dict[str, Role], active: dict[str, Role]) -> bool:
    """Return whether who follows *by* in one sentence precedes, in the other, the word that was before *by*."""
    shared = [word for word in roles if word in active]
    pairs = [(before, word) for before, word in pairwise(shared) if roles[word].marker == "by"]
    return bool(pairs) and all(active[agent].place < active[before].place for before, agent in pairs)


def _roles(text: str) -> dict[str, Role]:
    """Return the roles of the content words that occur once, by word."""
    text = JOINT_OWNER.sub(r"\1's and ", text)
    tokens = list(TOKEN.finditer(text))
    words = [match[0].lower().replace("\u2019", "'") for match in tokens]
    function_words = _function_words(words)
    counts, roles, marker, last = Counter(words), dict[str, Role](), "", ""
    for match, word in zip(tokens, words, strict=True):
        if word in function_words or word in PREPOSITIONS:
            marker = last if word == "and" else marker if word in UNMARKED else word
            continue
        is_owner = bool(match["possessive"]) or word.endswith("'s")
        before = text[: match.start()].rstrip()
        is_name = match[0] != word if before and before[-1] not in SENTENCE_ENDS else None
        if counts[word] == 1 and not word.isdecimal():
            name = ENDING.sub("", word.removesuffix("'s"))
            roles[name] = Role(len(roles), "of" if is_owner else marker, is_name)
        marker, last = "", marker
    return roles


def _are_exchanged(new: dict[str, Role], known: dict[str, Role]) -> bool:
    """Return whether two words have exchanged their roles: by their prepositions, around a third word, or as names."""
    shared = [word for word in known if word in new]
    places = {word: place for place, word in enumerate(shared)}
    for one, other in combinations(shared, 2):
        if new[one].place < new[other].place or _keep_roles(new, known, one, other):
            continue
        if _markers(known, one, other) == _markers(new, other, one) != _markers(new, one, other):
            return True
        names = [known[word].is_name if new[word].is_name is None else new[word].is_name for word in (one, other)]
        between = shared[places[one] + 1 : places[other]]
        is_around = any(new[other].place < new[word].place < new[one].place for word in between)
        is_told = new[other].place == known[one].place == 0 and new[one].place == known[other].place == 1
        if is_told and any(names) and not any(_markers(known, one, other)):
            return True
        if is_around and (names[0] == names[1] or None in names):
            return True
        if any(name and new[word].marker != known[word].marker for name, word in zip(names, (one, other), strict=True)):
            return True
    return False


def _keep_roles(new: dict[str, Role], known: dict[str, Role], one: str, other: str) -> bool:
    markers = _markers(known, one, other)
    return markers[0] != markers[1] and markers == _markers(new, one, other)


def _markers(roles: dict[str, Role], *words: str) -> list[str]:
    return [roles[word].marker for word in words]
