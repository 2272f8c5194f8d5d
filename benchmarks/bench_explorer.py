"""The explorer in a headless Chromium: its engine against Python, and how fast the page is.

    python benchmarks/bench_explorer.py en=TEXT ko=TEXT [--sentences 200] [--weights int6]

TEXT is raw text, of which every seventh sentence of 3 to 60 words is taken, as the model's own
tokenizer splits it. Exports the models and prints two Markdown tables. Of the engine: the largest
difference of any number of any layer, and of any surprisal in bits, from Python with the same
weights; seconds for 20 words after loading (layers, surprisal with 10 likeliest words a place,
trace). Of the page, for 20 words: bytes fetched, seconds until panel 1 stands, from then until all
nine do, and processor seconds of the browser until then, which other work on the machine changes
less.
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import numpy as np
import psutil
from playwright.sync_api import sync_playwright

import elmokit
from elmokit.corpus.readers import read_sentences
from elmokit.web.page.export import ExportedWeights, export_explorer
from elmokit.text.tokenizers.registry import build_tokenizer

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser.conftest import BROWSERS, SWITCHES
from tests.builders.browser_calls import PANELS, load_exported

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


WATCH = """(() => {
  window.stood = {};
  window.IntersectionObserver = class {  // as if all panels were on the screen
    constructor(call) { this.call = call; }
    observe(target) { this.call([{ isIntersecting: true, target }]); }
    disconnect() {}
  };
  const panels = %s;
  const look = () => {
    for (const [name, content] of Object.entries(panels)) {
      if (!(name in stood) && document.querySelector(`#${name} ${content}`)) {
        stood[name] = performance.now();
      }
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true });
})()"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+", metavar="MODEL=TEXT")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--weights", choices=get_args(ExportedWeights), default="int6")
    options = parser.parse_args()
    texts = {}
    for name, _, path in (one.partition("=") for one in options.texts):
        texts[name] = some_sentences(name, Path(path), options.sentences)
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        site = Path(folder) / "site"
        export_explorer(list(texts), site, weights=options.weights)
        (site / "blank.html").write_text("<!doctype html><title>-</title>")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        print("| model | sentences | words | layers | bits | load, s | 20 words, s |")
        print("|---|---|---|---|---|---|---|")
        for name, sentences in texts.items():
            print(engine_row(browser, url, name, sentences, site))
        print("\n| model | bytes | first panel, s | all after it, s | processor, s |")
        print("|---|---|---|---|---|")
        for name, sentences in texts.items():
            print(page_row(browser, url, name, [word for one in sentences for word in one][:20]))
        browser.close()
        server.shutdown()


def some_sentences(name, path, count):
    """Read sentences from different places of a text."""
    model = elmokit.load_model(name)
    form, tokenizer = model.config.char_vocab.normalization, build_tokenizer(model.tokenizer)
    sentences = islice(read_sentences([path], tokenizer, normalization=form), 0, None, 7)
    return list(islice((one for one in sentences if 3 <= len(one) <= 60), count))


def engine_row(browser, url, name, sentences, site):
    """Compare the engine with Python, which reads the exported weights."""
    page = browser.new_page()
    page.goto(f"{url}blank.html")
    answer = page.evaluate(MEASURE, [name, sentences])
    page.close()
    model = load_exported(site / "models" / name)
    layers, bits = differences(model, sentences, answer["found"])
    median = answer["times"][len(answer["times"]) // 2] / 1000
    return (
        f"| {name} | {len(sentences)} | {sum(map(len, sentences)):,} | {layers:.1e} | {bits:.1e} | "
        f"{answer['loading'] / 1000:.2f} | {median:.2f} |"
    )


def page_row(browser, url, name, words, repeats=5):
    """Open the page some times and let every panel compute; medians."""
    rows = []
    for _ in range(repeats):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(WATCH % json.dumps(PANELS))
        sizes = []
        page.on("requestfinished", lambda one, sizes=sizes: sizes.append(one))
        began = processor_seconds()
        page.goto(f"{url}#model={name}&text={quote(' '.join(words))}")
        page.wait_for_function(f"Object.keys(stood).length === {len(PANELS)}", timeout=120_000)
        used = processor_seconds() - began
        stood = page.evaluate("stood")
        first, last = stood["follow"] / 1000, max(stood.values()) / 1000
        num_bytes = sum(one.sizes()["responseBodySize"] for one in sizes)
        rows.append((num_bytes, first, last - first, used))
        page.close()
    num_bytes, first, rest, used = (sorted(one)[repeats // 2] for one in zip(*rows, strict=True))
    return f"| {name} | {num_bytes:,} | {first:.2f} | {rest:.2f} | {used:.2f} |"


def processor_seconds():
    """Return the processor time of the browser and its driver so far."""
    used = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in used)


def differences(model, sentences, found):
    """Return the largest differences of layers and of bits."""
    expected = elmokit.Embedder(model, device="cpu").embed(sentences)
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
