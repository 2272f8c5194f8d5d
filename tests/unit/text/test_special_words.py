"""Special words of language models in a text are told once, with counts, wherever text is read."""

import pytest

from elmokit.text.given_sentences import SpecialWordCount, special_words_in
from elmokit.text.tokenizers.registry import build_tokenizer

SPECIAL = [
    "<S>", "</S>", "<s>", "</s>", "<UNK>", "<unk>", "[UNK]", "<pad>", "[CLS]", "[MASK]", "<eos>",
    "<start>", "<end>",     "@@UNKNOWN@@", "@@PADDING@@", "<|endoftext|>", "UNK", "__UNK__",
]  # fmt: skip


@pytest.mark.parametrize("tokenizer", ["whitespace", "simple"])
@pytest.mark.parametrize("word", SPECIAL)
def test_special_words_are_seen_before_and_after_tokenization(word, tokenizer):
    assert special_words_in(word) == [word]
    for text in (f"{word} by the bank", f"the bank ({word})."):
        (sentence,) = build_tokenizer(tokenizer).sentences(text)
        for line in (text, " ".join(sentence)):
            assert special_words_in(line) == [word]
            special = SpecialWordCount()
            special.add(line)
            assert special.num_marked == 1
