"""The names of the parts of an archive."""


def plain_name(name: str) -> str:
    """Return a name as other parts write it: some programs on Windows write it with backslashes."""
    return name.replace("\\", "/")
