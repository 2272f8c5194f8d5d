"""A server of vectors, or the explorer's page, on a free port of this machine, in a thread."""

import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

from elmokit.web.api.routes import Service
from elmokit.web.page.calls import Calls, page_router
from elmokit.web.page.export import catalog, page_files
from elmokit.web.page.models import load_explored
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


@dataclass
class LivePage(LiveServer):
    calls: Calls
    files: dict

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def served_page(names, *, runs=None, tasks=None, more_files=None):
    """Serve the page with models, by directory; `more_files` are contents by path."""
    models = load_explored([str(name) for name in names])
    loaded = {name: lambda run=run: run for name, run in (tasks or {}).items()}
    calls = Calls(models, runs=runs, tasks=loaded)
    task_names = {name: run.task.name for name, run in (tasks or {}).items()}
    content = catalog(models, served=True, runs=runs or (), tasks=task_names)
    files = page_files(content, models)
    files |= {path: lambda text=text: text.encode() for path, text in (more_files or {}).items()}
    server = Server(page_router(files, calls), ServerSettings(), host="127.0.0.1")
    with running(server) as port:
        yield LivePage(port, server, calls, files)


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


def is_listening(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


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
