import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.formats.conllu import read_morphemes

pieces = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="+_"), min_size=1, max_size=4
)
tags = st.sampled_from(["ncn", "jxt", "pvg", "ep", "ef", "sf"])
words = st.lists(st.tuples(pieces, tags), min_size=1, max_size=4)
plus_signs = st.just([("+", "sy")])
sentences = st.lists(words | plus_signs, min_size=1, max_size=5)


@given(st.lists(sentences, min_size=1, max_size=5))
def test_joined_morphemes_come_back_with_their_tags(treebank):
    text = ""
    for sentence in treebank:
        for number, word in enumerate(sentence, 1):
            morphemes, xpos = ("+".join(column) for column in zip(*word, strict=True))
            text += f"{number}\tw\t{morphemes}\tX\t{xpos}\t_\t0\t_\t_\t_\n"
        text += "\n"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "treebank.conllu"
        path.write_text(text, encoding="utf-8")
        found = list(read_morphemes(path))
    for read, sentence in zip(found, treebank, strict=True):
        pairs = [pair for word in sentence for pair in word]
        assert list(zip(read.tokens, read.tags, strict=True)) == pairs
