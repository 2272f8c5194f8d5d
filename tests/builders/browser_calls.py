"""Calls of the explorer's interface in a page, for tests in a browser."""

import gzip
import tempfile
import unicodedata
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import elmokit

BLANK = "<!doctype html><link rel=icon href=data:,><title>-</title>"
"""A page of the same origin that loads no model."""
CALL = """async ([name, method, args]) => {
  const { connect } = await import("./compute/client.js");
  window.compute ??= await connect();
  await window.compute.open(name);
  const result = await window.compute[method](...args);
  if (method === "layers") result.layers = result.layers.map((layer) => Array.from(layer));
  return result;
}"""
ERROR = """async ([name, method, args]) => {
  const { connect } = await import("./compute/client.js");
  window.compute ??= await connect();
  try {
    await window.compute.open(name);
    await window.compute[method](...args);
    return null;
  } catch (error) {
    return [error.name, error.code, error.message];
  }
}"""
CHANGED_MINDS = """async ([first, second, words]) => {
  const { connect } = await import("./compute/client.js");
  const compute = await connect();
  await compute.open(first);
  const opening = compute.open(second);
  const late = await compute.layers(words).catch((error) => error.code);
  const back = compute.open(first);
  await opening;
  await Promise.all([back, compute.open(second)]);
  const rows = await compute.surprisal(words, { top: 3 });
  return [late, compute.info.name, rows[0].forward_top.map((one) => one.word)];
}"""
"""A model is chosen, then the other, then the first again while the other is loading."""


PANELS = {
    "follow": ".flow .part", "predict": ".bars li", "surprise": ".surprisal li",
    "map": "svg g.point", "mixture": ".found li", "near": ".found li", "reach": ".heat td",
    "training": ".curve", "tasks": ".curve",
}  # fmt: skip
"""What stands in each panel once it is computed."""

FAULTS_OF_LAYOUT = """(panels) => [
  ...Object.entries(panels)
    .filter(([id, content]) => {
      const box = document.querySelector(`#${id} ${content}`)?.getBoundingClientRect();
      return box === undefined || box.width === 0 || box.height === 0;
    })
    .map(([id]) => `${id}: not to be seen`),
  ...[...document.querySelectorAll("main *")]
    .filter((one) => !one.closest(".scroll, .hidden-text, .formula, legend"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => `${one.closest("section")?.id}: ${one.tagName} is wider than the screen`),
]"""
"""Panels without content, and what reaches beyond the screen without a scroll bar of its own."""

TEXTS = [
    "", "   ", "cannot gonna dont", 'He said."', "the U.S.", "See Fig. 3, p. 5 (Dr. No).",
    "東京タワーは高い。とても高い！밥을 먹었다.집에 갔다", "a\u200bb e\u0301 ﬁ ½ ① ٣ 10kg 3am's",
    "http://a.b/c?d=e, x@y.org #tag @me :-) <3 C++ AT&T c/o US$5 +1 555-123-4567",
    "👩‍👩‍👧 🇰🇷 👍🏽 'tis rock 'n' roll -- well... no?! (a/b) anti-war co-op l'État don’t",
    "각 is decomposed 각", "``quoted'' -LRB- x -RRB- \\/ “so” … a—b １２ ａ\u00adb",
    "a\u180e-LRB-\u2060\x1c.", "क\u200c\U000e006fカカ\u180d\U0001d17a",
]  # fmt: skip
"""Odd ones, for tokenizers."""


def _is_unseen(code):
    """Whether a character has no width: controls, formats, selectors of variants, fillers."""
    is_selector = 0xFE00 <= code <= 0xFE0F or 0x180B <= code <= 0x180F or code == 0xE0100
    fillers = (0x034F, 0x115F, 0x1160, 0x17B4, 0x2028, 0x2029, 0x3164, 0xFFA0, 0xFFFC)
    is_tag = 0xE0022 <= code < 0xE007E  # many that are alike
    is_control = unicodedata.category(chr(code)) in ("Cc", "Cf") and code != 0
    return is_selector or code in fillers or (is_control and not is_tag)


TEXTS += [
    f"😀 {char} 😀{char}😀 {char}ا{char} {char} a{char} {char}\u200c '{char}' {char}"
    for char in map(chr, filter(_is_unseen, (*range(0x20000), *range(0xE0000, 0xE0200))))
]
"""Words of one character that normalization drops in some places and keeps in others."""


def load_exported(folder):
    """Load a model of an export, whose files are compressed."""
    with tempfile.TemporaryDirectory() as name:
        for path in folder.iterdir():
            content = path.read_bytes()
            unpacked = gzip.decompress(content) if path.suffix == ".gz" else content
            (Path(name) / path.name.removesuffix(".gz")).write_bytes(unpacked)
        return elmokit.load_model(name)


def caller(open_page, site):
    """Return a function that calls a method of a model; every model has a page of its own."""

    @cache
    def page_of(name):
        return open_page(site + "blank.html")

    def call(name, method, *args, code=CALL):
        return page_of(name).evaluate(code, [name, method, list(args)])

    return call


def check_tokens(found, model, text):
    """Compare what a page makes of a text with what Python does."""
    expected = elmokit.tokenize(model, text).sentences
    check_alike(found["sentences"], expected, unlike=("start", "end"))
    for token in (token for sentence in found["sentences"] for token in sentence):
        assert text_units(text, token) == token["raw"]


def text_units(text, token):
    """Return what stands where JavaScript finds a token."""
    units = text.encode("utf-16-le")
    return units[2 * token["start"] : 2 * token["end"]].decode("utf-16-le")


def check_alike(found, expected, *, error=0.0, unlike=()):
    """Compare results of a page and of Python: the same names, the same values within `error`.

    A rank may be another one where words are nearly as likely; probabilities are held closer.
    """
    found, expected = leaves(found), leaves(expected)
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        if isinstance(value, float) and path[-1] not in unlike:
            name = str(path[-1])
            limit = 1 + value / 1000 if name.endswith("rank") else error
            limit = error / 10 if name == "probability" else limit
            assert found[path] == pytest.approx(value, abs=limit), path
        elif path[-1] not in unlike:
            assert found[path] == value, path


def leaves(value, path=()):
    """Return the values in a result by their paths; JavaScript knows one kind of number."""
    if is_dataclass(value):
        value = asdict(value)
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, dict | list | tuple):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {p: leaf for key, item in items for p, leaf in leaves(item, (*path, key)).items()}
