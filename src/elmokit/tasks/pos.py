"""Parts of speech."""

from pathlib import Path

from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.conllu import is_comment, read_conllu
from elmokit.tasks.formats.morphemes import read_morphemes
from elmokit.tasks.sampling import DataFile, sentences_of
from elmokit.tasks.tagging import TaggingTask
from elmokit.tasks.task import Tokenize


class PosTask(TaggingTask[TaggedSentence]):
    """Parts of speech from CoNLL-U: universal tags of words, or morphemes' tags from column 5."""

    name, suffixes = "pos", (".conllu",)
    all_units = ("words", "morphemes")

    @staticmethod
    def divided_by(path: Path) -> DataFile:
        return sentences_of(path, is_comment=is_comment)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        return list(read_conllu(path) if self.units == "words" else read_morphemes(path))
