"""Morphemes of a CoNLL-U file whose words are eojeol, as in the Korean treebanks."""

import os
from collections.abc import Iterator

from elmokit.tasks.formats.conll import TaggedSentence, read_conllu
from elmokit.tasks.formats.reading import shown

JOINT = "+"


def read_morphemes(path: str | os.PathLike[str]) -> Iterator[TaggedSentence]:
    """Yield sentences of morphemes with their tags, from ``고향+은`` and ``ncn+jxt``.

    Columns 3 (lemma) and 5 (language-specific tag) hold them, joined by ``+``, as in UD
    Korean-Kaist and Korean-GSD.

    Args:
        path: The file, plain or compressed.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, where a word has not as many morphemes as tags, and for what
            `read_conllu` refuses.
    """
    return _divided(read_conllu(path, column="lemma"), read_conllu(path, column="xpos"))


def _divided(
    by_word: Iterator[TaggedSentence], tags_by_word: Iterator[TaggedSentence]
) -> Iterator[TaggedSentence]:
    for words, tagged in zip(by_word, tags_by_word, strict=True):
        tokens: list[str] = []
        tags: list[str] = []
        for word, joined_tags in zip(words.tags, tagged.tags, strict=True):
            own_tags = joined_tags.split(JOINT)
            morphemes = [word] if len(own_tags) == 1 else word.split(JOINT)
            if len(morphemes) != len(own_tags) or not all(morphemes) or not all(own_tags):
                raise words.place.error(
                    f"a word of this sentence has the morphemes {shown(word)} and the tags "
                    f"{shown(joined_tags)}: columns 3 and 5 must hold as many of one as of the "
                    f"other, joined by '{JOINT}'. Read the file by words (units = \"words\")."
                )
            tokens += morphemes
            tags += own_tags
        yield TaggedSentence(
            tokens=tuple(tokens), tags=tuple(tags), comments=words.comments, place=words.place
        )
