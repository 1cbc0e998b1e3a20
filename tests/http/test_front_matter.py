"""What files say of themselves shows wherever documents are shown, whoever sent them."""

from __future__ import annotations

import io
from hashlib import sha256
from uuid import uuid4

import pytest

from kb.api.errors import NotFound, NotRetryable
from tests.http.conftest import finished


@pytest.fixture
def path():
    return f"/{uuid4().hex}/owl.md"


async def sent(api, path, text, **fields):
    job = await finished(api, await api.add_file("owl.md", io.BytesIO(text.encode()), source_path=path, **fields))
    return await api.document(job["document_id"])


async def test_title_tags_and_date_are_shown_as_written(api, path):
    word = path[1:10]
    text = f"---\ntitle: The owl\ntags: [birds/night]\ndate: 2024-03-01\naliases: [Strix{word}]\n---\nIt hunts #mice.\n"
    document = await sent(api, path, text, tags=["given"])
    assert (document["title"], document["date"]) == ("The owl", "2024-03-01")
    assert document["tags"] == ["birds/night", "given", "mice"]
    [listed] = (await api.documents(source_path=path))["documents"]
    assert (listed["date"], listed["tags"]) == (document["date"], document["tags"])
    [found] = (await api.search(query=f"Strix{word}", source_path=path))["results"]
    assert (found["date"], found["tags"], found["title"]) == (document["date"], document["tags"], "The owl")


async def test_tags_that_a_new_version_no_longer_asks_for_go_and_others_stay(api, path):
    await sent(api, path, "---\ntags: [old, both]\n---\nOne.\n", tags=["given"])
    document = await sent(api, path, "---\ntags: [both, new]\n---\nTwo.\n")
    assert document["tags"] == ["both", "given", "new"]
    assert (await sent(api, path, "Three, with nothing said.\n"))["tags"] == ["given"]


async def test_a_job_tells_the_hash_of_what_was_sent(api, path):
    job = await finished(api, await api.add_file("a.txt", io.BytesIO(b"Some words."), source_path=path))
    assert job["content_hash"] == sha256(b"Some words.").hexdigest()
    document = await api.document(job["document_id"])
    assert document["content_hash"] == job["content_hash"]
    note = await finished(api, await api.add_note(text=path))
    assert note["content_hash"] == sha256(path.encode()).hexdigest()


async def test_a_job_that_did_not_fail_or_whose_content_is_gone_cannot_be_tried_again(api):
    done = await api.add_note(text=uuid4().hex)
    await finished(api, done)
    unreadable = await api.add_file("x.bin", io.BytesIO(bytes(range(256)) * 9))
    await finished(api, unreadable)
    with pytest.raises(NotRetryable, match="is done"):
        await api.retry_job(done["job_id"])
    with pytest.raises(NotRetryable, match="send it again"):
        await api.retry_job(unreadable["job_id"])
    with pytest.raises(NotFound):
        await api.retry_job(10**9)


async def test_a_tag_that_someone_gave_stays_when_a_later_file_no_longer_names_it(api, path):
    await sent(api, path, "One.\n", tags=["given"])
    await sent(api, path, "---\ntags: [given]\n---\nTwo.\n")
    assert (await sent(api, path, "Three.\n"))["tags"] == ["given"]


@pytest.mark.parametrize("date", ["20240305", "2024-3-5", "2024/03/05"])
async def test_a_document_is_found_by_its_day_however_that_is_written(api, path, date):
    document = await sent(api, path, f"---\ndate: {date}\n---\nLow tide.\n")
    for bounds, found in (
        ({"after": "2024-03-05T00:00:00Z", "before": "2024-03-06T00:00:00Z"}, [document["id"]]),
        ({"after": "2024-03-06T00:00:00Z"}, []),
        ({"before": "2024-03-05T00:00:00Z"}, []),
    ):
        listed = await api.documents(source_path=path, **bounds)
        assert [each["id"] for each in listed["documents"]] == found
