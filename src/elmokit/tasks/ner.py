"""Named entities."""

from dataclasses import replace
from pathlib import Path

from elmokit.metrics.span_f1 import convert_tags
from elmokit.tasks.formats.conll import TaggedSentence, read_columns
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.tagging import SpanTaggingTask
from elmokit.tasks.task import Tokenize


class NerTask(SpanTaggingTask[TaggedSentence]):
    """Named entities, from columns of words and IOB2 tags; BIOUL inside."""

    name, field_names = "ner", ("entities", "type")
    paper_inputs = InputSettings(layer_l2=0.1, dropout=0.0)
    default_hidden_dims = (200, 100)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        sentences = read_columns(path, spaces="drop")
        return [replace(s, tags=tuple(convert_tags(s.tags, scheme="bioul"))) for s in sentences]

    def gold(self, example: TaggedSentence) -> list[str]:
        return convert_tags(example.tags, scheme="iob2")
