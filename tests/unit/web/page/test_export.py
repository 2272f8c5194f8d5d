import gzip
import json
import os
import random
import re
import runpy
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

import elmokit
from elmokit.text.alignment import cluster_pattern
from elmokit.text.normalization import plain_1_rules
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.tokenizers.simple import rules_of
from elmokit.web.page.export import export_explorer
from elmokit.web.page.models import STATIC

from ....builders.browser_calls import load_exported
from ....builders.command_line import run_python
from ....builders.training_models import toy_model

ROOT = Path(__file__).parents[4]


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
    assert all(path.stat().st_mode & 0o777 == 0o666 & ~_umask() for path in files)


def test_an_export_needs_no_server(model_dir, tmp_path):
    code = "import sys; sys.modules.update(starlette=None, uvicorn=None);"
    code += "from elmokit.cli import main; main()"
    command = ["explore", "--model", str(model_dir), "--export", str(tmp_path / "site")]
    assert run_python(code, *command).returncode == 0
    assert (tmp_path / "site" / "index.html").is_file()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


RUN = """import { SimpleTokenizer } from "./simple_tokenizer.mjs";
import { readFileSync } from "fs";
const [patterns, rules, texts] = JSON.parse(readFileSync(0, "utf-8"));
const matches = patterns.map((source) => texts.map((text) =>
  Array.from(text.matchAll(new RegExp(source, "gv")), (match) => match[0])));
const words = Object.keys(rules.simple).map((version) => {
  const tokenizer = new SimpleTokenizer(rules, version);
  return texts.map((text) => tokenizer.tokenize(text));
});
console.log(JSON.stringify([matches, words]));"""
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


@pytest.fixture(scope="module")
def recipe():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "recipes/text_rules.py")))


def test_the_page_has_the_rules_that_the_recipe_writes(recipe):
    assert json.loads(recipe.RULES.read_bytes()) == recipe.text_rules(), "run recipes/text_rules.py"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_rules_and_splitter_find_in_javascript_what_they_find_in_python(recipe, tmp_path):
    """In every language; the places where they differ are shown."""
    patterns = [*vars(plain_1_rules()).values(), *rules_of("2").patterns, cluster_pattern()]
    patterns = [one for one in patterns if isinstance(one, re.Pattern)]
    generator = random.Random(0)
    texts = SENTENCES + ["".join(generator.choices(PIECES, k=12)) for _ in range(3000)]
    for language in ("en", "ko"):
        demo = files("elmokit").joinpath(f"data/demo/{language}.txt").read_text(encoding="utf-8")
        texts += demo.splitlines()[:50]
    shutil.copy(STATIC / "engine/simple_tokenizer.js", tmp_path / "simple_tokenizer.mjs")
    (tmp_path / "run.mjs").write_text(RUN, encoding="utf-8")
    given = [[recipe.to_javascript(one) for one in patterns], recipe.text_rules(), texts]
    done = subprocess.run(
        ["node", tmp_path / "run.mjs"], input=json.dumps(given), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    matches, words = json.loads(done.stdout)
    for pattern, rows in zip(patterns, matches, strict=True):
        expected = ([match[0] for match in pattern.finditer(text)] for text in texts)
        assert differences(texts, rows, expected) == []
    for version, rows in zip(recipe.VERSIONS, words, strict=True):
        split = build_tokenizer(TokenizerConfig(name="simple", version=version)).tokenize
        assert differences(texts, rows, map(split, texts)) == []


def differences(texts, rows, expected):
    return [row for row in zip(texts, rows, expected, strict=True) if row[1] != row[2]]
