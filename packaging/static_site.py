"""Write the documentation as a static site: the pages that a running kb shows at /help, to read before you install it.

python packaging/static_site.py FOLDER
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Final

from jinja2 import Environment

from kb_web import guide

STATIC: Final = Path(guide.__file__).with_name("static")
STYLES: Final = ("tokens.css", "style.css")
LINK: Final = re.compile(r'(<a href=")(?!https?:|mailto:|#)([^"#]+)')
BUTTON: Final = re.compile(r"<button.*?</button>")
PAGE: Final = Environment(autoescape=True).from_string("""<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{ page.title }} · kb</title>
{% for style in styles %}<link rel="stylesheet" href="{{ root }}{{ style }}">{% endfor %}
<body><main class="reading"><div class="sheet">
<article><div class="text prose">{{ html }}</div></article>
<aside>{% for section in sections if section.links and section.level == 2 %}
<nav aria-label="{{ section.heading }}"><h2>{{ section.heading }}</h2><ul class="outline">
{% for name, label in section.links %}<li><a href="{{ root }}{{ name }}.html"\
{% if name == page.name %} aria-current="page"{% endif %}>{{ label }}</a></li>
{% endfor %}</ul></nav>{% endfor %}</aside>
</div></main>
""")


def address(link: re.Match[str]) -> str:
    """Return a link to a page of the guide as one to its file."""
    folder, slash, name = link[2].rpartition("/")
    if "." in name:  # a picture
        return link[0]
    return f"{link[1]}{folder}{slash}{'index' if name == 'README' else name}.html"


def write(folder: Path) -> int:
    """Write the site; return the number of its pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for style in STYLES:
        shutil.copy(STATIC / style, folder)
    pages = guide.pages()
    sections = next(page.sections for page in pages if page.name == "README")
    for name, file in guide.files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copy(file, folder / name)
    for page in pages:
        html = type(page.html)(LINK.sub(address, BUTTON.sub("", page.html)))
        root = "../" * page.name.count("/")
        name = "index" if page.name == "README" else page.name
        text = PAGE.render(page=page, html=html, sections=sections, root=root, styles=STYLES)
        (folder / f"{name}.html").write_text(text, "utf-8")
    return len(pages)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(f"{write(folder)} pages: {folder / 'index.html'}")
