"""The page of `elmokit explore` on a free port of this machine, in a thread."""

from contextlib import contextmanager
from dataclasses import dataclass

from elmokit.web.page.calls import Calls, page_router
from elmokit.web.page.export import catalog, page_files
from elmokit.web.page.models import load_explored
from elmokit.web.server import Server
from elmokit.web.startup import ServerSettings

from .live_server import LiveServer, running


@dataclass
class LivePage(LiveServer):
    calls: Calls
    files: dict

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def served_page(names, *, runs=None, tasks=None, corpus=(), more_files=None):
    """Serve the page with models, by directory; `more_files` are contents by path."""
    models = load_explored([str(name) for name in names])
    loaded = {name: lambda run=run: run for name, run in (tasks or {}).items()}
    calls = Calls(models, runs=runs, tasks=loaded, corpus=corpus)
    task_names = {name: run.task.name for name, run in (tasks or {}).items()}
    content = catalog(models, served=True, runs=runs or (), tasks=task_names, corpus=corpus)
    files = page_files(content, models)
    files |= {path: lambda text=text: text.encode() for path, text in (more_files or {}).items()}
    server = Server(page_router(files, calls), ServerSettings(), host="127.0.0.1")
    with running(server) as port:
        yield LivePage(port, server, calls, files)
