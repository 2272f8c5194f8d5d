"""The explorer's engine in a headless Chromium against Python, and its speed.

    python benchmarks/bench_explorer.py en=TEXT ko=TEXT [--sentences 200]

TEXT has one tokenized sentence a line, words between spaces. Prints a Markdown table: the largest
difference of any number of any layer, and of any surprisal in bits; seconds for a sentence of 20
words after loading (layers, surprisal with 10 likeliest words a place, trace).
"""

import argparse
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

import elmokit
from elmokit.explorer.export import export_explorer

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser.conftest import BROWSERS, SWITCHES

MEASURE = """async ([name, sentences]) => {
  const { connect } = await import("./compute/client.js");
  const compute = await connect();
  const started = performance.now();
  await compute.open(name);
  const loading = performance.now() - started;
  const found = [];
  for (const words of sentences) {
    const { layers } = await compute.layers(words);
    const rows = await compute.surprisal(words);
    const bits = rows.flatMap((row) => [row.forward, row.backward]);
    found.push([layers.map((layer) => Array.from(layer)), bits]);
  }
  const words = sentences.flat().slice(0, 20);
  const times = [];
  for (let i = 0; i < 5; i++) {
    const begun = performance.now();
    await compute.layers([...words.slice(1), String(i)]);
    await compute.surprisal([...words.slice(1), String(i)], { top: 10 });
    await compute.trace([...words.slice(1), String(i)], 3);
    times.push(performance.now() - begun);
  }
  return { loading, found, times: times.sort((a, b) => a - b) };
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+", metavar="MODEL=TEXT")
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args()
    texts = dict(one.split("=", 1) for one in options.texts)
    import shutil

    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        site = Path(folder) / "site"
        export_explorer(list(texts), site)
        (site / "blank.html").write_text("<!doctype html><title>-</title>")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        print("| model | sentences | words | layers | bits | load, s | 20 words, s |")
        print("|---|---|---|---|---|---|---|")
        for name, text in texts.items():
            lines = Path(text).read_text(encoding="utf-8").splitlines()
            sentences = [line.split() for line in lines if line.strip()][: options.sentences]
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/blank.html")
            answer = page.evaluate(MEASURE, [name, sentences])
            layers, bits = differences(name, sentences, answer["found"])
            num_words = sum(map(len, sentences))
            median = answer["times"][len(answer["times"]) // 2] / 1000
            print(
                f"| {name} | {len(sentences)} | {num_words:,} | {layers:.1e} | {bits:.1e} | "
                f"{answer['loading'] / 1000:.2f} | {median:.2f} |"
            )
        browser.close()
        server.shutdown()


def differences(name, sentences, found):
    """Return the largest differences of layers and of bits."""
    model = elmokit.load_model(name)
    expected = elmokit.Embedder(model).embed(sentences)
    layers = max(
        float(np.abs(np.array(one, np.float32).reshape(other.shape) - other).max())
        for (one, _), other in zip(found, expected, strict=True)
    )
    rows = elmokit.surprisal(model, sentences, precision="fp32")
    told = np.array([(row.forward, row.backward) for row in rows]).ravel()
    bits = float(np.abs(np.concatenate([bits for _, bits in found]) - told).max())
    return layers, bits


if __name__ == "__main__":
    main()
