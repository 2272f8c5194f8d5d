"""A headless Chromium for tests of the explorer, and folders served on a port of their own.

Tests are skipped, with the reason, where there is no browser or no driver.
"""

import os
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from ..builders.browser_calls import BLANK

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no network
)  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests, with an empty profile. Set ELMOKIT_CHROMIUM to choose it."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason='no driver: pip install "elmokit[test]"'
    )
    path = os.environ.get("ELMOKIT_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), "")
    if not path:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def new_page(browser):
    """Return a function that opens an empty page; options are those of a browser context.

    Pages of equal options share a context, so that files of a site are fetched once; the page
    stores nothing in it.
    """
    contexts = {}

    def new_page(**options):
        key = repr(sorted(options.items()))
        if key not in contexts:
            contexts[key] = browser.new_context(**options)
            contexts[key].set_default_timeout(60_000)  # of a slow machine
        return contexts[key].new_page()

    return new_page


@contextmanager
def watched_pages(new_page):
    """Yield a function that opens a page on a URL; options are those of a browser context.

    A `script` runs before those of the page. At the end it fails if a page logged an error or a
    warning, threw an exception, or asked for anything outside its own origin.
    """
    faults, pages = [], []

    def open_page(url, *, script=None, **options):
        origin = urlsplit(url).netloc
        page = new_page(**options)
        pages.append(page)

        def check_request(request):
            parts = urlsplit(request.url)
            if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != origin:
                faults.append(f"request outside {origin}: {request.url}")

        def check_message(message):
            if message.type in ("error", "warning"):
                faults.append(f"console: {message.text} ({message.location})")

        page.on("request", check_request)
        page.on("console", check_message)
        page.on("pageerror", lambda error: faults.append(f"exception: {error}"))
        if script is not None:
            page.add_init_script(script)
        page.goto(url)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


@pytest.fixture
def browser_page(new_page):
    """Pages of one test, see `watched_pages`."""
    with watched_pages(new_page) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def shared_browser_page(new_page):
    """Pages that the tests of a file share: loading a model takes longer than most tests."""
    with watched_pages(new_page) as open_page:
        yield open_page


@pytest.fixture(scope="session")
def show():
    """Return a function that scrolls to a panel until it has what is sought, a CSS selector."""

    def show_panel(page, panel, content):
        page.wait_for_selector(f"#{panel}")
        page.wait_for_function(  # panels above fill in and push it away
            "([id, content]) => { document.getElementById(id).scrollIntoView();"
            " return document.querySelector(`#${id} ${content}`) !== null; }",
            arg=[panel, content],
        )

    return show_panel


@pytest.fixture(scope="session")
def serve_folder():
    """Return a function that serves a folder as `python -m http.server` does, and gives its URL."""
    servers = []

    def serve(folder):
        handler = partial(_QuietHandler, directory=str(folder))
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


class _QuietHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for the dozens of files of a page

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=3600")  # no folder changes while it is served
        super().end_headers()

    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="session")
def export(tmp_path_factory):
    """Return a function that exports models, with a blank page, and gives the folder."""
    from elmokit.web.page.export import export_explorer

    def export(models, **options):
        folder = tmp_path_factory.mktemp("explorer") / "site"
        export_explorer(models, folder, **options)
        (folder / "blank.html").write_text(BLANK)
        return folder

    return export


@pytest.fixture(scope="session")
def exported_folder(export):
    """An export of both packaged models, as `elmokit explore --export` writes it."""
    return export(["en", "ko"])


@pytest.fixture(scope="session")
def toy_models(tmp_path_factory):
    """Directories of toy models of both languages."""
    from elmokit.text.tokenizers.registry import TokenizerConfig

    from ..builders.training_models import toy_model

    folder = tmp_path_factory.mktemp("models")
    for language in ("en", "ko"):
        model = toy_model(tokenizer=TokenizerConfig(name="simple", version="2"))
        model.training_metadata["language"] = language
        model.save(folder / language)
    return [str(folder / language) for language in ("en", "ko")]


@pytest.fixture(scope="session")
def toy_folder(toy_models, export):
    """An export of them, which a page loads and computes in a moment."""
    return export(toy_models, weights="stored")


@pytest.fixture(scope="session")
def toy_site(toy_folder, serve_folder):
    """Its URL: for what the page does with any model."""
    return serve_folder(toy_folder)


@pytest.fixture(scope="session")
def exported_site(exported_folder, serve_folder):
    """The URL of that export, served as any web server does."""
    return serve_folder(exported_folder)
