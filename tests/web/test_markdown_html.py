"""Markdown as the web interface shows it."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

from kb.markdown.signs import ticked
from kb_web.document_html import body
from kb_web.markdown_html import rendered
from kb_web.markdown_links import Destination, Surroundings

LINKS = {
    "Bricks": Destination(7, "Bricks"),
    "Bricks#Fire bricks": Destination(7, "Bricks"),
    "Bricks#^cone": Destination(7, "Bricks"),
    "my file.md": Destination(11, "My file"),
    "door.png": Destination(9, "door"),
    "img/door.png": Destination(9, "door"),
    "policy.pdf#page=3": Destination(8, "policy"),
    "Old": None,
}
SECONDS = 20
"""How long a document of 200 kB may take a processor; it takes at most a tenth."""


def show(text, **about):
    return str(rendered(text, Surroundings(root="../", links=LINKS, **about)))


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("Old", "../new?title=Old"),
        ("House/Old & cold.md#Now", "../new?title=House%2FOld+%26+cold"),
        ("Version 2.0", "../new?title=Version+2.0"),
        ("./Old", None),
        ("../Old", None),
        ("/Old", None),
        ("old.png", None),
        ("old.HEIC", None),
        ("old.mov", None),
        ("old.pdf", None),
        ("#", None),
        ("Unknown", None),
    ],
)
def test_a_link_without_a_document_leads_to_a_new_note_for_readers_who_may_write(target, place):
    about = Surroundings(root="../", links={**LINKS, target: None} if target != "Unknown" else LINKS)
    assert "new?title" not in str(rendered(f"[[{target}]]", about))
    shown = str(rendered(f"[[{target}]]", replace(about, may_write=True)))
    assert (f'<a class="missing" href="{place}" title="Write this note">' in shown) == (place is not None)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("[[Bricks]]", '<a href="../d/7">Bricks</a>'),
        ("[[Bricks|the list]]", '<a href="../d/7">the list</a>'),
        ("[[Bricks#Fire bricks]]", '<a href="../d/7#h-fire-bricks">Bricks &gt; Fire bricks</a>'),
        ("[[Bricks#^cone]]", '<a href="../d/7#b-cone">Bricks &gt; ^cone</a>'),
        ("[[#Below]]", '<a href="#h-below">Below</a>'),
        ("[x](my%20file.md)", '<a href="../d/11">x</a>'),
        ("[x](<my file.md>)", '<a href="../d/11">x</a>'),
        ("[x](#below)", '<a href="#h-below">x</a>'),
        ("[x](kb://documents/42)", '<a href="../d/42">x</a>'),
        ("[x](/d/42)", '<a href="../d/42">x</a>'),
        ("[[Old]]", '<span class="missing" title="kb has no such document">Old</span>'),
        ("[x](Old)", '<span class="missing" title="kb has no such document">x</span>'),
        ("[[Unknown]]", '<span class="wiki">Unknown</span>'),
        ("https://e.org/a_b.", '<a href="https://e.org/a_b" rel="noopener noreferrer nofollow">https://e.org/a_b</a>.'),
        ("![[door.png]]", '<a href="../d/9"><img src="../d/9/picture" alt="door.png" loading="lazy"></a>'),
        (
            "![[door.png|300]]",
            '<a href="../d/9"><img src="../d/9/picture" alt="door.png" width="300" loading="lazy"></a>',
        ),
        ("![A door](img/door.png)", '<a href="../d/9"><img src="../d/9/picture" alt="A door" loading="lazy"></a>'),
        (
            "![[policy.pdf#page=3]]",
            '<a href="../d/8?page=3"><img src="../d/8/pages/3.png" alt="policy.pdf, page 3" loading="lazy">',
        ),
        ("![[Unknown.png|300]]", '<span class="wiki">Unknown.png</span>'),
        ("==very **hot**==", '<mark class="pen">very <strong>hot</strong></mark>'),
        ("a == b and c == d", "<p>a == b and c == d</p>"),
        ("one<br>two", "one<br />\ntwo"),
        ("before %%hidden%% after", "<p>before  after</p>"),
        ("before <!-- hidden --> after", "<p>before  after</p>"),
        ("100%% sure", "<p>100%% sure</p>"),
        ("$a_1 * b_2$", "<math><msub><mi>a</mi><mn>1</mn></msub>"),
        ("costs $5 or $10", "<p>costs $5 or $10</p>"),
        ("$$\na * b\n$$", '<math display="block"><mi>a</mi>'),
        (r"$\frac{1}$", r'<code class="math">\frac{1}</code>'),
        ("$$\na & b\n$$", '<pre class="math"><code>a &amp; b</code></pre>'),
        (r"$\text{<img src=x>}$", "<mtext>&lt;img\xa0src=x&gt;</mtext>"),
        (r"$\href{javascript:x}{y}$", r"<mtext>\href</mtext>"),
        (r"$\begin{aligned}a&=b\end{aligned}$", '<mtd class="to-right">'),
        (f"${'x' * 4001}$", '<code class="math">xxx'),
        ("done ^end", '<p>done<span id="b-end"></span></p>'),
        ("2 ^ 3", "<p>2 ^ 3</p>"),
        ("## What I *need*", '<h2 id="h-what-i-need">What I <em>need</em></h2>'),
        ("- [ ] one\n- [x] two", '<li class="task">☐ one</li>\n<li class="task done">☑ two</li>'),
        ("[x] no task", "<p>[x] no task</p>"),
        ("`[[Bricks]] ==a== %%b%% $c$`", "<code>[[Bricks]] ==a== %%b%% $c$</code>"),
        ("    [[Bricks]]\n    %%b%%", "<pre><code>[[Bricks]]\n%%b%%\n</code></pre>"),
        (r"| a |" + "\n|---|\n" + r"| [[Bricks\|B]] |", '<td><a href="../d/7">B</a></td>'),
    ],
)
def test_what_obsidian_shows_is_shown(text, html):
    assert html in show(text)


def test_columns_are_aligned_by_a_class_because_a_style_is_not_allowed():
    html = show("| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |")
    assert '<td>1</td>\n<td class="center">2</td>\n<td class="right">3</td>' in html
    assert "style" not in html


def test_a_callout_has_a_title_and_a_look_and_may_be_folded():
    assert '<div class="callout look-care"><p class="of">Carbon <em>monoxide</em></p>\n<p>Never fire.</p>' in show(
        "> [!warning] Carbon *monoxide*\n> Never fire."
    )
    assert '<p class="of">Tip</p>\n</div>' in show("> [!tip]")
    assert '<details class="callout look-note"><summary>Info</summary>\n<p>Open late.</p>\n</details>' in show(
        "> [!info]-\n> Open late."
    )
    assert '<details class="callout look-note" open>' in show("> [!made-up]+ x")
    assert show("> > [!bug] a\n> > b\n>\n> c").count("callout") == 1
    assert "[!]" in show("> [!] no type")


def test_a_footnote_leads_there_and_back():
    html = show("Hot.[^1]\n\n[^1]: Very.")
    assert '<a href="#fn1" id="fnref1">[1]</a>' in html
    assert '<li id="fn1"' in html
    assert 'href="#fnref1"' in html


def test_only_the_tags_of_the_document_become_links():
    html = show("#home/garden, #Home/Garden and #1 or a#home", tags=frozenset({"home/garden", "home"}))
    assert html.count('<a class="hash" href="../documents?tag=home%2Fgarden">') == 2
    assert html.count("<a ") == 2
    html = show("_#kiln_ and #done✅, #done✅x but #done", tags=frozenset({"kiln", "done✅"}))
    assert re.findall(r'class="hash" href="[^"]*">([^<]*)<', html) == ["#kiln", "#done✅"]
    assert "<em>" in html


def test_a_link_may_have_brackets_in_its_name():
    html = show("[[Plan [old]|the plan]] and ![[Rota [June]]]")
    assert ">the plan<" in html
    assert ">Rota [June]<" in html


def test_front_matter_is_a_list_of_fields_without_title_and_tags():
    html = show(
        '---\ntitle: X\ntags: [a]\nauthor: "[[Bricks]]"\nparts:\n  - one\n  - two\nlink: https://e.org\n---\nText'
    )
    assert '<dt>author</dt><dd><a href="../d/7">Bricks</a></dd><dt>parts</dt><dd>one, two</dd>' in html
    assert "<dt>title" not in html
    assert "<dt>tags" not in html
    assert show("---\n\na rule first\n") == "<hr />\n<p>a rule first</p>\n"


def test_a_note_is_shown_where_it_is_embedded_but_nothing_inside_it():
    inner = "# Bricks\n\nAll of it.\n\n## Fire bricks\n\nHard. ![[Bricks]] ![[Other]]\n\n![[Bricks]]\n\n## More\n\nSoft. ^cone\n"
    embedded = {7: (inner, Surroundings(root="../", links=LINKS))}
    section = show("![[Bricks#Fire bricks]]", embedded=embedded)
    assert '<div class="embed"><p class="of"><a href="../d/7#h-fire-bricks">Bricks</a></p>' in section
    assert section.count('class="embed"') == 1
    assert "Hard." in section
    assert "Soft." not in section
    assert "All of it." not in section
    block = show("![[Bricks#^cone]]", embedded=embedded)
    assert "Soft." in block
    assert "Hard." not in block
    assert "id=" not in show("![[Bricks]]", embedded=embedded)  # ids belong to the page's own text
    assert 'class="embed"' not in show("text ![[Bricks]] text", embedded=embedded)


BLOCKS = """First. ^first

| a |
|---|
| 1 |

^table

```py
code
```
^code

> [!tip] Callout
> body

^callout

- one
- two ^item
- three
"""


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("first", "First.", "body"),
        ("table", "<td>1</td>", "First."),
        ("code", "code\n</code>", "<td>"),
        ("callout", "look-tip", "three"),
        ("item", "<li>two</li>", "three"),
    ],
)
def test_a_block_of_any_kind_is_embedded_by_its_id(name, inside, outside):
    links = {f"N#^{name}": Destination(5, "N")}
    for text in (f"![[N#^{name}]]", f"- ![[N#^{name}]]", f"> ![[N#^{name}]]", f"![](N#^{name})"):
        html = str(rendered(text, Surroundings(links=links, embedded={5: (BLOCKS, Surroundings())})))
        assert html.count('class="embed"') == 1
        assert inside in html
        assert outside not in html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "from $125K → $108K, ~$45-95, **$4,472** or \\$5",
            "from $125K → $108K, ~$45-95, <strong>$4,472</strong> or $5",
        ),
        ("$20/user/month (7 users = $1680/year)", "$20/user/month (7 users = $1680/year)"),
        ("![[door.png|The door|300]]", 'alt="The door" width="300"'),
        ("<u>a **b**</u> <kbd>X</kbd>", "<u>a <strong>b</strong></u> <kbd>X</kbd>"),
        ("<u onclick=x>a</u> <u>b", "<p>&lt;u onclick=x&gt;a&lt;/u&gt; &lt;u&gt;b</p>"),
        ("Rua Um\nLisboa", "<p>Rua Um<br />\nLisboa</p>"),
        (f"{'a long line ' * 6}\nand more", "a long line\nand more"),
        (
            "---\r\na: 1\r\n# not a field\r\nb: |\r\n  one\r\n  two\r\n---\r\nText",
            "<dt>b</dt><dd>one, two</dd></dl><p>Text",
        ),
        ("- item ^id\n- other", '<li>item<span id="b-id"></span></li>'),
        ("> [!a]\n> > [!b]\n\n> [!c]", '</div>\n</div>\n<div class="callout look-note"><p class="of">C</p>'),
        ("- item\n  > [!warning] In a list\n  > body", '<li>item<div class="callout look-care">'),
        ("## Ünï: 🙂 `x_y`", '<h2 id="h-ünï--x_y">'),
    ],
)
def test_the_habits_of_other_programs_are_read(text, html):
    assert html in show(text)


def chunk(index, text, line):
    place = {"line_start": line, "line_end": line + text.rstrip().count("\n"), "heading": [], "page": None}
    return {"index": index, "text": text, "place": place}


def test_the_heading_that_repeats_the_title_is_hidden():
    about = Surroundings(title="Kiln rebuild")
    assert 'class="again"' in body("note", [chunk(0, "# Kiln  *rebuild*\n\nText", 1)], None, set(), about).text
    assert 'class="again"' not in body("note", [chunk(0, "# Other\n\n# Kiln rebuild", 1)], None, set(), about).text
    assert 'class="again"' not in body("note", [chunk(3, "# Kiln rebuild\n", 90)], None, set(), about).text


@pytest.mark.parametrize(
    ("second", "marked"),
    [
        ("> [!tip]- Folded\n> the kiln is hot\n", "open><summary>Folded</summary>\n<p>the <mark>kiln</mark> is hot"),
        ("%% ask about the kiln %%\n", '<div class="faint comment">%% ask about the <mark>kiln</mark> %%</div>'),
        ("see [[Bricks|the kiln]]\n", "<mark>kiln</mark></a>"),
        ("| a |\n|--:|\n| kiln |\n", '<td class="right"><mark>kiln</mark></td>'),
        ("$kiln$\n", '<code class="math"><mark>kiln</mark></code>'),
    ],
)
def test_what_a_search_found_is_marked_and_visible(second, marked):
    chunks = [chunk(0, "First.\n\n", 1), chunk(1, second, 3), chunk(2, "\nand the kiln\n", 3 + second.count("\n"))]
    html = body("note", chunks, 1, {"kiln"}, Surroundings(links=LINKS)).text
    hit = html.partition('<section id="c1" class="chunk hit" tabindex="-1" autofocus>')[2].partition("</section>")[0]
    assert marked in hit
    assert html.count("autofocus") == 1


def test_a_fold_and_a_comment_open_only_for_words_that_they_have():
    text = "> [!tip]- Fold\n> of bricks\n\nThe kiln. %%private%%\n"
    html = body("note", [chunk(0, text, 1)], 0, {"kiln"}, Surroundings()).text
    assert "<details" in html
    assert " open" not in html
    assert "private" not in html
    found = body("note", [chunk(0, text, 1)], 0, {"bricks", "private"}, Surroundings()).text
    assert '<details class="callout look-tip" open>' in found
    assert "<mark>private</mark>" in found


def test_a_footnote_that_a_search_found_is_marked():
    chunks = [chunk(0, "Hot.[^1]\n\n", 1), chunk(1, "[^1]: A kiln.\n", 3)]
    html = body("note", chunks, 1, {"kiln"}, Surroundings()).text
    assert '<section id="c1" class="chunk hit" tabindex="-1" autofocus><hr class="footnotes-sep" />' in html
    assert "<mark>kiln</mark>" in html


def test_front_matter_that_a_search_found_is_marked():
    chunks = [chunk(0, "---\nstatus: kiln\n---\n", 1), chunk(1, "Text\n", 4)]
    shown = body("note", chunks, 0, {"kiln"}, Surroundings())
    assert "<dd><mark>kiln</mark></dd>" in shown.matter
    assert shown.is_matter_hit, "so that the page opens the line above the text, where it is"
    assert "hit" not in shown.text


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](vbscript:x) [x](data:text/html,x) [x](//evil.example) [x](file:///etc/passwd)",
        "![x](javascript:alert(1)) ![x](data:image/svg+xml,x) ![x](http://evil.example/x.png)",
        "[[javascript:alert(1)]] ![[javascript:alert(1)]] [[//evil.example]]",
        '[[Bricks|<img src=x onerror=alert(1)>]] [[<script>|"onclick="x]]',
        '![[door.png|"><script>alert(1)</script>]]',
        '> [!"><script>alert(1)</script>] <script>x</script>',
        "> [!tip]- <script>alert(1)</script>\n> <script>",
        '## <script>alert(1)</script> "onclick=x',
        'text ^"><script>',
        "==<script>alert(1)</script>==",
        "$<script>alert(1)</script>$\n\n$$\n</code><script>\n$$",
        "[^<script>]\n\n[^<script>]: <script>alert(1)</script>",
        "%%<script>%% <!-- <script> --> <br onload=alert(1)>",
        '---\n<script>: x\na: <script>alert(1)</script>\nb: "[[<script>]] https://e.org/<script>"\n---\nx',
        '#<script> #home"onclick=x',
    ],
)
def test_nothing_in_a_text_becomes_a_script_or_loads_from_elsewhere(text):
    about = Surroundings("../", links=LINKS, tags=frozenset({"home"}))
    shown = body("note", [chunk(0, text, 1)], 0, {"script", "alert"}, about)
    html = shown.matter + shown.text
    tags = re.findall(r"<[^>]*>", html)
    assert not [tag for tag in tags if re.search(r"(?i)<(script|iframe|style)|\son\w+=|javascript:|style=", tag)]
    assert all(re.search(r'(href|src)="(https?://|\.\./d|#)', tag) for tag in tags if re.search("href=|src=", tag))
    assert all('src="../d/' in tag for tag in tags if "<img" in tag)


def repeated(text, size=200_000):
    return (text * (size // len(text) + 1))[:size]


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        *map(
            repeated,
            (
                *("> ", "[[", "![[", "]]", "==", "==a ", "==a==", "$", "$a ", "$$", "%%", "%% a\n", "<!--", "<!-- a\n"),
                *(
                    "[^a]",
                    "[^a]: x\n",
                    "^[",
                    "#a ",
                    "http:",
                    "http://a(((",
                    "<br>",
                    "> [!a]\n",
                    "- [ ] x\n",
                    "`a``b```",
                ),
                *(
                    "<b>",
                    "<b>a</b>",
                    "<b>a",
                    "![](a) ",
                    "![[a]](",
                    "- ![[a]]\n",
                    "![a](b) ",
                    "a ^b\n\n",
                    "![[a]]\n",
                    "==[[a]]%%x%%$a$",
                    "> > [!note]- x\n",
                    "[a](",
                    "---\n",
                    "a: b\n",
                ),
            ),
        ),
        "> " * 10_000 + "deep",
        "".join("> " * depth + "[!note] a\n" for depth in range(1, 600)),
        "| a | b |\n|---|--:|\n" + "| x | y |\n" * 100_000,
        "|" + "a|" * 20_000 + "\n|" + "-|" * 20_000 + "\n" + ("|" + "b|" * 20_000 + "\n") * 3,
        "".join(f"a[^{number}] " for number in range(10_000)) + "\n\n" + "".join(f"[^{n}]: x\n" for n in range(10_000)),
        "".join(f"[^{number}]: x [^{number + 1}]\n" for number in range(5_000)) + "[^0]",
        "---\n" + "a: b\n" * 40_000 + "---\n",
    ],
    ids=lambda text: text[:12],
)
def test_a_text_that_wants_to_cost_much_is_shown_in_time(text):
    begun = time.thread_time()
    html = rendered(text, Surroundings(links=LINKS))
    assert time.thread_time() - begun < SECONDS
    assert len(html) < 60 * len(text)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("# T\n\n## A\n\n### B\n\n## C", ["h2", "h3", "h2"]),
        ("### A\n\n##### B", ["h2", "h4"]),
        ("# A\n\n## B", ["h2", "h3"]),
    ],
)
def test_headings_follow_the_title_of_the_page_without_a_gap(text, levels):
    html = show(text, title="T")
    assert re.findall(r'<(h\d) id="[^"]*">', html) == levels


def test_the_lines_of_a_passage_are_counted_from_the_first_line_of_the_file():
    """kb puts empty lines in place of front matter, and the place of a passage begins after them."""
    text = "\n\n\n\n# Kiln\n\nFirst.\n\nThe kiln.\n"
    place = {"line_start": 5, "line_end": 9, "heading": [], "page": None}
    html = body("markdown", [{"index": 0, "text": text, "place": place}], 0, {"kiln"}, Surroundings()).text
    assert "The <mark>kiln</mark>." in html


TASKS = "---\nby: Ada\n---\n# Today\n\n- [ ] call *Ann*\n  1. [x] pay\n> * [/] read <b>\n\n[ ] no task\n"


def boxes(doc_type, text, line, **about):
    html = str(body(doc_type, [chunk(0, text, line)], None, set(), Surroundings(**about)).text)
    return re.findall(r'<button form="tick" name="line" value="(\d+)"[^>]*checked="(\w+)" aria-label="([^"]*)"', html)


def test_the_tasks_of_a_note_have_boxes_that_name_their_lines():
    assert boxes("note", TASKS, 1, may_write=True) == [
        ("6", "false", "call Ann"),
        ("7", "true", "pay"),
        ("8", "false", "read &lt;b&gt;"),
    ]
    assert boxes("note", "\n- [-] late\n", 41, may_write=True) == [("41", "false", "late")]


def test_there_are_no_boxes_where_the_reader_cannot_tick():
    assert not boxes("note", TASKS, 1)
    assert not boxes("markdown", TASKS, 1, may_write=True)
    inner = {7: ("- [ ] inner", Surroundings(may_write=True))}
    shown = boxes("note", "![[Bricks]]\n\n- [ ] outer", 1, may_write=True, embedded=inner, links=LINKS)
    assert [name for *_, name in shown] == ["outer"]
    assert not boxes("note", "10%\r100%\n\n- [ ] a line that kb and Markdown count differently", 1, may_write=True)
    assert not boxes("note", "- - [ ] two marks", 1, may_write=True)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("- [ ] one", "- [x] one"),
        ("  2. [x] [ ] two\r", "  2. [ ] [ ] two\r"),
        ("> + [X] three", "> + [ ] three"),
        ("* [/] four", "* [x] four"),
        ("- [-] five", "- [x] five"),
        ("[ ] none", None),
        ("- [y] none", None),
        ("", None),
    ],
)
def test_a_task_is_ticked_and_opened_again(line, after):
    assert ticked(line) == after
