"""Special words of language models in a text are told once, with counts, wherever text is read."""

import pytest

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.evaluation.perplexity import perplexity
from elmokit.evaluation.surprisal import surprisal
from elmokit.text.given_sentences import SpecialWordCount, special_words_in
from elmokit.text.tokenizers.registry import build_tokenizer

from ...builders import training_models

SPECIAL = [
    "<S>", "</S>", "<s>", "</s>", "<UNK>", "<unk>", "[UNK]", "<pad>", "[CLS]", "[MASK]", "<eos>",
    "<start>", "<end>",     "@@UNKNOWN@@", "@@PADDING@@", "<|endoftext|>", "UNK", "__UNK__",
]  # fmt: skip
MARKED = ["<s> I sat by the bank . </s>", "no mark", "the <unk> by the [UNK]"]


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


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


def test_a_corpus_tells_lines_and_words_once_at_its_end(tmp_path, caplog):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("\n".join(MARKED), encoding="utf-8")
    report = ReadReport()
    assert len(list(read_text_lines([tmp_path / "a.txt", tmp_path / "b.txt"], report))) == 6
    (message,) = messages(caplog)
    for part in ("4 of 6 lines", "a.txt", "<s> 2", "</s> 2", "<unk> 2", "[UNK] 2"):
        assert part in message
    assert report.marked_lines == 4


@pytest.mark.parametrize("score", [perplexity, surprisal])
@pytest.mark.parametrize("as_words", [False, True])
def test_scores_tell_it_once_of_strings_and_lists_of_words(score, as_words, caplog):
    sentences = [text.split() for text in MARKED] if as_words else MARKED
    scores = score(training_models.toy_model(), iter(sentences))
    if score is surprisal:
        list(scores)
    assert sum("2 of 3 sentences" in message for message in messages(caplog)) == 1
