"""Morphemes of Korean CoNLL-U treebanks, whose words are eojeol."""

from collections.abc import Iterator

from elmokit.files.atomic import StrPath
from elmokit.files.location import shown
from elmokit.files.sources import existing_file
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.conllu import read_conllu

JOINT = "+"
NOTHING = "_"
"""Marks an empty column in CoNLL-U."""


def read_morphemes(path: StrPath) -> Iterator[TaggedSentence]:
    """Yield sentences of morphemes with their tags, from ``고향+은`` and ``ncn+jxt``.

    Columns 3 (lemma) and 5 (language-specific tag) hold them, joined by ``+``, as in UD
    Korean-Kaist and Korean-GSD; a lone plus sign is a word. The file is read twice, once per
    column.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        InputError: at once, for standard input or a pipe.
        FormatError: while reading, if a word has no morphemes or a different number of tags, and
            for whatever `read_conllu` rejects.
    """
    found = existing_file(path, what="task data", is_read_twice=True)
    return _divided(read_conllu(found, column="lemma"), read_conllu(found, column="xpos"))


def _divided(
    by_word: Iterator[TaggedSentence], tags_by_word: Iterator[TaggedSentence]
) -> Iterator[TaggedSentence]:
    for words, tagged in zip(by_word, tags_by_word, strict=True):
        tokens: list[str] = []
        tags: list[str] = []
        for word, joined, joined_tags in zip(words.tokens, words.tags, tagged.tags, strict=True):
            morphemes, own_tags = _divide(joined), _divide(joined_tags)
            if joined == JOINT:  # its tag may be incomplete: "+SW"
                own_tags = [tag for tag in own_tags if tag]
            elif len(own_tags) == 1:  # a word that contains a plus sign
                morphemes = [joined]
            is_missing = joined == NOTHING != word
            if is_missing or len(morphemes) != len(own_tags) or not all(morphemes + own_tags):
                raise words.location.error(
                    f"the word {shown(word)} of this sentence has morphemes {shown(joined)} and "
                    f"the tags {shown(joined_tags)}: columns 3 and 5 must hold one tag for each "
                    f"morpheme, joined by '{JOINT}'. Read the file by words (units=words)."
                )
            tokens += morphemes
            tags += own_tags
        yield TaggedSentence(tokens=tuple(tokens), tags=tuple(tags), location=words.location)


def _divide(joined: str) -> list[str]:
    return [joined] if joined == JOINT else joined.split(JOINT)
