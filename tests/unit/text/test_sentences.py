"""Tokenizing in several processes gives what one process gives."""

import multiprocessing
import os
import select
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.corpus.shards import MANIFEST_NAME
from elmokit.corpus.text_shards import TextConfig, TextShards
from elmokit.files.sources import describe_files
from elmokit.files.text_reader import ReadReport
from elmokit.text import sentences as sentences_module
from elmokit.text.sentences import Workers, blocks_of_lines, tokenize_lines
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

LINES = [
    "The bank, by the river. It’s old!", "김민수는 서울에 갔다. 배를 먹었다.", "   ", "x" * 700,
    "你好!我们走吧?好。再见",
    "one\u2028two\x1dthree\x1cfour", "\u200b", "한국어 English 섞어 쓰기 🙂.", "``quoted''",
] * 30  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(sentences_module, "BLOCK_CHARACTERS", 500)


@pytest.mark.parametrize("version", ["", "1"])
def test_shards_have_the_same_bytes(tmp_path, version):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(line for line in LINES if line.strip()), encoding="utf-8")
    made = []
    for num_workers in (1, 3):
        tokenizer = TokenizerConfig(name="simple", version=version)
        config = TextConfig(tokenizer=tokenizer, tokens_per_shard=400)
        shards = TextShards(config, "plain-1", workers=Workers(num_workers))
        target, held = tmp_path / f"shards-{num_workers}", tmp_path / f"held-{num_workers}"
        shards.make(describe_files([text]), target, held_out_dir=held)
        assert (target / MANIFEST_NAME).exists()
        made.append({
            f"{folder.name[:4]}/{path.name}": path.read_bytes()
            for folder in (target, held) for path in sorted(folder.iterdir())
        })  # fmt: skip
    assert made[0] == made[1]
    assert len(made[0]) > 4


def test_a_reader_that_stops_early_leaves_no_process():
    tokenizer = build_tokenizer("simple")
    stream = tokenize_lines(LINES * 50, tokenizer, "NFC", ReadReport(), workers=Workers(2))
    assert next(stream)
    stream.close()
    assert not multiprocessing.active_children()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no way to await another's child")
def test_workers_end_with_a_main_process_that_is_killed(tmp_path):
    code = """
import os, sys, time
from elmokit.text.sentences import Workers
def work(block):
    return os.getpid()
def make():
    return work
if __name__ == "__main__":
    results = Workers(2).map(make, range(20))  # while it is held, there are workers
    print(next(results), flush=True)
    time.sleep(60)
"""
    script = tmp_path / "main.py"
    script.write_text(code, encoding="utf-8")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as main:
        worker = os.pidfd_open(int(main.stdout.readline()))
        main.kill()
    ended, _, _ = select.select([worker], [], [], 10)
    os.close(worker)
    assert ended


@given(st.lists(st.text("x", max_size=9)), st.integers(1, 30))
def test_a_block_ends_with_the_line_that_fills_it(lines, size):
    blocks = list(blocks_of_lines(iter(lines), size))
    assert [line for block in blocks for line in block] == lines
    for block in blocks:
        assert sum(len(line) + 1 for line in block[:-1]) < size
    assert all(sum(len(line) + 1 for line in block) >= size for block in blocks[:-1])
