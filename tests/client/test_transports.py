"""The ways to the engine: over the network, within the process, and the standard library's."""

from __future__ import annotations

import asyncio
import inspect
import io
import shutil
import socket
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from kb.api import errors
from kb.api.errors import BY_CODE, EngineSlow, EngineUnreachable, KbError, NoEngine
from kb.asgi.error_replies import on_kb_error
from kb.client.asgi import ASGITransport
from kb.client.client import EngineClient
from kb.client.http import MAX_CONNECTIONS, HTTPTransport
from kb.client.stdlib import StdlibTransport, run
from kb.client.transport import BodyUnreadable, BrokenOff, Outgoing
from kb_cli.sync.upload import ProgressFile
from tests.support.eventually import eventually_async
from tests.support.scripted_server import listening

GET = Outgoing("GET", "/x?a=b", {"X-Word": "heron"})
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
MANY = bytes(range(256)) * 40_000


@asynccontextmanager
async def serving(*turns, **options):
    """A server; each connection that it takes is the next turn's, the last one's for ever. Answers its URL."""
    left = list(turns)

    async def serve(reader, writer):
        await (left.pop(0) if len(left) > 1 else left[0])(reader, writer)

    async with listening(serve, **options) as url:
        yield url


def saying(*parts):
    """Answers each request with these parts, and goes on."""

    async def turn(reader, writer):
        while await reader.readuntil(b"\r\n\r\n"):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01)

    return turn


def once(*parts):
    """Answers one request with these parts, and ends the connection."""

    async def turn(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)

    return turn


def until_closed(turn, closed):
    """Does so, and waits until the other side closes the connection."""

    async def waiting(reader, writer):
        await turn(reader, writer)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        closed.set()

    return waiting


async def at_rest(count):
    """The count, when it stops growing."""
    counts = [None]

    def last_two():
        counts.append(count())
        return counts[-2:]

    await eventually_async("it grows no more", last_two, lambda two: two[0] == two[1])
    return counts[-1]


@asynccontextmanager
async def asking(url):
    transport = HTTPTransport(url)
    try:
        yield lambda request=GET, seconds=5.0: transport.ask(request, seconds)
    finally:
        await transport.close()


@pytest.mark.parametrize(
    "parts",
    [
        (OK,),
        tuple(OK[at : at + 1] for at in range(len(OK))),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n", b"1\r\nk\r\n0\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", OK),
    ],
)
async def test_an_answer_is_the_same_however_it_comes(parts):
    async with serving(saying(*parts)) as url, asking(url) as ask:
        for _ in range(2):
            answer = await ask()
            assert (answer.status, answer.content) == (200, b"ok")
            assert "link" not in answer.headers


async def test_an_answer_may_end_with_its_connection():
    async with serving(once(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>")) as url, asking(url) as ask:
        answer = await ask()
        assert (answer.status, answer.content) == (502, b"<html>")
        assert (await ask()).status == 502


@pytest.mark.parametrize("end", range(1, len(OK)))
async def test_a_connection_may_break_anywhere_in_an_answer(end):
    async with serving(once(OK[:end])) as url, asking(url) as ask:
        with pytest.raises(BrokenOff):
            await ask()


@pytest.mark.parametrize("said", [b"220 mail.example ESMTP\r\n", b"\x16\x03\x01\x02", b"HTTP/1.1 abc\r\n\r\n"])
async def test_what_is_no_http_is_said_to_be_none(said):
    async with serving(once(said)) as url, asking(url) as ask:
        with pytest.raises(BrokenOff, match="not HTTP"):
            await ask()


@pytest.mark.rare
async def test_a_server_that_says_nothing_is_given_up_and_one_that_goes_on_is_not():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 150\r\n\r\n"
    async with serving(saying()) as url, asking(url) as ask:
        with pytest.raises(TimeoutError):
            await ask(seconds=0.1)
    async with serving(saying(head, *[b"x"] * 150)) as url, asking(url) as ask:
        assert len((await ask(seconds=1)).content) == 150  # each byte takes a hundredth


async def test_a_connection_is_kept_until_its_server_ends_it():
    connections, closed = [], asyncio.Event()

    async def end(reader, writer):
        await once(OK)(reader, writer)
        writer.write_eof()

    def counted(turn):
        async def counting(reader, writer):
            connections.append(writer)
            await turn(reader, writer)

        return counting

    async with serving(counted(until_closed(end, closed)), counted(saying(OK))) as url, asking(url) as ask:
        await ask()
        await eventually_async("the connection is given up", closed.is_set)
        for _ in range(5):
            await ask()
    assert len(connections) == 2


async def test_what_comes_unasked_ends_the_connection_and_is_no_answer():
    unasked = b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"
    answered, closed = asyncio.Event(), asyncio.Event()

    async def say_more(reader, writer):
        await once(OK)(reader, writer)
        await answered.wait()
        writer.write(unasked)

    async with serving(until_closed(say_more, closed), saying(OK + unasked)) as url, asking(url) as ask:
        assert (await ask()).status == 200
        answered.set()
        await eventually_async("the connection is given up", closed.is_set)
        for _ in range(2):
            assert (await ask()).status == 200


@pytest.mark.parametrize(
    "more", [OK, OK[:-1], b"\xff garbage"], ids=["a whole answer", "a part of one", "what is no HTTP"]
)
async def test_a_connection_is_given_up_when_more_comes_with_an_answer(more):
    closed = asyncio.Event()

    async def say_more(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + more)

    async with serving(until_closed(say_more, closed), saying(OK)) as url, asking(url) as ask:
        assert (await ask()).status == 200
        await eventually_async("the connection is given up", closed.is_set)
        assert (await ask()).status == 200


@pytest.mark.parametrize("length", [-1, 1], ids=["less", "more"])
async def test_a_body_of_another_length_than_announced_is_an_error_that_names_it_at_once(length):
    body, closed = b"x" * 1000, asyncio.Event()

    async def take(reader, writer):
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")

    async with serving(until_closed(take, closed), saying(OK)) as url, asking(url) as ask:
        with pytest.raises(BodyUnreadable, match="changed its length"):
            await ask(Outgoing("POST", "/x", {"content-length": str(1000 - length)}, [body]), seconds=100.0)
        assert (await ask()).status == 200


async def test_a_body_that_cannot_be_read_is_an_error_of_its_own():
    def body():
        yield b"x"
        raise OSError(5, "Input/output error")

    async with serving(until_closed(saying(), asyncio.Event()), saying(OK)) as url, asking(url) as ask:
        with pytest.raises(BodyUnreadable, match="Input/output error"):
            await ask(Outgoing("POST", "/x", {"content-length": "9"}, body()))


@pytest.mark.parametrize("server_goes_on", [False, True])
async def test_an_answer_that_comes_before_all_is_sent_is_heard(server_goes_on):
    refused, closed = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", asyncio.Event()

    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refused)
        await writer.drain()
        await at_rest(lambda: len(sent))
        if server_goes_on:  # without reading, and without closing
            await closed.wait()

    sent = []

    def body():
        for _ in range(10_000):
            sent.append(1)
            yield b"x" * 65_536

    headers = {"content-length": str(65_536 * 10_000)}
    async with serving(refuse, saying(OK)) as url, asking(url) as ask:
        answer = await ask(Outgoing("POST", "/x", headers, body()), seconds=100.0)
        closed.set()
        assert (answer.status, answer.content) == (413, b"no")
        assert len(sent) < 10_000
        assert (await ask()).status == 200


@pytest.mark.parametrize("headers", [{"content-length": str(len(MANY))}, {"transfer-encoding": "chunked"}])
async def test_a_large_body_arrives_whole(headers):
    arrived = io.BytesIO()

    async def take(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        if "content-length" in headers:
            arrived.write(await reader.readexactly(len(MANY)))
        else:
            while length := int(await reader.readline(), 16):
                arrived.write(await reader.readexactly(length))
                await reader.readexactly(2)
        writer.write(OK)

    body = [MANY[at : at + 65_536] for at in range(0, len(MANY), 65_536)]
    async with serving(take) as url, asking(url) as ask:
        assert (await ask(Outgoing("POST", "/x", headers, body))).status == 200
    assert arrived.getvalue() == MANY


async def test_a_body_is_read_no_faster_than_it_is_taken():
    parts, read, read_before_taken = 2_000, 0, None

    def body():
        nonlocal read
        for _ in range(parts):
            read += 1
            yield bytes(65_536)

    async def take(reader, writer):
        nonlocal read_before_taken
        await reader.readuntil(b"\r\n\r\n")
        read_before_taken = await at_rest(lambda: read)
        for _ in range(parts):
            await reader.readexactly(65_536)
        writer.write(OK)

    async with serving(take) as url, asking(url) as ask:
        request = Outgoing("POST", "/x", {"content-length": str(parts * 65_536)}, body())
        assert (await ask(request)).status == 200
    assert read_before_taken < parts / 4
    assert read == parts


async def test_no_more_is_sent_over_a_connection_that_ended_while_the_event_loop_was_held_up(caplog):
    def serve_one():
        connection, _ = server.accept()
        connection.recv(65_536)
        connection.sendall(OK)
        connection.close()

    parts = iter([b"part"] * 1_000)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve_one)
        async with asking(f"http://127.0.0.1:{server.getsockname()[1]}") as ask:
            assert (await ask()).status == 200
            served.result()
            with pytest.raises(BrokenOff):
                await ask(Outgoing("POST", "/x", {"content-length": "4000"}, parts))
    assert len(list(parts)) > 990
    assert not caplog.records


async def test_who_gives_up_takes_the_connection_along():
    asked, closed = asyncio.Event(), asyncio.Event()

    async def be_asked(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        asked.set()

    async with serving(until_closed(be_asked, closed)) as url, asking(url) as ask:
        call = asyncio.create_task(ask())
        await eventually_async("the server is asked", asked.is_set)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await eventually_async("the connection is closed", closed.is_set)


async def test_there_are_only_so_many_connections_at_once():
    now, most = 0, 0

    async def count(reader, writer):
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await saying(OK)(reader, writer)

    async with serving(count) as url, asking(url) as ask:
        answers = await asyncio.gather(*(ask(seconds=60) for _ in range(MAX_CONNECTIONS * 2)))
    assert len(answers) == MAX_CONNECTIONS * 2
    assert most == MAX_CONNECTIONS


@pytest.mark.rare
async def test_the_wait_for_a_connection_is_no_longer_than_that_for_an_answer():
    taken = 0

    async def take(reader, writer):
        nonlocal taken
        taken += 1
        await saying()(reader, writer)

    async with serving(take) as url, asking(url) as ask:
        waiting = [asyncio.create_task(ask(seconds=60)) for _ in range(MAX_CONNECTIONS)]
        await eventually_async("every connection is taken", lambda: taken == MAX_CONNECTIONS)
        [ended], _ = await asyncio.wait([asyncio.create_task(ask(seconds=0.1))], timeout=20)
        assert isinstance(ended.exception(), TimeoutError)
        for call in waiting:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.rare
async def test_who_gave_up_waiting_for_a_connection_leaves_room_for_others():
    silent = [saying()] * MAX_CONNECTIONS
    async with serving(*silent, saying(OK)) as url, asking(url) as ask:
        calls = [ask(seconds=2) for _ in range(MAX_CONNECTIONS)]
        waiting = [ask(seconds=0.1) for _ in range(5)]
        ended = await asyncio.gather(*calls, *waiting, return_exceptions=True)
        assert {type(each) for each in ended} == {TimeoutError}
        answers = await asyncio.gather(*(ask() for _ in range(MAX_CONNECTIONS + 5)))
        assert {each.status for each in answers} == {200}


async def done(way, work):
    """What a way to the engine answers; one that never waits for others gets a thread, since the server is in ours."""
    return await asyncio.to_thread(run, work) if way is StdlibTransport else await work


@pytest.mark.parametrize("way", [HTTPTransport, StdlibTransport])
async def test_a_path_in_the_url_goes_before_every_target_and_the_name_is_sent(way):
    heads = []

    async def listen(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(OK)

    async with serving(listen) as url:
        transport = way(f"{url}/kb")
        assert (await done(way, transport.ask(GET, 5))).content == b"ok"
        await transport.close()
    assert heads[0].startswith("GET /kb/x?a=b HTTP/1.1\r\n")
    assert f"host: {url.removeprefix('http://')}\r\n" in heads[0].lower()
    assert "X-Word: heron\r\n" in heads[0]


@pytest.mark.parametrize("way", [HTTPTransport, StdlibTransport])
async def test_trouble_is_told_apart_by_both_ways_over_the_network(way):
    async with serving(once(OK[:-1])) as broken, EngineClient(broken, transport=way(broken)) as api:
        with pytest.raises(EngineUnreachable, match="the connection broke"):
            await done(way, api.status())
    async with serving(once(OK)) as nowhere:
        pass
    async with EngineClient(nowhere, transport=way(nowhere)) as api:
        with pytest.raises(EngineUnreachable, match=r"unreachable \(Connection refused\)"):
            await done(way, api.status())
    nobody = "http://kb.invalid:80"
    async with EngineClient(nobody, transport=way(nobody)) as api:
        with pytest.raises(EngineUnreachable, match=r"unreachable \((Name or service not known|Temporary failure)"):
            await done(way, api.status())


@pytest.fixture
def certificate(tmp_path):
    """A certificate for localhost that nobody has signed, and its key."""
    paths = tmp_path / "certificate.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-out",
        paths[0],
        "-keyout",
        paths[1],
        *names,
    ]
    if shutil.which("openssl") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no openssl makes certificates here")
    return paths


async def test_tls_is_spoken_with_those_whose_certificate_is_trusted(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    said = b"HTTP/1.1 200 OK\r\nKb-Version: 3.0.0\r\nContent-Length: 2\r\n\r\n{}"
    async with serving(saying(said), ssl=context) as url:
        url = url.replace("http://127.0.0.1", "https://localhost")
        async with EngineClient(url) as api:
            with pytest.raises(EngineUnreachable, match="certificate verify failed"):
                await api.status()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        async with EngineClient(url) as api:
            assert await api.status() == {}


@pytest.mark.parametrize("way", [HTTPTransport, StdlibTransport])
@pytest.mark.parametrize(
    ("location", "elsewhere"),
    [
        ("https://kb.home/api/v1/status", "https://kb.home"),
        ("https://kb.home/behind/api/v1/status?x=1", "https://kb.home/behind"),
        ("https://login.home/?next=/api/v1/documents%3Fsource_path=secret", "https://login.home/"),
    ],
)
async def test_who_sends_clients_elsewhere_is_named_with_where(way, location, elsewhere):
    said = f"HTTP/1.1 308 Permanent Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    async with serving(saying(said.encode())) as url, EngineClient(url, transport=way(url)) as api:
        with pytest.raises(NoEngine) as refused:
            await done(way, api.status())
    assert str(refused.value).startswith(f"The server at {url} redirects to {elsewhere}.")
    assert "KB_ENGINE_URL" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("way", [HTTPTransport, StdlibTransport])
@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("413 Request Entity Too Large", "Raise its limit, client_max_body_size in nginx."),
        ("502 Bad Gateway", "Check whether the engine is running."),
        ("403 Forbidden", "answered 403 Forbidden."),
    ],
)
async def test_what_a_proxy_refuses_is_not_said_to_come_from_the_engine(way, status, says):
    said = f"HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\n<html>"
    async with serving(saying(said.encode())) as url, EngineClient(url, transport=way(url)) as api:
        with pytest.raises(KbError) as refused:
            await done(way, api.status())
    assert str(refused.value).startswith("A server in front of the engine, such as a proxy, answered")
    assert str(refused.value).endswith(says)


async def test_a_slow_server_is_said_to_be_slow():
    async with serving(saying()) as url, EngineClient(url, timeout=0.1) as api:
        with pytest.raises(EngineSlow):
            await api.status()


@pytest.mark.parametrize("from_disk", [False, True])
async def test_a_file_is_sent_whole_again_when_the_connection_broke(from_disk, tmp_path):
    bodies, advances = [], []
    (tmp_path / "a.bin").write_bytes(MANY[:300_000])
    content = ProgressFile(str(tmp_path / "a.bin"), advances.append) if from_disk else io.BytesIO(MANY[:300_000])

    async def take(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].split("\r\n")[0])
        bodies.append(await reader.readexactly(length))
        if len(bodies) > 1:
            writer.write(b"HTTP/1.1 200 OK\r\nKb-Version: 3.0.0\r\nContent-Length: 2\r\n\r\n{}")

    async with serving(take) as url, EngineClient(url) as api:
        await api.add_file("a.bin", content, tags=["x", "y"])
    content.close()
    assert len(bodies) == 2
    assert not from_disk or sum(advances) == 300_000
    for body in bodies:
        assert MANY[:300_000] in body
        assert body.count(b'name="tags"') == 2


async def app(scope, receive, send):
    """Echoes the request, or stops in the middle if the path asks for it."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    if scope["path"] == "/nothing":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-word", b"heron")]})
    if scope["path"] == "/head":
        return
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if scope["path"] != "/half":
        await send({"type": "http.response.body", "body": scope["query_string"]})


async def test_an_app_in_the_process_gets_what_a_server_would_hand_it():
    answer = await ASGITransport(app).ask(Outgoing("POST", "/x?a=%20", {}, (b"one ", b"two ")), 1)
    assert (answer.status, answer.headers, answer.content) == (200, {"x-word": "heron"}, b"one two a=%20")


@pytest.mark.parametrize("path", ["/nothing", "/head", "/half"])
async def test_an_app_in_the_process_that_stops_in_the_middle_gave_no_answer(path):
    with pytest.raises(BrokenOff):
        await ASGITransport(app).ask(Outgoing("GET", path, {}), 1)


async def test_what_cannot_be_text_is_refused_before_it_is_sent():
    async with serving(saying(OK)) as url, EngineClient(url) as api:
        with pytest.raises(UnicodeEncodeError):
            await api.search(query="caf\udce9")
        with pytest.raises(KbError, match="not a kb engine"):
            await api.search(query="café")


KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, KbError)]
SENT = [kind for kind in KINDS if "code" in vars(kind)]


@pytest.mark.parametrize("kind", SENT)
async def test_an_error_with_a_code_of_its_own_comes_over_the_client_as_it_was_raised(kind):
    async def fail(_):
        raise kind("why", extra={"more": [1]})

    app = Starlette(routes=[Route("/{path:path}", fail)], exception_handlers={KbError: on_kb_error})
    async with EngineClient("http://engine", transport=ASGITransport(app)) as api:
        with pytest.raises(KbError) as raised:
            await api.maintenance()
    assert type(raised.value) is kind
    assert (raised.value.status, raised.value.detail, raised.value.extra) == (kind.status, "why", {"more": [1]})


def test_no_two_errors_have_the_same_code():
    assert len(BY_CODE) == len(SENT)
