import json
import socket

import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.web import startup
from elmokit.web.api import gate
from elmokit.web.api.settings import ServerSettings

from ....builders import live_server
from ....builders.embedding_models import toy_model
from ....builders.live_server import connect, post_head, served, until

KEY = "Bearer s3cret"


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model())


@pytest.fixture(scope="module")
def server(embedder):
    with served(embedder, allowed_hosts=["models.example", "box:9000"]) as server:
        yield server


@pytest.fixture(scope="module")
def locked(embedder):
    with served(embedder, api_key="s3cret") as server:
        yield server


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout_seconds": 0.0}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds"),
        ({"api_key": ""}, "not empty"),
        ({"api_key": "a b"}, "spaces"),
        ({"api_key": "열쇠"}, "ASCII"),
        ({"api_key": "a\n"}, "printable"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        ServerSettings(name="m", **options)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200), ("localhost", 200), ("models.example", 200),
        ("MODELS.example:123", 200), ("box:9000", 200), ("box:9001", 403), ("evil.example", 403),
        ("10.1.2.3", 403), ("", 403), ("[", 403), ("a:b:c", 403),
    ],
)  # fmt: skip
def test_only_own_names_are_answered(server, host, status):
    found, _, answer = server.ask("GET", "/info", headers={"Host": host})
    assert found == status
    if status == 403:
        assert repr(host) in answer["error"]
        assert "--allow-host" in answer["error"]


def test_pages_of_others_are_refused(server):
    own = {"Host": "localhost", "Origin": "http://localhost"}
    assert server.ask("GET", "/info", headers=own)[0] == 200
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        status, answer = server.post("/embed", {"inputs": "a"}, Host="localhost", Origin=origin)
        assert (status, repr(origin) in answer["error"]) == (403, True)


def test_a_key_is_asked_of_everyone_but_for_health(locked):
    for given in ({}, {"Authorization": "Bearer s3creT"}, {"Authorization": "s3cret"},
                  {"Authorization": "Bearer s3cret\xe9"}):  # fmt: skip
        status, headers, _ = locked.ask("GET", "/info", headers=given)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        status, answer = locked.post("/v1/embeddings", {"input": "a", "model": "toy"}, **given)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        assert locked.post("/health", {}, **given)[0] == 401
    for given in ({}, {"Host": "any"}):
        for key in (KEY, KEY.replace("Bearer", "bearer")):
            headers = given | {"Authorization": key}
            assert locked.ask("GET", "/info", headers=headers)[0] == 200
        assert locked.ask("GET", "/health", headers=given)[0] == 200


def test_the_content_type_must_be_json(server):
    for kind in ("application/x-www-form-urlencoded", "text/plain", ""):
        status, answer = server.post("/embed", {"inputs": "a"}, Content_Type=kind)
        assert (status, "application/json" in answer["error"]) == (415, True)
    kind = "Application/JSON; charset=utf-8"
    assert server.post("/embed", {"inputs": "a"}, Content_Type=kind)[0] == 200


class TestPlaces:
    """With one place, of which a request has it from its headers to the end of its answer."""

    @pytest.fixture
    def server(self, embedder, monkeypatch):
        def listen(host, port):
            listener = startup.listen(host, port)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            return listener

        monkeypatch.setattr(live_server, "listen", listen)
        with served(embedder, max_requests=1) as server:
            yield server

    def test_a_request_has_it_before_its_body_arrives(self, server):
        body = b'{"inputs": "a"}'
        with connect(server) as client:
            client.sendall(post_head("/embed", len(body)) + body[:5])
            until(lambda: is_full(server))
            client.sendall(body[5:])
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        until(lambda: not is_full(server))

    @pytest.mark.parametrize("path", ["/embed_all", "/tokenize"])  # in pieces, and at once
    def test_a_request_has_it_until_its_answer_is_read(self, server, path):
        body = json.dumps({"inputs": ["a " * 1000] * 10}).encode()
        with connect(server, receives=4096) as client:
            client.sendall(post_head(path, len(body)) + body)
            assert client.recv(12) == b"HTTP/1.1 200"
            assert is_full(server)
            assert server.ask("GET", "/health")[0] == 200
            client.settimeout(0.2)
            until(lambda: read_all(client) and not is_full(server))

    def test_a_client_that_leaves_gives_it_back(self, server):
        with connect(server) as client:
            client.sendall(post_head("/embed", 50))
            until(lambda: is_full(server))
        until(lambda: not is_full(server))


def read_all(client):
    """Read what comes; return whether nothing more did for a while."""
    try:
        while client.recv(1 << 20):
            pass
    except TimeoutError:
        return True


def is_full(server):
    status, answer = server.post("/embed", {"inputs": "a"})
    assert status in (200, 429), answer
    return status == 429


PIECE = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ("Transfer-Encoding: chunked", 5 * PIECE + b"0\r\n\r\n", 413),
        ("Expect: 100-continue\r\nContent-Length: 50000000", b"", 413),  # it is not sent at all
        ("Content-Length: 50", b'{"inputs": ', 408),
    ],
)
def test_a_body_that_is_too_large_or_does_not_come(server, monkeypatch, headers, body, status):
    monkeypatch.setattr(gate, "BODY_SECONDS", 1.0)
    head = f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}"
    with connect(server) as client:
        client.sendall(f"{head}\r\n\r\n".encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer and (piece := client.recv(65536)):
            answer += piece
    assert answer.startswith(f"HTTP/1.1 {status}".encode())
    assert b"connection: close" in answer.lower()
