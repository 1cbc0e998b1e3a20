"""One module a format, each with `read(data: bytes) -> Extracted`."""
