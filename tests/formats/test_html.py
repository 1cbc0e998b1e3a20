"""HTML and XML: readable text, line by line, cut at headings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from tests.support.reading import reader, sections

E10 = pytest.mark.requirement("E-10")
read = reader("page.html")


@E10
def test_a_page_is_cut_at_its_headings_and_loses_none_of_its_text():
    page = read("""
        <html><head><title> The
        page </title><style>p {}</style></head><body>
        <nav><a href=/>Home</a><a href=/a>About</a></nav>
        <h1>First <em>one</em><a href="#first">¶</a></h1><p>Some <b>bold</b>&nbsp;text.</p>
        <h2></h2><h3>Deep</h3>words
        <h2>Second</h2><footer>The end &copy;</footer>
        <script>var x = "<p>no</p>"</script><template>no</template><noscript>no</noscript></body></html>""")
    assert page.title == "The page"
    assert sections(page) == [
        ((), "Home About\n\n"),
        (("First one",), "First one\n\nSome bold text.\n\n"),
        (("First one", "Deep"), "Deep\n\nwords\n\n"),
        (("First one", "Second"), "Second\n\nThe end ©\n"),
    ]


@E10
@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<div>a</div><div>b</div>c", "a\nb\nc\n"),
        ("<p>a</p><p>b", "a\n\nb\n"),
        ("a<br>b<br><br>c", "a\nb\n\nc\n"),
        ("a<b>b</b>c <i> d</i> \n e", "abc d e\n"),
        ("<a href=1>x</a> y <a href=2>z</a>", "x y z\n"),
        ("<ul><li>a<li>b<ol><li>c</ol><li><p>d</p><p>e</p></ul>f", "- a\n- b\n  - c\n- d\ne\n\nf\n"),
        ("<ul><li></li><li>a</li></ul>", "- a\n"),
        ("<dl><dt>a<dd>b</dl>", "a\nb\n"),
        ("x<pre>\n  def f():\n\n      pass\n</pre>y", "x\n\n  def f():\n\n      pass\n\ny\n"),
        ("<pre>a<br> b</pre>", "a\n b\n"),
        ("see <img src=x alt='a cat'>!", "see a cat !\n"),
        ("<img src=x>text", "text\n"),
        ("soft\xadened ze\u200bro", "softened zero\n"),
        ("<select><option>a<option>b</select>", "a\nb\n"),
        ("a<!-- no --><?php no ?>b", "ab\n"),
        ("&lt;b&gt; &#x1F600; &hearts; &#xD800; &nosuch;", "<b> 😀 ♥ \ufffd &nosuch;\n"),
        ("<h1>C#</h1>", "C#\n"),
        ("<my-card><p>custom</p></my-card>", "custom\n"),
        ("<svg><title>icon</title><text>a</text><text>b</text></svg>", "icon\na\nb\n"),
    ],
)
def test_markup_becomes_the_lines_a_person_sees(markup, text):
    assert read(f"<html><body>{markup}").text == text


@E10
def test_table_rows_become_lines_and_merged_cells_are_not_repeated():
    table = """<table><caption>T</caption><thead><tr><th>a<th>b<th>c<tbody>
      <tr><td colspan=2><p>1</p><p>2</p><td>3<br>4<tr><td><td><td><tr><td>only</table>after"""
    assert read(table).text == "T\na | b | c\n1 2 | 3 4\nonly\n\nafter\n"


def test_a_table_that_lays_out_the_page_keeps_its_blocks_apart():
    page = read("<table><tr><td><h1>Left</h1><p>a</p><td><table><tr><td>1<td>2</table></table>")
    assert sections(page) == [(("Left",), "Left\n\na\n\n1 | 2\n")]


@E10
@pytest.mark.parametrize(
    "markup",
    [
        "<div style='display:none'>no</div>",
        "<div style='color: red; DISPLAY : None !important'>no<p>no</p></div>",
        "<span style='visibility:hidden;'>no</span>",
        "<p hidden>no</p>",
        "<p hidden='hidden'>no</p>",
        "<div hidden=''><h1>no</h1></div>",
        "<template><p>no</p></template>",
        "<h2 style='display: none'>no</h2>",
        "<h2><span hidden>no</span></h2>",
        "<ul hidden><li>no</ul>",
        "<div style='display:none'><ix:header><ix:hidden><ix:nonNumeric>no</ix:nonNumeric></ix:hidden></ix:header></div>",
        "<ix:header><ix:hidden><ix:nonNumeric name='a:b'>no</ix:nonNumeric><ix:nonFraction xsi:nil='true'/></ix:hidden>"
        "<ix:references><link:schemaRef/></ix:references><ix:resources><xbrli:context>no</xbrli:context></ix:resources></ix:header>",
    ],
)
def test_what_a_page_hides_is_no_text(markup):
    assert read(f"<html><body><p>before</p>{markup}<p>after</p>").text == "before\n\nafter\n"


def test_an_empty_hidden_element_of_xhtml_hides_nothing_behind_it():
    page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><div hidden='hidden'/>words</body></html>"
    assert read(page).text == "words\n"


def test_hidden_cells_are_no_values_of_their_row():
    row = "<tr><td>a<td style='display:none'>no<td>b<td hidden>no"
    assert read(f"<table>{row}<tr hidden><td>no<td>no</table>").text == "a | b\n"


@pytest.mark.parametrize(
    "markup",
    [
        "<p aria-hidden=true>words</p>",
        "<p hidden=until-found>words</p>",
        "<body style='visibility:hidden'>words",
        "<p style='display:block; x-display:none'>words</p>",
        "<p style='background: url(display:none)'>words</p>",
        "<p class=hidden>words</p>",
        "<details><summary>words</summary></details>",
    ],
)
def test_what_a_person_can_see_is_text(markup):
    assert "words" in read(f"<html>{markup}").text


@pytest.mark.parametrize(
    ("markup", "date"),
    [
        ("<meta property='article:published_time' content='2024-03-01T10:00:00Z'>", "2024-03-01T10:00:00Z"),
        ("<meta name=DC.date.issued content=2024-03-01><meta name=date content=2020-01-01>", "2024-03-01"),
        ("<meta name=citation_publication_date content=2024/03/01>", "2024/03/01"),
        ("<meta name=date content='Fri, 01 Mar 2024 10:00:00 +0100'>", "2024-03-01T10:00:00+01:00"),
        ("<time itemprop=datePublished datetime=2024-03-01>1 March</time>", "2024-03-01"),
        ("<time datetime=2024-03-01>someone's comment</time>", None),
        ("<meta name=date content='last spring'>", None),
        ("<meta name=expires content=2024-03-01>", None),
    ],
)
def test_the_date_of_a_page_is_the_one_that_it_gives_itself(markup, date):
    assert read(f"<html><head>{markup}</head><p>words").date == date


@pytest.mark.parametrize("title", ["Untitled Document", "untitled", "Sans titre", "index.html", "", "-"])
def test_a_heading_is_the_title_of_a_page_whose_own_says_nothing(title):
    assert read(f"<title>{title}</title><h2>a</h2><h1>The heading</h1>").title == "The heading"
    assert read(f"<title>{title}</title><p>words").title is None


def test_the_first_heading_is_the_title_of_a_page_without_one():
    assert read("<h2>a</h2><h1>b</h1><svg><title>icon</title></svg>").title == "b"
    assert read("<h2>a</h2>").title is None


def test_a_heading_that_was_never_closed_does_not_swallow_the_page():
    page = read("<h1><div>" + "</div><div>".join(f"line {n}" for n in range(100)) + "</div>")
    assert page.sections[0].heading == ()
    assert "line 98\nline 99\n" in page.text


def test_deep_nesting_loses_no_text():
    assert read("<div>" * 300 + "deep" + "<b><font>" * 300 + "er").text == "deeper\n"


def test_nesting_too_deep_to_read_is_said_rather_than_cut_off():
    with pytest.raises(Unreadable, match="nested more than 2048 deep"):
        read("<html>seen" + "<div>" * 3000 + "lost")


def test_an_element_with_more_attributes_than_any_page_has_is_refused():
    def attributes(count, value=""):
        return " ".join(f"a{number}{value}" for number in range(count))

    for element in (
        f"<p {attributes(2000)}>",
        f"<script {attributes(2000)}></script>",
        f"<p {attributes(2000, '=b')}>",
    ):
        with pytest.raises(Unreadable, match="more than 1000 attributes"):
            read(f"<html>words{element}")
    code = "if (a <b && " + "c = d / e && " * 3000
    for element in (f"<p {attributes(900)}>", f"<script>{code}</script>", f"<p title='{attributes(9000)}'>"):
        assert read(f"<html>words{element}").text == "words\n"


def test_a_page_that_scripts_fill_says_so():
    with pytest.raises(Unreadable, match="scripts may load it"):
        read("<html><body><div id=root></div><script src=app.js></script></body></html>")


def test_text_that_broken_markup_leaves_between_cells_is_kept():
    assert read("<html><tr><br><br>stray").text == "stray\n"


TAGS = "h1 /h1 h3 p /p ul li /ul table tr td /table pre br"


@given(st.lists(st.sampled_from(["a", "b", *(f"<{tag}>" for tag in TAGS.split())])))
def test_any_soup_of_tags_gives_sound_sections_with_every_word(soup):
    page = read("<html>" + " ".join(soup) + " end")
    assert "".join(text for _, text in sections(page)) == page.text
    assert page.text.replace("|", " ").replace("- ", " ").split() == [word for word in soup if word in "ab"] + ["end"]


# XML

FEED = """<?xml version="1.0"?><rss version="2.0" xmlns:m="urn:m"><channel><title>News</title>
<image><title>Logo</title></image>
<item><title>One &amp;amp; only</title><m:title>not this</m:title><pubDate>Mon</pubDate>
<description>&lt;p&gt;First&lt;/p&gt;&lt;h1&gt;Part&lt;/h1&gt;second</description></item>
<item><title>Two</title><description>plain words</description></item></channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>One</title>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>some <b>bold</b> text</p></div>
</content></entry></feed>"""


@E10
def test_a_feed_is_read_entry_by_entry():
    feed = read(FEED, "feed.xml")
    assert feed.title == "News"
    assert sections(feed) == [
        (("News",), "News\n\ntitle: Logo\n\n"),
        (("News", "One & only"), "One & only\n\ntitle: not this\npubDate: Mon\n\nFirst\n\n"),
        (("News", "One & only", "Part"), "Part\n\nsecond\n\n"),
        (("News", "Two"), "Two\n\nplain words\n"),
    ]


def test_the_entries_of_an_atom_feed_may_hold_xhtml():
    assert sections(read(ATOM, "x"))[-1] == (("News", "One"), "One\n\nsome bold text\n")


def test_prose_in_xml_is_read_without_its_tags():
    sentence = "This is a sentence of <i>some</i> length."
    book = f"<?xml version='1.0'?><book><para>{sentence}</para><para>{sentence * 9}</para></book>"
    plain = "This is a sentence of some length."
    assert read(book, "book.xml").text == f"{plain}\n{plain * 9}"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("weir<sup><a href='#n1'>1</a></sup> froze", "weir froze"),
        ("weir<a href='notes.xhtml#n2'><sup>[12]</sup></a> froze", "weir froze"),
        ("weir<a epub:type='noteref' href='#n'>3</a> froze", "weir froze"),
        ("weir<a role='doc-noteref' href='#n'>*</a> froze", "weir froze"),
        ("weir<sup><a href='#a'>1</a></sup><sup><a href='#b'>2</a></sup> froze", "weir froze"),
        (
            "m<sup>2</sup>, 5<sup>th</sup>, x<sup><a href='#sum'>sum</a></sup> and <a href='#n1'>1</a>",
            "m2, 5th, xsum and 1",
        ),
        ("10<sup><a href='https://units.example/'>6</a></sup>", "106 (https://units.example/)"),
    ],
)
def test_the_mark_of_a_note_is_no_part_of_the_word_before_it(written, shown):
    for page in (f"<p>{written}</p>", f"<table><tr><td>{written}</td></tr></table>"):
        assert read(page).text == f"{shown}\n"


SENTENCE = "This is a sentence of some length that stands in a paragraph. " * 3


@E10
@pytest.mark.parametrize(
    ("markup", "title", "headings"),
    [
        (
            f"<book xmlns='http://docbook.org/ns/docbook'><title>The <i>book</i></title><chapter><title>One</title><para>{SENTENCE}</para>"
            f"<section><title>Deep</title><para>{SENTENCE}</para></section></chapter></book>",
            "The book",
            [("The book",), ("The book", "One"), ("The book", "One", "Deep")],
        ),
        (
            f"<article><front><title-group><article-title>The study</article-title></title-group></front><body><sec><label>1</label><title>"
            f"Methods</title><p>{SENTENCE * 9}</p></sec></body><ref><article-title>Other</article-title><title>no</title></ref></article>",
            None,
            [("The study",), ("Methods",), ("Other",)],
        ),
        (
            f"<TEI xmlns='http://www.tei-c.org/ns/1.0'><text><div><head>First act</head><p>{SENTENCE}</p></div></text></TEI>",
            "First act",
            [("First act",)],
        ),
        (
            f"<FictionBook xmlns='http://www.gribuser.ru/xml/fictionbook/2.0'><body><section><title><p>Chapter 1</p><p>The "
            f"<strong>tide</strong></p></title><p>{SENTENCE * 2}</p></section></body></FictionBook>",
            "Chapter 1 The tide",
            [("Chapter 1 The tide",)],
        ),
        (f"<!DOCTYPE a [<!ENTITY x 'y'>]><doc><p>{SENTENCE} &x;</p><title>no title here</title></doc>", None, [()]),
    ],
)
def test_prose_in_xml_is_cut_at_its_titles(markup, title, headings):
    extracted = read(f"<?xml version='1.0'?>{markup}", "a.xml")
    assert extracted.title == title
    assert [heading for heading, _ in sections(extracted) if heading != () or len(headings) == 1] == headings


@pytest.mark.parametrize(
    "source",
    [
        "<?xml version='1.0'?><server port='8080'><host>localhost</host></server>",
        "<?xml version='1.0'?><broken>not closed, but readable as it is",
    ],
)
def test_data_and_broken_xml_are_read_as_source_text(source):
    assert read(source, "a.xml").text == source


def test_xml_reaches_for_nothing_outside_itself(tmp_path):
    (tmp_path / "secret").write_text("the secret")
    source = f"<!DOCTYPE a [<!ENTITY x SYSTEM '{(tmp_path / 'secret').as_uri()}'>]><a>before and after it: &x;</a>"
    assert "the secret" not in read("<?xml version='1.0'?>" + source, "a.xml").text


def test_entities_do_not_multiply():
    entities = "".join(f"<!ENTITY e{n + 1} '{f'&e{n};' * 10}'>" for n in range(9))
    bomb = f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e0 'ha'>{entities}]><a>&e9;</a>"
    assert len(read(bomb, "a.xml").text) <= len(bomb)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>See <a href='https://sea.org/tides'>Tide tables</a>.</p>", "See Tide tables (https://sea.org/tides).\n"),
        ("<p><a href='mailto:ada@sea.org'>Ada</a></p>", "Ada (mailto:ada@sea.org)\n"),
        ("<p><a href='https://sea.org/'>https://sea.org/</a></p>", "https://sea.org/\n"),
        ("<p><a href='https://sea.org/'>sea.org</a></p>", "sea.org\n"),
        ("<p><a href='/here'>Here</a> <a href='#top'>Top</a> <a href='javascript:x()'>X</a></p>", "Here Top X\n"),
        ("<nav><a href='https://sea.org/a'>Home</a></nav><p>x</p>", "Home\n\nx\n"),
        (f"<p><a href='https://sea.org/?{'t' * 500}'>Offer</a></p>", "Offer\n"),
        ("<table><tr><td><a href='https://sea.org/a'>A</a></td><td>b</td></tr></table>", "A (https://sea.org/a) | b\n"),
        ("<h1><a href='https://sea.org/a'>Tides</a></h1><p>x</p>", "Tides\n\nx\n"),
        ("<p><a href='https://sea.org/a'><img src='a.png'></a></p><p>x</p>", "https://sea.org/a\n\nx\n"),
    ],
)
def test_links_to_other_sites_keep_their_addresses(markup, text):
    assert read(markup).text == text


def test_bookmarks_keep_their_addresses():
    exported = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>
<DL><p><DT><H3>Sea</H3><DL><p>
<DT><A HREF="https://sea.org/tides" ADD_DATE="1700000000">Tide tables</A>
<DT><A HREF="https://sea.org/knots">Knots</A>
</DL><p></DL><p>"""
    text = read(exported).text
    assert "Tide tables (https://sea.org/tides)\n" in text
    assert "Knots (https://sea.org/knots)\n" in text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<html><body><p>first</p></body></html><p>added by a server</p>", "first\n\nadded by a server\n"),
        ("<html><body>one</body></html>\n<html><body>two</body></html>", "one two\n"),
        (
            "<p>before</p><iframe srcdoc='&lt;p&gt;framed&lt;/p&gt;'></iframe><p>after</p>",
            "before\n\nframed\n\nafter\n",
        ),
        ("<p>Name: <input value='Ada'> <input type=hidden value=x><input type=submit value=Send></p>", "Name: Ada\n"),
    ],
)
def test_whatever_a_browser_shows_of_a_page_is_read(markup, text):
    assert extract(markup.encode(), "a.html")[1].text == text


def test_frames_in_frames_end():
    markup = "<p>deepest</p>"
    for _ in range(5):
        markup = f"<p>level</p><iframe srcdoc='{markup.replace('&', '&amp;').replace(chr(39), '&#39;').replace('<', '&lt;')}'></iframe>"
    text = extract(markup.encode(), "a.html")[1].text
    assert (text.count("level"), text.count("deepest")) == (4, 0)


# Pages as browsers save them in one file

PAGE = "<html><head><title>Bees</title><style>p{{}}</style></head><body><p>The cluster keeps warm.</p>{}</body></html>"


def saved(
    *parts, headers="From: <Saved by Blink>\nSnapshot-Content-Location: https://x.example/\nSubject: Bees in winter\n"
):
    body = "".join(f"--b\n{part}\n" for part in parts)
    return (
        f"{headers}Date: Mon, 2 Mar 2026 09:00:00 +0000\nMIME-Version: 1.0\n"
        f'Content-Type: multipart/related; type="text/html"; boundary="b"\n\n{body}--b--\n'
    ).encode()


def part(content, kind="text/html", more=""):
    return f'Content-Type: {kind}; charset="utf-8"\nContent-Transfer-Encoding: 8bit\n{more}\n{content}'


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ("From: <Saved by Blink>\n", "page"),
        ('From: "Saved by Windows Internet Explorer 8"\n', "page.mht"),
        ("Snapshot-Content-Location: https://x.example/\n", "page.mhtml"),
        ("", "page.mht"),
    ],
)
def test_a_saved_page_is_the_page_without_styles_and_without_who_saved_it(headers, name):
    source = saved(
        part(PAGE.format("")), part("p {color: red}", "text/css"), part("x()", "text/javascript"), headers=headers
    )
    doc_type, extracted = extract(source, name)
    assert (doc_type, extracted.title, extracted.text) == ("mht", "Bees", "The cluster keeps warm.\n")
    assert extracted.attachments == ()
    assert extracted.date.startswith("2026-03-02")


def test_frames_are_part_of_the_page_and_each_once():
    frame = part("<p>In the frame stands the weight of the hive.</p>")
    _, extracted = extract(saved(part(PAGE.format("")), frame, frame), "page.mht")
    assert extracted.text == "The cluster keeps warm.\n\nIn the frame stands the weight of the hive.\n"


def test_a_page_without_a_title_is_called_as_its_header_says():
    _, extracted = extract(saved(part("<p>Words of a page</p>")), "page.mht")
    assert extracted.title == "Bees in winter"


def test_a_document_that_a_page_shows_is_one_of_its_own():
    shown = 'Content-Type: application/pdf; name="plan.pdf"\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQK'
    _, extracted = extract(saved(part(PAGE.format("")), shown), "page.mht")
    assert [each.filename for each in extracted.attachments] == ["plan.pdf"]


def test_a_message_from_someone_of_that_name_is_a_message():
    source = saved(part(PAGE.format("")), headers="From: Saved by the bell <bell@example.org>\nMessage-ID: <1@x>\n")
    assert extract(source, "mail.eml")[0] == "eml"
