"""Slow clients, what is no HTTP, and the end."""

import http.client
import json
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from elmokit.embed.embedder import Embedder
from elmokit.web import server as server_module

from ...builders.embedding_models import toy_model
from ...builders.live_server import HeldBack, connect, post_head, served, until


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model())


@pytest.fixture(scope="module")
def server(embedder):
    with served(embedder) as server:
        yield server


def read_to_the_end(client):
    with suppress(ConnectionResetError):
        while client.recv(65536):
            pass


def is_left(server):
    return not server.server.server_state.connections


def test_a_client_that_leaves_after_a_long_body_is_noticed(embedder):
    with served(embedder, max_words=50_000, batch_tokens=64) as server:
        held = HeldBack.before(server)
        body = json.dumps({"inputs": ["by the bank " * 5000, "a"]}).encode()
        with connect(server) as client:
            client.sendall(post_head("/embed", len(body)) + body[:1000])
            client.sendall(body[1000:])
            until(lambda: held.sizes)
        until(lambda: is_left(server))
        held.go.set()


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


def test_a_stop_answers_what_was_accepted(embedder):
    def accepts(server):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", server.port)) == 0

    with served(embedder) as server, ThreadPoolExecutor(8) as pool:
        held = HeldBack.before(server)
        asked = [pool.submit(server.post, "/embed", {"inputs": "I sat"}) for _ in range(6)]
        until(lambda: held.sizes and held.sizes[0] + server.service.batcher.queue_size == 6)
        server.server.handle_exit(15, None)
        until(lambda: not accepts(server))
        held.go.set()
        assert [request.result()[0] for request in asked] == [200] * 6


def test_more_connections_than_allowed_are_refused(embedder, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 2)
    with served(embedder) as server, connect(server) as first:
        until(lambda: len(server.server.server_state.connections) == 1)
        status, headers, _ = server.ask("GET", "/health")
        assert (status, headers["Connection"]) == (503, "close")
        first.close()
        until(lambda: is_left(server))
        assert server.ask("GET", "/health")[0] == 200
