"""Which links stand in a Markdown text, and where they lead, by Obsidian's rules."""

from __future__ import annotations

import time

import pytest

from kb.index.words.link_targets import (
    BY_ALIAS,
    BY_NAME,
    MOST,
    Candidate,
    Resolver,
    folder_of,
    line_at,
    links_in,
    names_of,
)
from tests.support.rare_cases import mostly_rare

VAULT = "/home/ada/vault/"
FILES = {
    "Home.md": (), "Kiln.md": (), "Projects/Kiln.md": (), "Projects/House/Keys.md": ("Schlüssel",), "Archive/Keys.md": (),
    "Archive/Projects/Kiln.md": (), "Areas/House/Index.md": (), "Areas/Garden/Index.md": (), "Areas/Index.md": (),
    "attachments/plan.png": (), "Projects/attachments/plan.png": (), "attachments/deed.pdf": (), "v1.2 notes.md": (),
    "C++.md": (), "日本語.md": (), "Cafe\u0301.md": (), "People/Friedrich Weiß.md": ("Fritz",), "Board.canvas": (),
    "Projects/Bike.md": ("Velo", "Keys"), "Deep/a/b/c/Leaf.md": (), "Leaf.md": (), "Fritz.md": (), "table.csv": (),
    "C#.md": (), "Node.js.md": (),
}  # fmt: skip
OUTSIDE = {"/home/ada/other/Home.md": (), "/home/ada/other/Only.md": (), "/home/ada/other/x/Keys.md": ()}

CASES = [
    # by name
    ("Home.md", "Projects/House/Keys", "Projects/House/Keys.md"),
    ("Home.md", "Bike", "Projects/Bike.md"),
    ("Home.md", "bike", "Projects/Bike.md"),
    ("Home.md", "BIKE.md", "Projects/Bike.md"),
    ("Home.md", "Bik", None),
    ("Home.md", "C++", "C++.md"),
    ("Home.md", "c%23", "C#.md"),
    ("Home.md", "Node.js", "Node.js.md"),
    ("Home.md", "node.js.md", "Node.js.md"),
    ("Home.md", "v1.2 notes.md", "v1.2 notes.md"),
    ("Home.md", "projects/HOUSE/keys.MD#Shed", "Projects/House/Keys.md"),
    ("Home.md", "Cafe\u0301.md", "Cafe\u0301.md"),
    ("Home.md", "attachments/deed", "attachments/deed.pdf"),
    ("Home.md", "日本語", "日本語.md"),
    ("Home.md", "Caf\u00e9", "Cafe\u0301.md"),
    ("Home.md", "friedrich weiß", "People/Friedrich Weiß.md"),
    ("Home.md", "v1.2 notes", "v1.2 notes.md"),
    ("Home.md", "Board.canvas", "Board.canvas"),
    ("Home.md", "deed.pdf", "attachments/deed.pdf"),
    ("Home.md", "deed", "attachments/deed.pdf"),
    ("Home.md", "table.csv", "table.csv"),
    # a heading, a block
    ("Home.md", "Bike#Tyres", "Projects/Bike.md"),
    ("Home.md", "Bike#^a1b2", "Projects/Bike.md"),
    ("Home.md", "Projects/Bike.md#Tyres#Front", "Projects/Bike.md"),
    # nearest first
    ("Home.md", "Kiln", "Kiln.md"),
    ("Projects/Bike.md", "Kiln", "Projects/Kiln.md"),
    ("Archive/Projects/Kiln.md", "Kiln", "Archive/Projects/Kiln.md"),
    ("Archive/Keys.md", "Kiln", "Archive/Projects/Kiln.md"),
    ("Deep/a/b/c/Leaf.md", "Kiln", "Kiln.md"),
    ("Areas/House/Index.md", "Index", "Areas/House/Index.md"),
    ("Areas/Garden/Index.md", "Index", "Areas/Garden/Index.md"),
    ("Areas/Index.md", "Index", "Areas/Index.md"),
    ("Deep/a/b/c/Leaf.md", "Leaf", "Deep/a/b/c/Leaf.md"),
    ("Deep/a/b/x.md", "Leaf", "Deep/a/b/c/Leaf.md"),
    ("Kiln.md", "plan.png", "attachments/plan.png"),
    ("Projects/Kiln.md", "plan.png", "Projects/attachments/plan.png"),
    # by path
    ("Areas/Index.md", "House/Index", "Areas/House/Index.md"),
    ("Home.md", "House/Index", "Areas/House/Index.md"),
    ("Archive/Keys.md", "Projects/Kiln", "Projects/Kiln.md"),
    ("Home.md", "Gar/Index", None),
    ("Home.md", "ouse/Index", None),
    ("Home.md", "Nowhere/Bike", None),
    ("Projects/House/Keys.md", "../Kiln", "Projects/Kiln.md"),
    ("Projects/House/Keys.md", "../../Kiln.md", "Kiln.md"),
    ("Projects/House/Keys.md", "../../../Kiln.md", None),
    ("Projects/House/Keys.md", "./Kiln", None),
    ("Projects/Bike.md", "./House/Keys.md", "Projects/House/Keys.md"),
    ("Projects/Bike.md", "/Kiln", "Kiln.md"),
    ("Projects/Bike.md", "Projects\\House\\Keys", "Projects/House/Keys.md"),
    ("Home.md", "/home/ada/vault/Projects/Kiln.md", "Projects/Kiln.md"),
    ("Projects/Bike.md", "/home/ada/other/Home.md", "/home/ada/other/Home.md"),
    # a name before an alias, another vault last
    ("Home.md", "Velo", "Projects/Bike.md"),
    ("Home.md", "Schlüssel", "Projects/House/Keys.md"),
    ("Projects/Bike.md", "Keys", "Projects/House/Keys.md"),
    ("People/Friedrich Weiß.md", "Fritz", "Fritz.md"),
    ("Archive/Keys.md", "Home", "Home.md"),
    ("Archive/Keys.md", "Only", "/home/ada/other/Only.md"),
]


def candidates(key):
    files = {f"{VAULT}{path}": aliases for path, aliases in FILES.items()} | OUTSIDE
    return [
        Candidate.of(number, path, path, ranks[key])
        for number, (path, aliases) in enumerate(files.items(), 1)
        if key in (ranks := names_of("A title", path, [(alias, BY_ALIAS) for alias in aliases]))
    ]


@pytest.mark.parametrize(("here", "target", "expected"), CASES, ids=[f"{here}-{to}" for here, to, _ in CASES])
def test_a_link_leads_where_obsidian_leads(here, target, expected):
    [link] = links_in(f"[[{target}]]")
    resolver = Resolver({link.key: candidates(link.key)}, [VAULT])
    found = resolver.document(link, folder_of(f"{VAULT}{here}"))
    assert (found and found.title.removeprefix(VAULT)) == expected


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[[Note]] and [[Note|an alias]] and [[Note#Heading]]", ["Note", "Note#Heading"]),
        ("![[picture.png|300]] [[#Heading]] [[#^block]]", ["picture.png", "#Heading", "#^block"]),
        ("| a | b |\n|---|---|\n| [[Note\\|alias]] | x |", ["Note"]),
        ("[text](../a/b.md) ![alt](img%20one.png 'a title')", ["../a/b.md", "img one.png"]),
        ("[text](<with space.md#part>) [x](a(1).md)", ["with space.md#part", "a(1).md"]),
        ("[id]: ../ref.md 'title'", ["../ref.md"]),
        ("[x](%D6%DC.md) [x](%C3%96.md) [x](file:///home/ada/a%20b.md)", ["ÖÜ.md", "Ö.md", "/home/ada/a b.md"]),
        ("[[a [[nested]] b]] [[Note (draft), v2]] [[It's & more]]", ["nested", "Note (draft), v2", "It's & more"]),
        ("see kb://documents/12, and kb://documents/12#3.", ["kb://documents/12", "kb://documents/12#3"]),
        ("<https://example.org/a/> https://example.org/b. (https://example.org/c)",
         ["https://example.org/a/", "https://example.org/b", "https://example.org/c"]),
        ("[mail](mailto:a@b.c) [x](obsidian://open?vault=v) [x](javascript:alert(1)) [x](//host/a) [x]()", []),
        ("`[[code]]` ``[[more `x` code]]`` [[real]]", ["real"]),
        ("```\n[[fenced]]\n```\n~~~md\n[[also]]\n~~~\n[[after]]", ["after"]),
        ("````\n```\n[[inner]]\n```\n````\n> ```\n> [[quoted]]\n> ```\n[[after]]", ["after"]),
        ("a stray ` here\n\n[[between]]\n\nand ` there", ["between"]),
        ("[[]] [[ ]] [[|x]] [[a\nb]] [x](\n) [[a]b]] [not](a link.md)", []),
        ("- [ ] a task\n- [x] done [[a]]", ["a"]),
        ("---\nrelated: \"[[Front]]\"\n---\ntext", ["Front"]),
        ("text[^1] and [^2]\n\n[^1]: See the log.\n[^2]: [[Note]] says so", ["Note"]),
        ("[text][id], [id][]\n\n[id]: <Notes/My%20note.md>", ["Notes/My note.md"]),
        ("%%[[hidden]]%% [[a]] <!-- [[hidden]]\n[[hidden]] --> [[b]] %% to be done\n[[hidden]]\n%%\n[[c]]", ["a", "b", "c"]),
        ("100 %% of [[a]], and <!-- of [[b]]", ["a", "b"]),
        ("\\[[no link]] \\[\\[no link\\]\\] [[link]]", ["link"]),
        ("[C#](C%23.md) [part](a%23b/c.md#d%23e)", ["C%23.md", "a%23b/c.md#d%23e"]),
        ("[[Folder/Note#Heading|alias]] [[ spaced ]] [[Note.md]]", ["Folder/Note#Heading", "spaced", "Note.md"]),
        ("![[book.pdf#page=3]] ![[clip.mp4#t=10|x]] ![x|100](a.png)", ["book.pdf#page=3", "clip.mp4#t=10", "a.png"]),
        ("[[[a]]] [[a]](b.md) [![alt](pic.png)](page.md)", ["a", "pic.png", "page.md"]),
        ("> [!note] [[in a callout]]\n> - [ ] [[in a task]]\n\n1. [[in a list]]", ["in a callout", "in a task", "in a list"]),
        ("==[[marked]]== **[[bold]]** ~~[[struck]]~~ #[[tag]]", ["marked", "bold", "struck", "tag"]),
        ("[[Plan [old]]] [[Tent [2] poles#Poles|poles]] ![[Rota [June]]]", ["Plan [old]", "Tent [2] poles#Poles", "Rota [June]"]),
        ("[r]: <Q & A.md> 't'\n[a b]: <b c.md#Cone>", ["Q & A.md", "b c.md#Cone"]),
        ("> [r]: <Q & A.md> (t)\n\n[s]:\n  <b c.md>", ["Q & A.md", "b c.md"]),
        ("[a note]:\nIt is no link.\n\n[t]:\n\n<b c.md>", []),
        ("\\`[[a]] `[[b]]` ``[[c]]\\`` [[d]]", ["a", "d"]),
        ("[[a\x00b]] [[" + "x" * 600 + "]]", []),
    ],
)  # fmt: skip
def test_the_links_in_a_text(text, targets):
    assert [link.target for link in links_in(text)] == targets


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("/d/42", "kb://documents/42"),
        ("/d/42#c7", "kb://documents/42"),
        ("http://localhost:8000/d/42", "kb://documents/42"),
        ("http://127.0.0.1:8000/d/42/history", "kb://documents/42"),
        ("http://localhost:8000/d/42x", "http://localhost:8000/d/42x"),
        ("https://example.org/d/42", "https://example.org/d/42"),
        ("/d/42.md", "42.md"),
        ("kb://documents/42#3", "kb://documents/42"),
        ("KB://Documents/42", "kb://documents/42"),
    ],
)
def test_the_address_of_a_document_in_the_web_interface_is_a_link_to_it(target, key):
    assert [link.key for link in links_in(f"[x]({target})")] == [key]


def test_a_link_knows_its_place():
    text = "```\ncode\n```\n`x` 日本 🐘 then [[Note]]"
    [link] = links_in(text)
    assert text[link.place :].startswith("[[Note]]")


def test_of_a_text_with_very_many_links_the_first_are_kept():
    assert len(links_in(" ".join(f"[[n{number}]]" for number in range(5 * MOST)))) == MOST


@pytest.mark.parametrize(
    "piece",
    mostly_rare(
        [
            "[[",
            "](",
            "`",
            "``` ",
            "![[a|",
            "[a](",
            "](<",
            "[x](" + "(" * 30,
            "https://",
            "[a]: ",
            "((",
            "\n```\n`",
            "<!--",
            "%%",
            "<!-- -->",
            "<!--%%-->",
        ],
        6,
    ),
)
def test_a_text_made_to_cost_too_much_costs_little(piece):
    text = (piece * (1_000_000 // len(piece)))[:1_000_000]
    begun = time.process_time()
    links_in(text)
    assert time.process_time() - begun < 5


def test_links_with_folders_to_a_popular_name_do_not_look_at_all_documents_of_that_name(monkeypatch):
    compared = []
    is_at = Candidate.is_at
    monkeypatch.setattr(
        Candidate, "is_at", lambda each, *args, **kind: compared.append(each) or is_at(each, *args, **kind)
    )
    paths = [f"{VAULT}docs/package-{number}/README.md" for number in range(200)]
    readmes = [Candidate.of(number, path, path, BY_NAME) for number, path in enumerate(paths)]
    resolver = Resolver({"readme.md": readmes}, [VAULT])
    links = links_in("\n".join(f"[x](docs/package-{number}/README.md)" for number in range(200)))
    found = [resolver.document(link, folder_of(f"{VAULT}index.md")) for link in links]
    assert [each.document_id for each in found] == list(range(200))
    assert len(compared) <= 2 * len(links)


def test_the_words_around_a_link_in_a_long_line_are_whole_and_show_what_is_left_out():
    before, after = "customers leave because " * 20, " of the invoice" * 40
    line = f"{before}[[Atlas]]{after}"
    shown = line_at(f"first\n{line}\nlast", len("first\n") + len(before))
    assert shown.startswith(("… customers", "… leave", "… because"))
    assert "[[Atlas]] of the" in shown
    assert shown.endswith((" of …", " the …", " invoice …"))
    assert len(shown) <= 304
    assert line_at("one\nSee [[Atlas]] now.\nthree", 8) == "See [[Atlas]] now."
    assert "[[Atlas]]" in line_at("x" * 500 + "[[Atlas]]" + "y" * 500, 500)
