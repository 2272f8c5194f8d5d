import json
import random
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from elmokit.text.alignment import cluster_pattern
from elmokit.text.normalization import plain_1_rules
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.tokenizers.simple import rules_of
from elmokit.text.tokenizers.simple_data import LANGUAGES, version_of
from elmokit.web.page.models import STATIC
from elmokit.web.page.text_rules import text_rules, to_javascript

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
