"""Sizes of the tasks in the experiments, the same for every condition, and the number of seeds.

All of the evidence takes about 42 hours of one core; `docs/results/protocol.md` has the estimate.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from elmokit.tasks.task import Units

MAX_EPOCHS, MAX_PATIENCE = 100, 20
"""Limits for runs with few labels."""
SEEDS, SHORT_SEEDS, CONTROL_SEEDS = 3, 5, 2
"""Seeds of a run; of English tasks whose runs with all labels take less than ten minutes (the time
does not allow it for the Korean ones); of control conditions."""
HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 1000
"""Part of a training set that is not trained on, but chooses learning rate and epoch; at most so
many examples."""
SCHEDULE = "cosine"
"""Learning-rate schedule; with it, the last of few epochs adds little."""
LOW_DROPOUT = 0.2
"""Better than 0.5 for networks a third of the paper's width, trained for minutes, with static
vectors and with ELMo. Not tried for the Korean taggers."""
INPUTS = {"characters": True, "static_scale": "learned"}
"""What all conditions of all tasks read alike: a character CNN, so that a biLM is not the only one
to spell unknown words, and static vectors on the scale of ELMo's mixtures."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """Training and data of a task in the experiments."""

    task: str
    dataset: str
    """Folder with one train… and one dev… file."""
    content: str
    """Content of the files, for error messages."""
    hidden_dims: tuple[int, ...]
    """Widths of the recurrent layers."""
    dropout: float | None = None
    """Dropout of the network; none: the task's default."""
    epochs: int
    """Maximum number of epochs with all labels."""
    batch_size: int = 32
    learning_rate: float = 2e-3
    patience: int = 4
    seeds: int = SEEDS
    """Seeds of a condition that is no control."""
    max_train: int | None = None
    """Training sentences, verbs, trees, pairs, questions or documents to draw, after those that are
    held out; none: all."""
    units: Units = "words"
    """Unit of a token in the data."""
    subset: str = "all"
    """Part of the examples to use, one of `Task.subsets`."""
    shares: tuple[float, ...] | None = None
    """The only label shares of this task; none: all of the experiment."""

    def to_config(self, share: float = 1.0) -> dict[str, Any]:
        """Return settings for `TaskRunConfig`, before the overrides of a condition.

        With fewer labels, an epoch has fewer updates: epochs and patience are multiplied by
        ``1 / sqrt(share)``, up to `MAX_EPOCHS` and `MAX_PATIENCE`.
        """
        scale = 1 / math.sqrt(share)
        return {
            "task": self.task, "units": self.units, "hidden_dims": list(self.hidden_dims),
            "dropout": self.dropout, "inputs": dict(INPUTS),
            "train": {
                "epochs": max(self.epochs, min(MAX_EPOCHS, round(scale * self.epochs))),
                "patience": max(self.patience, min(MAX_PATIENCE, round(scale * self.patience))),
                "batch_size": self.batch_size, "learning_rate": self.learning_rate,
                "schedule": SCHEDULE, "label_share": share,
            },
        }  # fmt: skip


NER = TaskSettings(
    task="ner", dataset="ner-en-uner-ewt",
    content="Universal NER, English-EWT: a word, a tab, its IOB2 tag",
    hidden_dims=(100,), dropout=LOW_DROPOUT, epochs=12, learning_rate=3e-3, seeds=SHORT_SEEDS,
)  # fmt: skip
SRL = TaskSettings(
    task="srl", dataset="srl-en-propbank-ewt",
    content="PropBank on English-EWT: JSON lines of tokens, pos, predicates",
    hidden_dims=(128,) * 4, epochs=8, max_train=15_000, subset="verbs",
)  # fmt: skip
SENTIMENT = TaskSettings(
    task="sentiment", dataset="sst-5", content="the trees of SST-5, as .txt or .txt.gz",
    hidden_dims=(100,), epochs=4, batch_size=64,
)  # fmt: skip
NLI = TaskSettings(
    task="nli", dataset="nli-snli-sample",
    content="SNLI pairs: JSON lines of premise, hypothesis, label",
    hidden_dims=(100,), dropout=LOW_DROPOUT, epochs=6, learning_rate=1e-3, seeds=SHORT_SEEDS,
)  # fmt: skip
QA = TaskSettings(
    task="qa", dataset="squad-v1.1", content="SQuAD 1.1 as its authors' JSON",
    hidden_dims=(75,), epochs=5, learning_rate=3e-3, max_train=8000,
)  # fmt: skip
COREF = TaskSettings(
    task="coref", dataset="coref-en-litbank", content="LitBank in the CoNLL-2012 format",
    hidden_dims=(100,), epochs=8, batch_size=1,
)  # fmt: skip
ENGLISH = (NER, SRL, SENTIMENT, NLI, QA, COREF)
"""The six tasks of the paper."""

KOREAN = (
    TaskSettings(
        task="pos", dataset="ud-ko-kaist", content="UD Korean-Kaist, CoNLL-U", units="morphemes",
        hidden_dims=(100,), epochs=8, learning_rate=3e-3, max_train=10_000,
    ),
    TaskSettings(
        task="ner", dataset="ner-ko-kmou",
        content="KMOU NER by morphemes: surface, morpheme, part of speech, IOB2 tag",
        hidden_dims=(100,), epochs=10, learning_rate=3e-3, max_train=8000,
    ),
    TaskSettings(
        task="sentiment", dataset="nsmc-rebuilt-ko", content="NSMC: TSV with id, document, label",
        hidden_dims=(100,), epochs=4, batch_size=64, max_train=15_000,
    ),
    replace(
        NLI, dataset="nli-klue-ko", content="KLUE-NLI: JSON lines of premise, hypothesis, label",
        epochs=5, seeds=SEEDS, max_train=15_000, shares=(1.0,),
    ),
    replace(
        QA, dataset="korquad-v1.0", content="KorQuAD 1.0 as its authors' JSON",
        epochs=6, seeds=1, shares=(1.0,),
    ),
)  # fmt: skip
"""NLI and QA are those of `ENGLISH` on other data, with all labels only."""
