import json
import random
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from elmokit.text.alignment import cluster_pattern
from elmokit.text.normalization import plain_1_rules
from elmokit.text.tokenizers.simple import patterns
from elmokit.web.page.text_rules import to_javascript

RUN = """const [patterns, texts] = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify(patterns.map((source) => texts.map((text) =>
  Array.from(text.matchAll(new RegExp(source, "gv")), (match) => match[0])))));"""
PIECES = [
    *"abcKkſİıiILRSB.-_'’\"()[]{}|/\\&+*#$@:;=?!<>0123,%^~`…。！漢字かなカナ한국어é²Ⅷ٣ \x1c\u2028",
    "\u0301", "\u200d", "\u200b", "\U0001f3fb", "😀", "\U0001f1e6", "n't", "'S", "-LRB-", "U.S.",
    "Dr.", "www.", "http://", "US$", "a@b.c", "e-mail", "12-345", "5%", "...",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_rules_find_in_javascript_what_they_find_in_python():
    rules = [*vars(plain_1_rules()).values(), *patterns(), cluster_pattern()]
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
