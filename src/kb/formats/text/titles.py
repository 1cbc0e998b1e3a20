"""Decides whether the title in a file's properties is meaningful."""

from __future__ import annotations

import re
from typing import Final

from kb.formats.text.encoding import clean, one_line

_WRITTEN_BY: Final = re.compile(r"(?i)^microsoft (?:word|powerpoint|excel|publisher|visio) - ")
_EDGES: Final = re.compile(r"^[\W\d_]+|(?<![\W\d_])[\W\d_]+$")
# The titles that programs write by default. Digits and marks around them are ignored.
_PLACEHOLDERS: Final = """
    untitled | untitled document | untitled page | untitled presentation | untitled spreadsheet | untitled note
    untitled notebook | untitled design | untitled form | no title | no name | unnamed | anonymous | unspecified
    unknown | none | null | undefined | n/a | title | page title | document title | presentation title | enter title
    enter title here | insert title here | your title here | title goes here | click to add title
    click to edit title style | click to edit master title style | new document | new page | new presentation
    blank | blank page | blank document | document | doc | page | presentation | powerpoint presentation | slide | book
    workbook | sheet | spreadsheet | drawing | layout | word document | excel workbook | microsoft word
    microsoft word document | microsoft powerpoint | microsoft powerpoint presentation | microsoft excel
    scan | scanned document | scanned image | react app | vite app

    unbenannt | unbenanntes dokument | ohne titel | kein titel | dokument | neues dokument | präsentation
    powerpoint-präsentation | folie | mappe | tabelle
    sans titre | document sans titre | sans nom | nouveau document | présentation | présentation powerpoint
    diapositive | classeur | feuil
    sin título | documento sin título | documento | presentación | presentación de powerpoint | diapositiva | libro
    senza titolo | documento senza titolo | presentazione | presentazione di powerpoint | presentazione standard
    presentazione standard di powerpoint | cartel | foglio
    sem título | documento sem título | apresentação | apresentação do powerpoint | planilha
    naamloos | naamloos document | zonder titel | presentatie | powerpoint-presentatie
    namnlös | namnløs | uten navn | uten tittel | unavngivet | uden titel | nimetön | powerpoint-presentation
    bez tytułu | dokument bez tytułu | prezentacja | prezentacja programu powerpoint | bez názvu | prezentace
    prezentace aplikace powerpoint | névtelen | fără titlu
    без названия | без имени | без заголовка | безымянный | документ | презентация | презентация powerpoint | без назви
    无标题 | 无标题文档 | 未命名 | 無標題 | 無題 | 無題のドキュメント | 名称未設定 | powerpoint プレゼンテーション
    powerpoint 演示文稿 | powerpoint 簡報 | 제목 없음 | powerpoint 프레젠테이션
"""
_PLACEHOLDER_SET: Final = frozenset(filter(None, map(str.strip, re.split(r"[|\n]", _PLACEHOLDERS))))
_FILE_NAME: Final = re.compile(
    r"(?i)\.(?:docx?|docm|dotx?|pptx?|pps|xlsx?|csv|pdf|tex|dvi|ps|eps|odt|ods|odp|rtf|txt|md|html?|php|aspx?|indd|qxd|"
    r"p65|fm|pages|key|numbers|pub|vsdx?|ai|cdr|tiff?|jpe?g|png)$"
)
_PATH: Final = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\|\w+://)")
# A word with underscores or digits in it, except words such as COVID-19 or MP3.
_FILE_STEM: Final = re.compile(r"^(?![A-Z]+-?\d{1,2}$)(?=.*[_\d])[!-~]+$")


def meaningful(title: str | None) -> str | None:
    """Return a title on one line; None for a placeholder or the name of a file."""
    cleaned = _WRITTEN_BY.sub("", one_line(clean(title or "")))
    words = _EDGES.sub("", cleaned)
    is_placeholder = not words or words.casefold() in _PLACEHOLDER_SET
    return None if is_placeholder or any(rule.search(cleaned) for rule in (_FILE_NAME, _PATH, _FILE_STEM)) else cleaned


_CHAPTER: Final = re.compile(
    r"(?i)(?:\d\.?|\d\d?(?:\.\d+)*\.|\d\d?(?:\.\d+)+|(?:chapter|section|part|appendix|kapitel|abschnitt|teil|chapitre|"
    r"capítulo|capitolo)\s+[\divxlc]+\b.*)(?:\s|$)"
)
_CHAPTERS: Final = frozenset(
    {
        *("abstract", "contents", "table of contents", "introduction", "foreword", "preface", "acknowledgements"),
        *("inhalt", "inhaltsverzeichnis", "einleitung", "vorwort", "sommaire", "table des matières", "avant-propos"),
        *("índice", "introducción", "indice", "introduzione", "introdução"),
    }
)


def names_chapter(heading: str) -> bool:
    """Return whether a heading belongs to a part, such as `2.1 Results` or `Contents`, not to the whole document."""
    return _CHAPTER.match(heading) is not None or heading.strip(" .:").casefold() in _CHAPTERS
