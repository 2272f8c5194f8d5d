"""Parts of speech."""

from pathlib import Path

from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.conllu import read_conllu
from elmokit.tasks.formats.morphemes import read_morphemes
from elmokit.tasks.tagging import TaggingTask
from elmokit.tasks.task import Tokenize


class PosTask(TaggingTask[TaggedSentence]):
    """Parts of speech from CoNLL-U: universal tags of words, or morphemes' tags from column 5."""

    name, suffixes = "pos", (".conllu",)
    all_units = ("words", "morphemes")

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        return list(read_conllu(path) if self.units == "words" else read_morphemes(path))
