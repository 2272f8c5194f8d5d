"""A server on a free port of this machine, in a thread."""

import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

from elmokit.web.api.routes import Service
from elmokit.web.server import Server
from elmokit.web.startup import ServerSettings, listen


@dataclass
class LiveServer:
    port: int
    server: Server

    def ask(self, method, path, body=None, headers=None):
        """Return status, headers and content: JSON read, other bytes as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.getheader("Content-Type") == "application/json":
            content = json.loads(content)
        return answer.status, answer.headers, content

    def post(self, path, given, **headers):
        """Post JSON, or bytes as they are; return status and answer."""
        body = given if isinstance(given, bytes) else json.dumps(given).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        status, _, content = self.ask(
            "POST", path, body, {"Content-Type": "application/json"} | named
        )
        return status, content

    def metric(self, name):
        """Return the value of a line of /metrics."""
        _, _, text = self.ask("GET", "/metrics")
        values = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
        return float(values.get(name, 0))


@dataclass
class LiveService(LiveServer):
    service: Service


@contextmanager
def served(embedder, *, vocab=None, runs=None, **options):
    """Serve a model as `toy`; afterwards the server ends by itself."""
    settings = ServerSettings(**{"name": "toy", **options})
    service = Service(embedder, settings, vocab=vocab, runs=runs)
    server = Server(service.router(), settings, host="127.0.0.1", on_error=service.count_error)
    with running(server) as port:
        yield LiveService(port, server, service)


@contextmanager
def running(server):
    """Run a server on a free port."""
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def connect(server, *, receives=None):
    """Return a connection, whose kernel holds so many bytes for it."""
    client = socket.socket()
    client.settimeout(20)
    if receives is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    client.connect(("127.0.0.1", server.port))
    return client


def post_head(path, num_bytes):
    """Return the beginning of a request whose body has so many bytes."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {num_bytes}\r\n\r\n"
    ).encode()


def until(condition, *, seconds=20.0):
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


class HeldBack:
    """Stands before a computation, and counts the calls that have arrived there."""

    @classmethod
    def before(cls, server):
        """Hold back the vectors of a server."""
        held = cls(server.service._embedding.compute)
        server.service._embedding.compute = held
        return held

    def __init__(self, compute):
        self._compute, self.go, self.sizes = compute, threading.Event(), []

    def __call__(self, items):
        self.sizes.append(len(items))
        assert self.go.wait(30)
        return self._compute(items)
