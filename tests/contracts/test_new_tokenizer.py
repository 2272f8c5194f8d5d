"""A new tokenizer is one file and one line of the registry: commands and checks read it there."""

import json
import sys
from importlib.resources import files

import pytest

from elmokit.text.tokenizers import registry
from elmokit.text.tokenizers.registry import TOKENIZERS, RegisteredTokenizer, build_tokenizer

from . import test_tokenizers as contract

TOKENIZER_FILE = '''
"""Words without what stands around them."""


class LowerTokenizer:
    """Words in lower case."""

    name = "lower"
    version = "1"

    def tokenize(self, sentence):
        return sentence.lower().split()

    def sentences(self, text):
        return [tokens for line in text.splitlines() if (tokens := self.tokenize(line))]
'''


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "lower_tokenizer.py").write_text(TOKENIZER_FILE)
    monkeypatch.syspath_prepend(folder)
    entry = RegisteredTokenizer("lower_tokenizer", "LowerTokenizer", "words in lower case")
    monkeypatch.setitem(TOKENIZERS, "lower", entry)
    yield
    sys.modules.pop("lower_tokenizer", None)
    registry._tokenizer.cache_clear()


def test_it_passes_the_contract():
    tokenizer = build_tokenizer("lower")
    contract.test_it_is_a_tokenizer_with_name_and_version(tokenizer)
    contract.test_a_line_break_ends_a_sentence(tokenizer)
    contract.test_many_texts_at_once_give_the_same(tokenizer)
    contract.test_tokens_are_never_empty_and_hold_no_white_space(tokenizer)


def test_help_vocab_pretrain_and_embed_know_it(command, tmp_path):
    import h5py

    for name in ("vocab", "pretrain", "embed", "perplexity", "vectors"):
        shown = " ".join(command(name, "--help").replace("│", " ").split())
        assert "lower (words in lower case)" in shown
    lines = files("elmokit").joinpath("data/demo/en.txt").read_text(encoding="utf-8").splitlines()
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(lines[:200]) + "\n", encoding="utf-8")
    made = json.loads(
        command("vocab", corpus, "-o", tmp_path / "v.txt", "--tokenizer", "lower", "--json")
    )
    assert made["tokenizer"] == {"name": "lower", "version": "1"}
    command(
        "pretrain", corpus, "-o", tmp_path / "run", "--preset", "toy", "--tokens", 500,
        "--set", 'text.tokenizer.name="lower"',
    )  # fmt: skip
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["tokenizer"] == {"name": "lower", "version": "1"}
    text = tmp_path / "text.txt"
    text.write_text("The BANK of the River\n")
    output = tmp_path / "vectors.h5"
    command("embed", text, "-o", output, "--model", tmp_path / "run", "--tokenizer", "lower")
    with h5py.File(output) as file:
        assert file["0"].shape[1] == 5
