"""Files as a signature encloses them (CMS), without a signature that anyone could check."""

from __future__ import annotations

SIGNED = bytes.fromhex("06092a864886f70d010702")
DATA = bytes.fromhex("06092a864886f70d010701")


def element(tag, content):
    size = len(content)
    head = bytes([size]) if size < 0x80 else b"\x84" + size.to_bytes(4, "big")
    return bytes([tag]) + head + content


def streamed(tag, content):
    """An element whose length its writer did not know yet."""
    return bytes([tag, 0x80]) + content + bytes(2)


def signed(content, write=element, pieces=1):
    size = -(-len(content) // pieces)
    octets = [element(0x04, content[at : at + size]) for at in range(0, len(content), size)]
    held = octets[0] if pieces == 1 else streamed(0x24, b"".join(octets))
    enclosed = write(0x30, DATA + write(0xA0, held))
    return write(
        0x30, SIGNED + write(0xA0, write(0x30, b"\x02\x01\x01" + element(0x31, b"") + enclosed + element(0x31, b"")))
    )
