import http.client
import json
import socket
import struct
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.web.page import catalog
from elmokit.web.page.catalog import page_files
from elmokit.web.page.made_files import STATIC
from elmokit.web.page.server import MAX_BODY_BYTES, MAX_CONNECTIONS

from ....builders.live_page import served_page
from ....builders.live_server import until
from ....builders.training_models import random_sentences, toy_model

WORDS = next(sentence for sentence in random_sentences(20) if len(sentence) > 3)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model = toy_model()
    model.save(folder / "toy")
    model.encoder().save(folder / "bare")
    text = folder / "corpus.txt"
    text.write_text("\n".join(map(" ".join, random_sentences(20))) + "\n", encoding="utf-8")
    with served_page([folder / "toy", folder / "bare"], corpus=[text]) as server:
        yield server


@pytest.fixture
def ask(server):
    def ask(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    return ask


@pytest.fixture
def call(ask):
    def call(method, **given):
        answer, content = ask(
            "POST", f"/api/{method}", json.dumps(given), Content_Type="application/json"
        )
        found = content
        if answer.getheader("Content-Type") == "application/json":
            found = json.loads(content)
        return answer.status, found

    return call


def test_files_have_their_types_and_a_strict_policy(ask):
    for path, kind in (
        ("/compute/client.js", "text/javascript"),
        ("/explorer.json", "application/json"),
        ("/tokenizer-rules.json", "application/json"),
        ("/models/toy/model.safetensors", "application/octet-stream"),
        ("/models/toy/warm.safetensors", "application/octet-stream"),
        ("/models/toy/vocab.txt", "text/plain"),
    ):
        answer, content = ask("GET", path)
        assert (answer.status, len(content) > 0) == (200, True)
        assert answer.getheader("Content-Type").startswith(kind)
        assert "default-src 'none'" in answer.getheader("Content-Security-Policy")
        assert answer.getheader("Cache-Control") == "no-store"
    answer, content = ask("HEAD", "/explorer.json")
    assert (answer.status, content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "//etc/passwd", "/models/toy/x",
     "/compute", "/a%00b", "/models/toy/../../../calls.py"],
)  # fmt: skip
def test_nothing_else_is_sent(ask, path):
    answer, _ = ask("GET", path)
    assert answer.status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_other_sites_are_refused(ask, server, headers):
    given = {k: v.format(port=server.port) for k, v in headers.items()}
    answer, _ = ask("GET", "/explorer.json", **given)
    assert answer.status == 403
    answer, _ = ask("POST", "/api/open", "{}", Content_Type="application/json", **given)
    assert answer.status == 403


def test_a_port_that_is_forwarded_under_another_number_is_told(ask, server):
    answer, body = ask("GET", "/", Host="localhost:1")
    assert answer.status == 403
    assert f"forward the same, {server.port}" in json.loads(body)["error"]["message"]


def test_a_link_of_another_site_opens_the_page_and_nothing_else(ask):
    click = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    for path, target, status in (
        ("/", "document", 200), ("/index.html", "document", 200), ("/", "iframe", 403),
        ("/explorer.json", "document", 403), ("/app/main.js", "document", 403),
    ):  # fmt: skip
        answer, _ = ask("GET", path, Sec_Fetch_Dest=target, **click)
        assert answer.status == status, (path, target)


def test_own_pages_are_not(ask, server):
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{server.port}"
        answer, _ = ask("GET", "/explorer.json", Host=host, Origin=f"http://{host}")
        assert answer.status == 200


def test_calls_answer_as_the_library(call, server):
    model = server.calls._models["toy"]
    status, rows = call("surprisal", model="toy", words=WORDS, top=2)
    expected = list(elmokit.surprisal(model, [WORDS], top=2, precision="fp32"))
    assert status == 200
    assert [row["forward"] for row in rows] == pytest.approx([row.forward for row in expected])
    status, found = call("trace", model="toy", words=WORDS, index=1, weights=None, gamma=1)
    traced = elmokit.trace(model, WORDS, word=1)
    np.testing.assert_allclose(found["mixture"], traced.mixture, atol=1e-5)
    assert np.shape(found["norms"]) == (len(traced.layers), 2)
    status, found = call("tokenize", model="toy", text=" ".join(WORDS))
    assert [token["text"] for token in found["sentences"][0]] == WORDS
    status, found = call("predict_word", model="toy", words=WORDS, index=0, insert=True, top=3)
    assert len(found["both"]["top"]) == 3
    status, content = call("layers", model="toy", words=WORDS)
    length = int.from_bytes(content[:4], "little")
    shape = json.loads(content[4 : 4 + length])["shape"]
    numbers = np.frombuffer(content[4 + -(-length // 4) * 4 :], "<f4").reshape(shape)
    (layers,) = elmokit.Embedder(model).embed([WORDS])
    np.testing.assert_allclose(numbers, layers, atol=1e-5)


def test_an_error_of_a_call_has_a_code_and_is_none_of_the_page(call):
    status, answer = call("open", model="none")
    assert (status, answer["error"]["code"]) == (200, "unknown-model")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content_Type": "text/plain"}, 400),
        ({"Content_Length": str(MAX_BODY_BYTES + 1)}, 413),
        ({"Content_Length": "1" * 5000}, 413),
        ({"Content_Length": "-1"}, 413),
    ],
)
def test_bodies_are_json_and_bounded(ask, headers, status):
    answer, content = ask("POST", "/api/open", "", **{"Content_Type": "application/json"} | headers)
    assert (answer.status, answer.getheader("Connection")) == (status, "close")
    assert set(json.loads(content)["error"]) == {"code", "message"}


def test_a_bug_is_logged_and_is_no_fault_of_the_reader(ask, call, server, monkeypatch, caplog):
    def broken(*given):
        raise ValueError("broken")

    monkeypatch.setitem(server.calls._methods, "open", broken)
    status, answer = call("open", model="toy")
    assert (status, answer["error"]) == (500, {"code": "bug", "message": "ValueError: broken"})
    monkeypatch.setitem(server.files, "models/toy/warm.safetensors", broken)
    answer, content = ask("GET", "/models/toy/warm.safetensors")
    assert (answer.status, json.loads(content)["error"]["code"]) == (500, "bug")
    assert caplog.text.count("a request failed") == 2


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /" + "a" * 5000 + " HTTP/1.1", 404),
        ("GET http://[ HTTP/1.1", 404),
        ("GET /" + "a" * 70_000 + " HTTP/1.1", 414),
        ("GET / HTTP/1.1\r\nX: " + "a" * 70_000, 431),
        ("PUT / HTTP/1.1", 501),
        ("GET / HTTP/9.9", 505),
        ("a client's own words", 400),
        ("nonsense", 400),
    ],
    ids=range(8),
)
def test_odd_requests_are_refused_in_json(server, line, status, capfd):
    address = ("127.0.0.1", server.port)
    with (
        socket.create_connection(address, timeout=20) as client,
        http.client.HTTPResponse(client) as answer,
    ):
        host = f"Host: 127.0.0.1:{server.port}"
        client.sendall(f"{line}\r\n{host}\r\nConnection: close\r\n\r\n".encode())
        answer.begin()
        content = json.load(answer)
    assert (answer.status, set(content["error"])) == (status, {"code", "message"})
    assert len(content["error"]["message"]) < 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"POST /api/open HTTP/1.1\r\nHost: a\r\n"])
def test_a_connection_that_breaks_off_ends_without_a_word(server, ask, sent, caplog, capfd):
    until(lambda: server._places._value == MAX_CONNECTIONS)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        until(lambda: server._places._value < MAX_CONNECTIONS)
    until(lambda: server._places._value == MAX_CONNECTIONS)
    assert ask("GET", "/explorer.json")[0].status == 200
    assert capfd.readouterr().err + caplog.text == ""


def test_a_connection_that_says_nothing_is_closed_without_a_word(
    server, monkeypatch, caplog, capfd
):
    caplog.set_level("DEBUG")
    monkeypatch.setattr(server.RequestHandlerClass, "timeout", 0.1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as spare:
        assert spare.recv(100) == b""
    assert "Traceback" not in capfd.readouterr().err + caplog.text


def test_more_connections_than_allowed_are_closed_and_places_become_free(server, ask):
    open_now = [
        socket.create_connection(("127.0.0.1", server.port), timeout=20)
        for _ in range(MAX_CONNECTIONS + 40)
    ]
    before = threading.active_count()
    assert open_now[-1].recv(100) == b""
    assert before <= MAX_CONNECTIONS + 20
    for connection in open_now:
        connection.close()
    for _ in range(100):
        try:
            assert ask("GET", "/explorer.json")[0].status == 200
        except ConnectionError:  # the threads have not noticed yet
            time.sleep(0.05)
            continue
        return
    pytest.fail("the places of closed connections are not free")


def test_a_reader_with_a_slow_line_gets_the_whole_file(server, monkeypatch):
    monkeypatch.setattr(server.RequestHandlerClass, "timeout", 0.5)
    monkeypatch.setitem(server.files, "big.bin", lambda: bytes(16_000_000))
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    with closing(client):
        client.request("GET", "/big.bin")
        answer, num_bytes = client.getresponse(), 0
        while piece := answer.read(1_000_000):
            num_bytes += len(piece)
            time.sleep(0.1)
    assert num_bytes == 16_000_000


def test_a_package_of_links_serves_its_files(tmp_path, monkeypatch):
    """As some package managers install: each file is a link."""
    for path in filter(Path.is_file, STATIC.rglob("*")):
        (tmp_path / path.relative_to(STATIC)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(STATIC)).symlink_to(path)
    expected = page_files({}, [])
    monkeypatch.setattr(catalog, "STATIC", tmp_path)
    files = page_files({}, [])
    assert files.keys() == expected.keys()
    assert files["app/main.js"]() == (STATIC / "app/main.js").read_bytes()


def test_an_answer_does_not_wait_for_acknowledgments(server, monkeypatch):
    accepted = []

    def finish_request(request, client_address):
        accepted.append(request)
        answer(request, client_address)

    answer = server.finish_request
    monkeypatch.setattr(server, "finish_request", finish_request)
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as client:
        client.request("GET", "/explorer.json")
        client.getresponse().read()
        (connection,) = accepted
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
