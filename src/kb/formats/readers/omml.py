"""Equations of Office documents (OMML) on one line, as people type them: `sin θ=(mλ)/a`, `10^(-6)`, `√(x+1)`."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from kb.formats.containers.zip import attribute, local_name

_FUNCTION_APPLICATION: Final = "\u2061"
_UNIT: Final = re.compile(r"\d[\d.,]*|.")


def linear(element: etree._Element) -> str:
    name = local_name(element)
    if name == "t":
        return (element.text or "").replace(_FUNCTION_APPLICATION, " ")
    match name:
        case "f":
            return f"{_group(element, 'num')}/{_group(element, 'den')}"
        case "sSup":
            return f"{_part(element, 'e')}^{_group(element, 'sup')}"
        case "sSub":
            return f"{_part(element, 'e')}_{_group(element, 'sub')}"
        case "sSubSup":
            return f"{_part(element, 'e')}_{_group(element, 'sub')}^{_group(element, 'sup')}"
        case "rad":
            return f"{_part(element, 'deg')}√{_group(element, 'e')}"
        case "nary":
            return _sum(element)
        case "d":
            return _bracketed(element)
    return "".join(linear(child) for child in element if not local_name(child).endswith("Pr"))


def _part(element: etree._Element, name: str) -> str:
    return "".join(linear(child) for child in element if local_name(child) == name)


def _group(element: etree._Element, name: str) -> str:
    part = _part(element, name)
    return part if _UNIT.fullmatch(part) else f"({part})"


def _sum(element: etree._Element) -> str:
    sign = attribute(element.find("{*}naryPr/{*}chr"), "val") or "∫"
    limits = "".join(
        f"{mark}{_group(element, name)}" for mark, name in (("_", "sub"), ("^", "sup")) if _part(element, name)
    )
    return f"{sign}{limits} {_part(element, 'e')}"


def _bracketed(element: etree._Element) -> str:
    begin, separator, end = (
        default if given is None else given
        for name, default in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
        for given in (attribute(element.find(f"{{*}}dPr/{{*}}{name}"), "val"),)
    )
    inside = separator.join(linear(child) for child in element if local_name(child) == "e")
    return f"{begin}{inside}{end}"
