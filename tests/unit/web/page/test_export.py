import gzip
import json
import os
import random
import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest
from safetensors.numpy import load_file

import elmokit
from elmokit.text.alignment import cluster_pattern
from elmokit.text.normalization import plain_1_rules
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.tokenizers.simple import rules_of
from elmokit.text.tokenizers.simple_data import LANGUAGES, version_of
from elmokit.web.page import models
from elmokit.web.page.export import export_explorer, text_rules, to_javascript
from elmokit.web.page.models import STATIC

from ....builders.browser_calls import load_exported
from ....builders.training_models import toy_model


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored") / "toy"
    toy_model().save(folder)
    return folder


def test_an_export_has_page_catalog_rules_and_models(model_dir, tmp_path):
    site = tmp_path / "new" / "site"
    report = export_explorer([str(model_dir), str(model_dir)], site)
    assert report.models == ["toy"]  # named twice, written once
    files = [path for path in site.rglob("*") if path.is_file()]
    assert report.num_files == len(files)
    assert report.num_bytes == sum(path.stat().st_size for path in files)
    for path in STATIC.rglob("*.js"):
        assert (site / path.relative_to(STATIC)).read_bytes() == path.read_bytes()
    found = json.loads((site / "explorer.json").read_text(encoding="utf-8"))
    (entry,) = found["models"]
    assert found["compute"] == entry["compute"] == "browser"
    folder = site / entry["path"]
    packed = (folder / "vocab.txt.gz").read_bytes()
    assert gzip.decompress(packed) == (model_dir / "vocab.txt").read_bytes()
    model = elmokit.load_model(model_dir)
    model.round_to("int6")
    assert entry["hash"] == model.model_hash() == load_exported(folder).model_hash()
    assert json.loads((folder / "config.json").read_bytes())["weights"] == "int6"
    warm = load_file(site / entry["path"] / "warm.safetensors")
    assert warm["hidden"].shape[:2] == (entry["num_layers"] - 1, 2)
    assert np.abs(warm["cell"]).max() > 0
    rules = json.loads((site / "tokenizer-rules.json").read_text(encoding="utf-8"))
    assert rules["simple"] == {}  # the toy model takes words between spaces
    assert all(path.stat().st_mode & 0o777 == 0o666 & ~_umask() for path in files)


def test_stored_weights_are_copied_as_they_are(model_dir, tmp_path):
    export_explorer([str(model_dir)], tmp_path / "site", weights="stored")
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        copy = tmp_path / "site/models/toy" / name
        assert copy.read_bytes() == (model_dir / name).read_bytes()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_nothing_is_overwritten(model_dir, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(FileExistsError, match=r"mine\.txt"):
        export_explorer([str(model_dir)], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_interrupted_export_leaves_nothing(model_dir, tmp_path, monkeypatch):
    def interrupt(model):
        raise KeyboardInterrupt

    monkeypatch.setitem(models.MADE_FILES, "warm.safetensors", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export_explorer([str(model_dir)], tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


RUN = """const [patterns, texts] = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify(patterns.map((source) => texts.map((text) =>
  Array.from(text.matchAll(new RegExp(source, "gv")), (match) => match[0])))));"""
SPLIT = """import { SimpleTokenizer } from "./simple_tokenizer.mjs";
import { readFileSync } from "fs";
const [rules, texts] = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(Object.keys(rules.simple).map((version) => {
  const tokenizer = new SimpleTokenizer(rules, version);
  return texts.map((text) => tokenizer.tokenize(text));
})));"""
SENTENCES = [
    "Am 3. Mai kam Dr. Weiß bzw. Friedrich II. mit 5 Mio. Euro usw.",
    "L'homme qu'il a vu aujourd'hui, c'est M. Dupont. D’accord!",
    "Ankara'da 20. yüzyıl, II. Mehmet'in 1980'de vb.", "डॉ. शर्मा आए। वे गए।",
    "He can't. Mary's U.S. e-mail, 5pm. l' homme", "III. IV. 3.", "我走。再见",
]  # fmt: skip
PIECES = [
    *"abcKkſİıiILRSB.-_'’\"()[]{}|/\\&+*#$@:;=?!<>0123,%^~`…。！漢字かなカナ한국어é²Ⅷ٣ \x1c\u2028",
    "\u0301", "\u200d", "\u200b", "\U0001f3fb", "😀", "\U0001f1e6", "n't", "'S", "-LRB-", "U.S.",
    "Dr.", "www.", "http://", "US$", "a@b.c", "e-mail", "12-345", "5%", "...",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_rules_find_in_javascript_what_they_find_in_python():
    rules = [*vars(plain_1_rules()).values(), *rules_of("2").patterns, cluster_pattern()]
    rules = [rule for rule in rules if isinstance(rule, re.Pattern)]
    generator = random.Random(0)
    texts = ["".join(generator.choices(PIECES, k=12)) for _ in range(3000)]
    for language in ("en", "ko"):
        demo = files("elmokit").joinpath(f"data/demo/{language}.txt").read_text(encoding="utf-8")
        texts += demo.splitlines()[:50]
    body = json.dumps([[to_javascript(rule) for rule in rules], texts])
    done = subprocess.run(
        ["node", "-e", RUN], input=body, capture_output=True, text=True, check=True
    )
    for rule, matches in zip(rules, json.loads(done.stdout), strict=True):
        expected = [[match[0] for match in rule.finditer(text)] for text in texts]
        assert [
            pair for pair in zip(texts, matches, expected, strict=True) if pair[1] != pair[2]
        ] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_splits_every_language_as_python_does(tmp_path):
    versions = ["1", "2", *map(version_of, LANGUAGES)]
    tokenizers = [TokenizerConfig(name="simple", version=version) for version in versions]
    source = STATIC / "engine" / "simple_tokenizer.js"
    shutil.copy(source, tmp_path / "simple_tokenizer.mjs")
    (tmp_path / "run.mjs").write_text(SPLIT, encoding="utf-8")
    generator = random.Random(1)
    texts = SENTENCES + ["".join(generator.choices(PIECES, k=12)) for _ in range(500)]
    done = subprocess.run(
        ["node", tmp_path / "run.mjs"], input=json.dumps([text_rules(tokenizers), texts]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for tokenizer, found in zip(tokenizers, json.loads(done.stdout), strict=True):
        split = build_tokenizer(tokenizer).tokenize
        assert [pair for pair in zip(texts, found, strict=True) if pair[1] != split(pair[0])] == []
