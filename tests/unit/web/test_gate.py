"""Who may ask, how much, and how long it may take; slow clients, what is no HTTP, and the end."""

import http.client
import json
import logging
import socket

import pytest

from elmokit.embed.embedder import Embedder
from elmokit.web import server as gate
from elmokit.web import startup
from elmokit.web.server import is_own_host

from ...builders import live_server
from ...builders.embedding_models import toy_model
from ...builders.live_server import (
    connect,
    post_head,
    served,
    served_page,
    until,
)

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


@pytest.fixture(scope="module")
def page():
    with served_page([]) as page:
        yield page


@pytest.mark.parametrize(
    ("header", "host"),
    [("10.1.2.3:80", "0.0.0.0"), ("[fe80::1]:5", "::"), ("[::1]:5", "127.0.0.1")],
)
def test_numbers_are_own_where_the_server_listens_to_all(header, host):
    assert is_own_host(header, host=host)
    assert not is_own_host("evil.example", host=host)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200), ("localhost", 200), ("models.example", 200),
        ("MODELS.example:123", 200), ("box:9000", 200), ("box:9001", 403), ("evil.example", 403),
        ("10.1.2.3", 403), ("", 403), ("[", 403), ("a:b:c", 403),
    ],
)  # fmt: skip
def test_only_own_names_are_answered(server, host, status):
    answer = server.ask("GET", "/info", headers={"Host": host})
    assert answer[0] == status
    if status == 403:
        assert repr(host) in answer[2]["error"]
        assert "--allow-host" in answer[2]["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "script"},
    ],
)
@pytest.mark.parametrize("which", ["server", "page"])
def test_pages_of_other_sites_get_nothing(request, which, headers):
    asked = request.getfixturevalue(which)
    path = {"server": "/info", "page": "/explorer.json"}[which]
    foreign = {name: value.format(port=asked.port) for name, value in headers.items()}
    assert asked.ask("GET", path, headers=foreign)[0] == 403
    foreign["Content-Type"] = "application/json"
    for call in ("/embed", "/api/open"):
        assert asked.ask("POST", call, "{}", foreign)[0] == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_own_pages_and_links_of_other_sites_are_answered(page, name):
    host = f"{name}:{page.port}"
    own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert page.ask("GET", "/explorer.json", headers=own)[0] == 200
    click = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for target, status in (("document", 200), ("iframe", 403)):
        assert page.ask("GET", "/", headers={**click, "Sec-Fetch-Dest": target})[0] == status


def test_a_key_is_asked_of_everyone_but_for_health(locked):
    for wrong in ({}, {"Authorization": "Bearer s3creT"}, {"Authorization": "s3cret"},
                  {"Authorization": "Bearer s3cret\xe9"}):  # fmt: skip
        status, headers, _ = locked.ask("GET", "/info", headers=wrong)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        status, answer = locked.post("/v1/embeddings", {"input": "a", "model": "toy"}, **wrong)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        assert locked.post("/health", {}, **wrong)[0] == 401
    for host in ({}, {"Host": "any"}):
        for key in (KEY, KEY.replace("Bearer", "bearer")):
            assert locked.ask("GET", "/info", headers={**host, "Authorization": key})[0] == 200
        assert locked.ask("GET", "/health", headers=host)[0] == 200


def test_the_content_type_must_be_json(server, page):
    for kind in ("application/x-www-form-urlencoded", "text/plain", ""):
        assert server.post("/embed", {"inputs": "a"}, Content_Type=kind)[0] == 415
        assert page.post("/api/run", {}, Content_Type=kind)[0] == 415
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

    def test_a_request_has_it_until_its_answer_is_read(self, server):
        body = json.dumps({"inputs": ["a " * 1000] * 10}).encode()
        with connect(server, receives=4096) as client:
            client.sendall(post_head("/embed_all", len(body)) + body)
            assert client.recv(12) == b"HTTP/1.1 200"
            assert is_full(server)
            assert server.ask("GET", "/health")[0] == 200
            client.settimeout(0.2)
            until(lambda: read_all(client) and not is_full(server))

    @pytest.mark.parametrize("path", ["/embed", "/embed_all"])
    def test_a_client_that_does_not_read_is_cut_off(self, server, monkeypatch, path):
        monkeypatch.setattr(gate, "READ_SECONDS", 0.2)
        body = json.dumps({"inputs": ["a " * 10] * 4000}).encode()
        with connect(server, receives=4096) as client:
            client.sendall(post_head(path, len(body)) + body)
            assert client.recv(12) == b"HTTP/1.1 200"
            until(lambda: not server.server.server_state.connections)
        assert not is_full(server)

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


LONG = b"a" * 100_000


@pytest.mark.parametrize("sent", [b"secret\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + LONG])
def test_what_is_no_request_is_refused_and_not_logged(server, caplog, sent):
    with connect(server) as client, http.client.HTTPResponse(client) as answer:
        client.sendall(sent)
        answer.begin()
        assert (answer.status, answer.getheader("Connection")) == (400, "close")
    assert server.ask("GET", "/health")[0] == 200
    assert "secret" not in caplog.text
    assert {record.levelno for record in caplog.records} <= {logging.WARNING}
