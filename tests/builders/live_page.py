"""The page of `elmokit explore` on a free port of this machine, in a thread."""

import threading
from contextlib import contextmanager

from elmokit.web.page.calls import Calls
from elmokit.web.page.catalog import catalog, load_explored, page_files
from elmokit.web.page.server import PageServer
from elmokit.web.startup import listen


@contextmanager
def served_page(names, *, runs=None, tasks=None, corpus=(), more_files=None):
    """Serve the page with models, by directory; `more_files` are contents by path."""
    models = load_explored([str(name) for name in names])
    calls = Calls(models, runs=runs, tasks=tasks, corpus=corpus)
    entries = [
        {"name": name, "title": name, "task": run.task.name} for name, run in (tasks or {}).items()
    ]
    content = catalog(models, served=True, runs=runs or (), tasks=entries, corpus=corpus)
    files = page_files(content, models)
    files |= {path: lambda text=text: text.encode() for path, text in (more_files or {}).items()}
    server = PageServer(files, calls, listen("127.0.0.1", 0), host="127.0.0.1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
