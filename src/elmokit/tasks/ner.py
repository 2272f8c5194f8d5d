"""Named entities."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from elmokit.metrics.span_f1 import convert_tags, read_spans, write_tags
from elmokit.tasks.formats.characters import (
    TaggedCharacters,
    read_characters,
    spans_of_characters,
)
from elmokit.tasks.formats.conll import TaggedSentence, find_scheme, read_columns
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.tagging import SpanTaggingTask
from elmokit.tasks.task import Tokenize
from elmokit.text.alignment import align

log = logging.getLogger(__name__)

SCHEME_NAMES = {"iob1": "IOB1", "bioul": "BIOUL or IOBES"}


class NerTask(SpanTaggingTask[TaggedSentence]):
    """Named entities, from columns of words or characters and their tags; BIOUL inside.

    Tags of words are IOB1, IOB2, BIOUL or IOBES, by the file; those of characters IOB2.

    Characters are read as the tokens that the tokenizer makes of their text, but scored as they
    are: an entity whose boundary is inside a token cannot be found.
    """

    name, field_names = "ner", ("entities", "type")
    all_units, has_columns = ("words", "characters"), True
    paper_inputs = InputSettings(layer_l2=0.1, dropout=0.0)
    default_hidden_dims = (200, 100)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        if self.units == "characters":
            sentences: Iterator[TaggedSentence] = read_characters(path, tokenize, self.columns)
        else:
            scheme = find_scheme(path, self.columns)
            if scheme != "iob2":
                log.info("%s: the tags are %s", path, SCHEME_NAMES[scheme])
            sentences = read_columns(path, columns=self.columns, scheme=scheme, spaces="drop")
        return [replace(s, tags=tuple(convert_tags(s.tags, scheme="bioul"))) for s in sentences]

    def gold(self, example: TaggedSentence) -> list[str]:
        if isinstance(example, TaggedCharacters):
            return list(example.character_tags)
        return convert_tags(example.tags, scheme="iob2")

    def in_units_of_gold(self, example: TaggedSentence, prediction: list[str]) -> list[str]:
        if not isinstance(example, TaggedCharacters):
            return prediction
        assert example.text is not None
        offsets = align(example.tokens, example.text)
        assert offsets is not None  # `read_characters` found them
        spans = spans_of_characters(read_spans(prediction), offsets)
        return write_tags(spans, len(example.text), scheme="iob2")
