"""Web pages, written by hand in typical forms: the main text, and menus and other parts around it."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "cli" / "pages"

CAME_FOR = {
    "news": (
        "Harbour bridge to close for nine months of repairs",
        "Engineers found cracks in two of the bridge's six bearings",
        "taken across by a ferry that runs every twelve minutes",
        "(https://example.org/reports/bearings-2019.pdf)",
        "# Why not at night",
        "you do not put it down again each morning",
        "The cost is put at 14.2 million",
        "# What drivers should do",
        "- Lorries above 7.5 tonnes must use the ring road.",
        "A public meeting is to be held in the corn exchange",
    ),
    "docs": (
        "Connection pools",
        "a request need not wait for a handshake",
        "import reef\n\nclient = reef.Client(pool_size=20)\nwith client:\n    client.get(",
        "# Limits",
        "pool_timeout | 30.0 | seconds to wait for one",
        "closes connections that the other one still reads from",
        "# Tuning",
        "- Raise the size of the pool by half.",
        "(https://example.org/queueing)",
        "How many connections wait for work right now.",
    ),
    "forum": (
        "Diesel smells after fuel filter change",
        "the whole cabin smells of diesel",
        "hanne",
        "people put the new one on top of it",
        "There are two of them!",
        "washing-up liquid and warm water",
        "lid bolt 9 Nm\nbleed screw 6 Nm",
        "One ring out, bolt at 9 Nm, and the smell is gone",
    ),
    "blog": (
        "How I stopped killing sourdough starters",
        "Mould took four, holidays took five",
        "one part starter, five parts flour, five parts water",
        "(https://example.com/ratios)",
        "# The schedule",
        "- Feed it one to five to five and leave it on the worktop.",
        "# If it goes grey",
        "throw everything away, the jar included",
        "2025-11-02",
    ),
    "table": (
        "Tide tables, Marsh End, June 2026",
        "Day | High water | Height (m) | Low water | Height (m)",
        "Sun 7 | 07:15 | 5.0 | 13:33 | 1.6",
        "Wed 10 | 10:44 | 4.9 | 16:58 | 1.7",
        "Heights are above chart datum",
    ),
    "thin": ("Ring the bell at the yard gate", "Mon–Fri 8–18"),
    "wiki": (
        "Lantern weir",
        "Built | 1764",
        "lamps which millers hung out at high water",
        "# History",
        "The abbey had it built again in sandstone",
        "# Fish ladder",
        "2023 | 388 | 1,241",
        "- Barbel pass in spring only.",
        "Mills of the upper Ammer",
    ),
    "question": (
        "Why is my partial index not used?",
        "CREATE INDEX open_jobs ON jobs(created)\n WHERE state = 'open';",
        "Write the value into the statement:",
        "SELECT * FROM jobs WHERE state = 'open' ORDER BY created;",
        "when the planner was built with STAT4",
        "(https://example.org/partialindex.html)",
    ),
    "recipe": (
        "Leek and potato soup",
        "My grandmother made this on the first cold day of October",
        "# Ingredients",
        "- 500 g floury potatoes",
        "# Method",
        "- Add the diced potatoes and the stock",
        "It freezes well for three months",
        "Energy | 1,150 kJ",
    ),
    "german": (
        "Die Brücke bleibt gesperrt",
        "an denen Prüfer im März Rost gefunden hatten",
        "„schöner wird sie auch“",
        "# Was das kostet",
        "den Rest müssen die Gemeinden am Südufer aufbringen",
    ),
    "japanese": (
        "港の橋、九か月の通行止め",
        "歩行者と自転車は十二分おきに出る渡し船を利用する",
        "三十年は持つと見込まれていた",
        "# 費用",
        "通行止めの間の減税を求めている",
    ),
    "readme": (
        "packs a folder into one file that any Unix can unpack",
        "# Install",
        "cargo install packrat\npackrat --version",
        "packrat diff notes.pack ~/notes",
        "- --exclude leaves out what a pattern names",
        "index offset | 8",
        "MIT or Apache-2.0, as you like.",
    ),
    "landing": (
        "Bookkeeping for small harbours",
        "Berths, invoices and the fuel dock in one place.",
        "# Invoices",
        "The pump reports each litre by itself.",
        "Marina | 200 | 79",
        "Export everything as CSV, at any time.",
    ),
}
"""The texts of each page that kb must keep. Headings follow `#`."""

AROUND = {
    "news": (
        "846 partners", "Manage preferences", "Weather in your town", "Search the archive", "Share on Facebook",
        "Ferry company wins a contract", "morning briefing", "Man finds seal", "fly to the sun", "Terms of use",
        "Registered in the port",
    ),
    "docs": (
        "Skip to content", "Version 5 is in beta", "Quickstart for the impatient", "Frequently asked questions",
        "Edit this page", "Toggle Light", "Made with Sphinx", "On this page",
    ),
    "forum": ("Register", "Login", "Board index", "Powered by phpBB", "Delete cookies"),
    "blog": (
        "Skip to content", "Shop the flour", "Click to share on Pinterest", "Seven loaves for beginners",
        "Required fields are marked", "Bagels without a mixer", "crumb shots", "own too many jars", "WordPress",
    ),
    "table": ("Moorings", "Page views"),
    "thin": (),
    "wiki": (
        "Random article", "Donate now", "14 languages", "View history", "Bell weir", "1764 establishments",
        "last edited", "Creative Commons",
    ),
    "question": (
        "Sign up", "Companies that hire", "Thanks for contributing", "rewrote our editor", "WITHOUT ROWID",
        "Can a dragon sneeze", "Site design",
    ),
    "recipe": (
        "third parties", "Mains", "knives that stay sharp", "Read more about me", "Crispy gnocchi", "Work with me",
    ),
    "german": ("Wir verwenden Cookies", "Abonnement", "Seehund", "Fischbrötchen", "Impressum", "Datenschutz"),
    "japanese": ("スポーツ", "通販カタログ", "アザラシ", "海辺の食堂十選", "無断転載"),
    "readme": ("Pricing", "Sign in", "Pull requests", "Do not follow links", "1.4k stars", "Rust 98.1%", "GitPier, Inc"),
    "landing": ("Log in", "Imprint"),
}  # fmt: skip
"""The texts around the main text of each page, which kb must drop."""


def page(name):
    """The page's bytes as a server sends them."""
    markup = (FOLDER / f"{name}.html").read_text(encoding="utf-8")
    return markup.encode("shift_jis" if name == "japanese" else "utf-8")
