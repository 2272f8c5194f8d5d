"""Blocks of sentences give back what they were made of."""

from hypothesis import given
from hypothesis import strategies as st

from elmokit.text.tokenized_block import TokenizedBlock
from elmokit.text.word_counter import WordCounter

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "Cc"]), min_size=1)


@given(st.lists(st.lists(st.lists(WORDS))))
def test_sentences_and_counts_are_those_that_went_in(lines):
    block = TokenizedBlock.of(lines)
    assert list(block.lines()) == lines
    sentences = [sentence for line in lines for sentence in line]
    assert block.num_sentences + block.num_empty == len(sentences)
    one, all_together = WordCounter(), WordCounter(max_distinct=2)
    for sentence in sentences:
        one.add(sentence)
    with all_together:
        all_together.add_counts(block.words, block.counts())
        assert all_together.num_words == one.num_words
        assert all_together.most_common() == one.most_common()
