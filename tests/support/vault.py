"""A vault as people keep it in Obsidian: notes in folders that link to and embed each other, in four languages."""

from __future__ import annotations

import struct
import zlib

from tests.support.pdf import pdf

KILN = """---
title: Kiln rebuild
tags: [projects/kiln, home]
aliases:
  - The kiln
status: in progress
supplier: "[[Bricks]]"
---
# Kiln rebuild

The kiln in the shed needs new bricks. See [[Bricks]], [[Bricks|the list of bricks]] and [[Bricks#Prices]].
Nobody has written [[The old chimney]] yet. Anna helps ([[Anna Lindqvist]]), [the insurer](../House/Insurance.md) pays.
More at https://example.org/kilns_and_more.

![[kiln-door.png|320]]

> [!warning] Carbon monoxide
> Never fire the kiln with the door of the shed closed.

> [!tip]- How to clean the burner
> Use a **soft** brush, and ==no water==.

## Open tasks

- [ ] Order 40 bricks
- [x] Measure the door
- [-] Borrow a mixer

%% Ask Bertil about the price of sand. %%

The heat follows $q = k A \\Delta T$, and costs $5 or $10 per day.[^gas] #projects/kiln

$$
\\int_0^T q \\, dt
$$

![[Bricks#Prices]]

![The door of the kiln](../attachments/kiln-door.png)

Firing is finished when the cone bends. ^cone

[^gas]: At the price of gas in March.
"""
BRICKS = """# Bricks

Fire bricks of two kinds. Back to [[Kiln rebuild]], where [[Kiln rebuild#^cone|the cone bends]].

## Prices

| Kind | Weight | Price |
|:-----|:------:|------:|
| Soft | 1.2 kg | 4.50 |
| Hard | 3.4 kg | 6.20 |

![[Kiln rebuild]]

## Sources

Only from [the maker](https://example.org/bricks).
"""
WEISS = """# Friedrich Weiß

Er kennt jeden Ofen in der Münchner Straße. Siehe [[Kiln rebuild]].

> [!info] Öffnungszeiten
> Werktags von acht bis fünf. #people
"""
NOTAIRE = """# Lettre du notaire

Le notaire attend la réponse d'[[Anna Lindqvist]] avant l'œuf de Pâques.

- [ ] Répondre au notaire
"""
TEA = "# お茶の淹れ方\n\n湯の温度は七十度です。==苦くない==。[[Kiln rebuild|窯]]で焼いた茶碗。\n\n> [!note]\n> 茶葉は五グラム。\n"
DACHA = "# Дача\n\nЯблони посажены весной. Печь как в [[Kiln rebuild]]. #home/garden\n\n- [x] Купить дрова\n"  # noqa: RUF001 - Russian
ANNA = "---\ntags: people\n---\n# Anna Lindqvist\n\nAnna's e-mail address is anna.lindqvist@example.se.\n"
INSURANCE = "# Insurance\n\nPolicy HV-4471-0098 covers the kiln, not the [[boiler]].\n\n![[policy.pdf#page=1]]\n"
DAILY = "Met [[Anna Lindqvist|Anna]] about the [[Kiln rebuild]].\n\n- [ ] Call the insurer\n- [x] Buy tea\n"


def png(width: int = 64, height: int = 48) -> bytes:
    """Return a picture of a brown door."""
    row = b"\0" + b"\x8a\x5a\x33" * width

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(row * height)) + part(b"IEND", b"")
    )


def vault(days: int = 20) -> dict[str, bytes]:
    """Return the files of the vault by path, with a daily note for each of some days."""
    texts = {
        "Projects/Kiln rebuild.md": KILN,
        "Projects/Bricks.md": BRICKS,
        "People/Friedrich Weiß.md": WEISS,
        "People/Anna Lindqvist.md": ANNA,
        "House/Insurance.md": INSURANCE,
        "House/Lettre du notaire.md": NOTAIRE,
        "Reading/お茶.md": TEA,
        "Reading/Дача.md": DACHA,
        **{f"Daily/2026-03-{day:02}.md": f"Day {day}. {DAILY}" for day in range(1, days + 1)},
    }
    return {
        ".obsidian/app.json": b"{}",
        "attachments/kiln-door.png": png(640, 400),
        "attachments/policy.pdf": pdf("The policy covers fire."),
        **{path: text.encode() for path, text in texts.items()},
    }
