"""Write incoming content: to an existing document, to one in the bin, or to a new one."""

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace
from pathlib import PurePath, PurePosixPath
from typing import Any, Final

from kb.api.errors import Invalid, PathTaken
from kb.api.fields import NOTE, THREAD
from kb.documents.lookup import existing_document
from kb.documents.originals import Originals
from kb.documents.title_of_file import follow_file, title_in_file
from kb.markdown.front_matter import claims_of
from kb.store.protocol import Store, Transaction
from kb.store.rows import NOBODY, Author, Binned, Chunk, Content, Document, NewChunk, SyncedFolder, optional_fields

SAME_FACTS: Final = 20
"""How many notes with the same text are compared with a new one."""

OUTSIDE: Final = (
    "source_path: {0} is outside {1}, the vault of this document, so kb would remove its file from {2}. Choose a path"
    " that begins with {1}."
)


def write_document(
    tx: Transaction,
    content: Content,
    source_path: str | None,
    tags: Sequence[str],
    *,
    part_of: int | None = None,
    author: Author = NOBODY,
) -> tuple[int, bool]:
    """Write incoming content; return the document's id, and whether it already held this content (requirement E-11).

    The same content at the same path is the same document and adds its tags. So does a note without a path if
    another note has its text with other front matter (`known_fact`). New content at a known path, a new title, or a new
    reading of the same file replaces the content of that document and removes the tags that only the old content set.
    A file that returns, with the path or content of a document in the bin, restores that document.
    Everything else is a new document. `part_of` is the document whose file contained the content.

    A new reading of the same file does not count as a change: it makes no version and keeps `updated_at`.
    """
    same = tx.documents.with_content(content.content_hash, source_path, note=content.doc_type == NOTE)
    if same is None and (known := known_fact(tx, content, source_path, tags)):
        if _says_more(content, known, _claims(content.chunks) - _claims(tx.documents.chunks(known.id))):
            merged = replace(content, **_fields_of_both(content, known))
            merge(tx, known, merged, [*tags, *known.tags], is_same=False, author=author)
        elif not set(known.tags).issuperset([*tags, *content.own_tags]):
            tx.history.keep(known.id, author)
            tx.documents.change_tags(known.id, add=[*tags, *content.own_tags], remove=())
        return known.id, True
    document = same or (tx.documents.at_path(source_path) if source_path is not None else None)
    if source_path is not None:
        tx.folders.let_in(source_path)
    if document is None and (binned := find_in_bin(tx, content, source_path, part_of)):
        return bring_back(tx, binned, content, source_path, tags, author), False
    if document is None:
        linked = _linked(tx, content, None, author)
        return tx.documents.add(linked, source_path, [*tags, *linked.own_tags], part_of, author), False
    merge(tx, document, content, tags, is_same=same is not None, author=author)
    return document.id, same is not None


def move(
    store: Store, document_id: int, source_path: str, author: Author = NOBODY, originals: Originals | None = None
) -> Document:
    """Change the source path of a document; return the document, which keeps its id and gets a new version.

    A title that came from the name of its file follows that name; `originals` tell whether it did. A file in a vault,
    which kb also writes to, stays in it: elsewhere, kb would take it off the disk.

    Raises:
        NotFound: the document does not exist.
        Invalid: it would leave its vault.
        PathTaken: another document has this path.
    """
    own = None
    if originals:
        with store.read() as tx:
            document = existing_document(tx, document_id)
        own = title_in_file(originals, document)
    with store.write() as tx:
        document = existing_document(tx, document_id)
        if document.source_path == source_path:
            return document
        vault = _folder_at(tx, document.source_path or "")
        if vault and vault.is_kept and _folder_at(tx, source_path) != vault:
            raise Invalid(OUTSIDE.format(source_path, vault.prefix, vault.path))
        occupant = tx.documents.at_path(source_path)
        if occupant is not None:
            raise PathTaken(f"Document {occupant.id} already has the source_path {source_path}.")
        tx.history.keep(document_id, author)
        tx.documents.move(document_id, source_path)
        tx.folders.let_in(source_path)
        follow_file(tx, document, source_path, author, own)
        return existing_document(tx, document_id)


def _folder_at(tx: Transaction, path: str) -> SyncedFolder | None:
    """Return the innermost folder in step with kb that contains a path."""
    around = (folder for folder in tx.folders.all() if path.startswith(folder.prefix))
    return max(around, key=lambda folder: len(folder.prefix), default=None)


def known_fact(tx: Transaction, content: Content, source_path: str | None, tags: Collection[str]) -> Document | None:
    """Return the note with the text of a new note without a path, and with other front matter.

    Turns of a conversation, and notes with two different titles or dates, are two events and not one fact.
    """
    if content.body_hash is None or source_path is not None or _is_turn([*tags, *content.own_tags]):
        return None
    known = tx.documents.with_body(content.body_hash, SAME_FACTS)
    return next((note for note in known if not _is_turn(note.tags) and _loses_nothing(tx, content, note)), None)


def _is_turn(tags: Iterable[str]) -> bool:
    return any(tag.startswith(THREAD) for tag in tags)


def _loses_nothing(tx: Transaction, content: Content, known: Document) -> bool:
    """Return whether one of two notes with the same text has the titles and dates of both."""
    claims, known_claims = _claims(content.chunks), _claims(tx.documents.chunks(known.id))
    if not _says_more(content, known, claims - known_claims):
        return claims <= known_claims
    return known_claims <= claims and (content.title_given or not known.title_given)


def _claims(chunks: Iterable[NewChunk | Chunk]) -> Set[tuple[str, str]]:
    return claims_of("".join(chunk.text for chunk in chunks))


def _says_more(content: Content, known: Document, new_claims: Set[tuple[str, str]]) -> bool:
    """Return whether a note with a known text has a title, an origin or a date that the known note lacks."""
    return bool(new_claims) or _has_other_title(content, known) or _has_other_origin(content, known)


def known_note(tx: Transaction, content: Content, source_path: str | None, tags: Collection[str]) -> Document | None:
    """Return the note that `write_document` would keep instead of this new one."""
    same = tx.documents.with_content(content.content_hash, source_path, note=True)
    return same or known_fact(tx, content, source_path, tags)


def merge(
    tx: Transaction,
    document: Document,
    content: Content,
    tags: Sequence[str],
    *,
    is_same: bool,
    author: Author = NOBODY,
) -> None:
    """Write content into an existing document, as above; `is_same` means that it held this content before."""
    given, tags = tags, [*tags, *content.own_tags]
    same = document if is_same else None
    content = _linked(tx, content, document, author)
    is_said = same is None or _has_other_title(content, same) or _has_other_origin(content, same)
    has_other_text = _has_other_text(tx, content, document)
    is_changed = is_said or has_other_text
    outdated = set(document.own_tags) if is_changed else set[str]()
    is_reread = is_changed and not is_said and not given
    has_other_tags = set(document.tags).difference(outdated).union(tags) != set(document.tags)
    if not is_reread and (is_changed or has_other_tags):
        tx.history.keep(document.id, author)
    if is_changed:
        merged = replace(content, **_fields_of_both(content, same)) if same else content
        merged = without_given_tags(merged, document, given)
        if same and same.title_given and not (content.title_given or has_other_text):
            tx.documents.update(document.id, replace(merged, title=same.title, title_given=True))
        else:
            tx.documents.replace(document.id, merged)
    elif content.filename and content.filename != document.filename:
        tx.documents.rename(document.id, content.filename)
    tx.documents.change_tags(document.id, add=tags, remove=outdated)
    if is_reread:
        tx.documents.stamp(document.id, document.updated_at)


def _fields_of_both(content: Content, document: Document) -> dict[str, Any]:
    """Return the optional fields of content, or failing that, of the document."""
    return optional_fields(document) | {name: value for name, value in optional_fields(content).items() if value}


def without_given_tags(content: Content, document: Document, given: Sequence[str] = ()) -> Content:
    """Return the content without its own tags that somebody gave the document: these stay if the text drops them."""
    by_hand = {*document.tags, *given}.difference(document.own_tags)
    return replace(content, own_tags=tuple(tag for tag in content.own_tags if tag not in by_hand))


def _linked(tx: Transaction, content: Content, document: Document | None, author: Author) -> Content:
    """Return content whose `replaces` names another existing document, or failing that, the link that the document has.

    If that document had replaced this one, the order is reversed: the later statement holds. If this document already
    replaces it, directly or through others, it keeps its link, so that those in between keep their places.
    """
    target_id = content.replaces
    if document is None:
        return content if target_id is None or tx.documents.get(target_id) else replace(content, replaces=None)
    if target_id in (None, document.id) or tx.documents.get(target_id) is None:
        return replace(content, replaces=document.replaces)
    successors = tx.documents.successors([document.id, target_id])
    if document.id in successors.get(target_id, ()):
        return replace(content, replaces=document.replaces)
    if target_id in successors.get(document.id, ()):
        tx.history.unlink(document.id, author)
    return content


def _has_other_origin(content: Content, document: Document) -> bool:
    """Return whether the content has other optional fields, or replaces another document."""
    known = optional_fields(document)
    has_other = any(value not in (None, known[name]) for name, value in optional_fields(content).items())
    return has_other or content.replaces != document.replaces


def _has_other_title(content: Content, document: Document) -> bool:
    """Return whether the content has a new title: a given one, or a new file name if the old one was the title."""
    is_called_after_file = bool(content.filename) and document.title == PurePath(document.filename or "").stem
    return content.title != document.title and (content.title_given or is_called_after_file)


def _has_other_text(tx: Transaction, content: Content, document: Document) -> bool:
    """Return whether an older reader extracted another text from the file."""
    text = "".join(chunk.text for chunk in content.chunks)
    if tx.documents.extent(document.id).characters != len(text):
        return True
    [first, *_] = tx.documents.chunks(document.id, limit=1)
    return not text.startswith(first.text)


def find_in_bin(tx: Transaction, content: Content, source_path: str | None, part_of: int | None) -> Binned | None:
    """Return the document in the bin that a file restores: the one at its path, otherwise one with the same content.

    Of several with the same content, one with the same file name comes first, then the one deleted last. A part of
    another file is only restored as a part of that file.
    """
    if source_path is None or content.doc_type == NOTE:
        return None
    candidates = tx.history.in_bin(source_path, content.content_hash)
    at_path = [binned for binned in candidates if binned.document.source_path == source_path]
    if at_path:
        return at_path[0]
    same = [
        binned
        for binned in candidates
        if binned.part_of == part_of and binned.document.content_hash == content.content_hash
    ]
    name = PurePosixPath(source_path).name
    return max(same, key=lambda binned: PurePosixPath(binned.document.source_path or "").name == name, default=None)


def bring_back(
    tx: Transaction,
    binned: Binned,
    content: Content,
    source_path: str | None,
    tags: Sequence[str],
    author: Author = NOBODY,
) -> int:
    """Restore a document from the bin with the current content of its file; return its id.

    It keeps its id, history and tags, without the tags that only its earlier content set.
    """
    before = binned.document
    tx.history.restore(before.id, content, author)
    is_same = content.content_hash == before.content_hash
    if not is_same or (content.title != before.title and (content.title_given or not before.title_given)):
        tx.documents.replace(before.id, content)
    if source_path != before.source_path:
        tx.documents.move(before.id, source_path)
    tx.documents.change_tags(before.id, add=[*tags, *content.own_tags], remove=() if is_same else before.own_tags)
    tx.jobs.retry_parts(before.id)
    return before.id
