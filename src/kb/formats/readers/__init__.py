"""One module per format, each with `read(data: bytes) -> Extracted`."""
