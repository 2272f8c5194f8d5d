"""The sizes of the tasks in the experiments: one table, the same for every condition.

Chosen so that a run takes some two to fourteen minutes of one CPU thread;
`docs/guides/experiments.md` has the reasons and the times.
"""

import math
from dataclasses import dataclass
from typing import Any

from elmokit.tasks.task import Units

MAX_EPOCHS, MAX_PATIENCE = 100, 20
"""Of runs with few labels."""
SCHEDULE = "cosine"
"""Of the learning rate: with it the last of few epochs brings little more."""
LOW_DROPOUT = 0.2
"""For a network of a third of the paper's width that is trained for minutes: better than a half,
with static vectors and with ELMo. The Korean taggers were not tried with it."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """How a task is trained in the experiments, and on what."""

    task: str
    dataset: str
    """Folder with a train… and a dev… file."""
    content: str
    """What stands in them, for whoever has to fetch it."""
    hidden_dims: tuple[int, ...]
    """Widths of the recurrent layers."""
    dropout: float | None = None
    """Of the network; none: the task's own."""
    epochs: int
    """Most passes; all conditions and shares alike."""
    batch_size: int = 32
    learning_rate: float = 2e-3
    patience: int = 4
    max_train: int | None = None
    """Sentences, trees, pairs, questions or documents drawn from the training set; none: all."""
    max_dev: int | None = None
    """The same of the dev set."""
    units: Units = "words"
    """What a token of the data is."""
    subset: str = "all"
    """Part of the examples that is kept, one of the task's `Task.subsets`."""
    shares: tuple[float, ...] | None = None
    """Label shares of this task, where an experiment would use more."""

    def to_config(self, share: float = 1.0) -> dict[str, Any]:
        """Return what `TaskRunConfig` reads, before a condition changes it.

        Fewer labels get more passes, for fewer updates are in one: ``1 / sqrt(share)`` times as
        many, up to `MAX_EPOCHS`, and as much more patience.

        Args:
            share: Of the labels.
        """
        scale = 1 / math.sqrt(share)
        return {
            "task": self.task,
            "units": self.units,
            "hidden_dims": list(self.hidden_dims),
            "dropout": self.dropout,
            "inputs": {},
            "train": {
                "epochs": max(self.epochs, min(MAX_EPOCHS, round(scale * self.epochs))),
                "batch_size": self.batch_size,
                "learning_rate": self.learning_rate,
                "schedule": SCHEDULE,
                "patience": max(self.patience, min(MAX_PATIENCE, round(scale * self.patience))),
                "label_share": share,
            },
        }


NER = TaskSettings(
    task="ner", dataset="ner-en-uner-ewt",
    content="Universal NER, English-EWT: a word, a tab, its IOB2 tag",
    hidden_dims=(100,), dropout=LOW_DROPOUT, epochs=10, learning_rate=3e-3, max_train=4000,
)  # fmt: skip
SRL = TaskSettings(
    task="srl", dataset="srl-en-propbank-ewt",
    content="PropBank on English-EWT: JSON lines of tokens, pos, predicates",
    hidden_dims=(128,) * 4, epochs=8, max_train=2000, max_dev=600, subset="verbs",
)  # fmt: skip
SENTIMENT = TaskSettings(
    task="sentiment", dataset="sst-5", content="the trees of SST-5, as .txt or .txt.gz",
    hidden_dims=(100,), epochs=2, batch_size=64,
)  # fmt: skip
NLI = TaskSettings(
    task="nli", dataset="nli-snli-sample",
    content="SNLI pairs: JSON lines of premise, hypothesis, label",
    hidden_dims=(100,), dropout=LOW_DROPOUT, epochs=4, learning_rate=1e-3, max_train=10_000,
)  # fmt: skip
QA = TaskSettings(
    task="qa", dataset="squad-v1.1", content="SQuAD 1.1 as its authors' JSON",
    hidden_dims=(50,), epochs=5, learning_rate=3e-3, max_train=2000, max_dev=600,
)  # fmt: skip
COREF = TaskSettings(
    task="coref", dataset="coref-en-litbank", content="LitBank in the CoNLL-2012 format",
    hidden_dims=(100,), epochs=8, batch_size=1, max_train=60,
)  # fmt: skip
ENGLISH = (NER, SRL, SENTIMENT, NLI, QA, COREF)
"""The six tasks of the paper."""

KOREAN = (
    TaskSettings(
        task="pos", dataset="ud-ko-kaist", content="UD Korean-Kaist, CoNLL-U", units="morphemes",
        hidden_dims=(100,), epochs=8, learning_rate=3e-3, max_train=4000,
    ),
    TaskSettings(
        task="ner", dataset="ner-ko-kmou",
        content="KMOU NER by morphemes: surface, morpheme, part of speech, IOB2 tag",
        hidden_dims=(100,), epochs=10, learning_rate=3e-3, max_train=4000,
    ),
    TaskSettings(
        task="sentiment", dataset="nsmc-rebuilt-ko", content="NSMC: TSV with id, document, label",
        hidden_dims=(100,), epochs=4, batch_size=64, max_train=10_000, max_dev=2000,
    ),
    TaskSettings(
        task="nli", dataset="nli-klue-ko",
        content="KLUE-NLI: JSON lines of premise, hypothesis, label",
        hidden_dims=(100,), dropout=LOW_DROPOUT, epochs=4, learning_rate=1e-3, max_train=10_000,
        shares=(1.0,),
    ),
    TaskSettings(
        task="qa", dataset="korquad-v1.0", content="KorQuAD 1.0 as its authors' JSON",
        hidden_dims=(50,), epochs=5, learning_rate=3e-3, max_train=2000, shares=(1.0,),
    ),
)  # fmt: skip
