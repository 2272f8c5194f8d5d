"""What a task reads of a biLM: layers, tokenizer, character rows; or the biLM, to fine-tune it."""

import dataclasses
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmokit.config import to_dict
from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.evaluation.text_scorer import StartState
from elmokit.tasks.inputs.layer_cache import Sentence, SentenceLayers, keep_layers
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.locate import find_model, lasting_name
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

RANDOM_SEED = 0
"""Of the untrained biLM."""
OnLayers = Callable[[int, int], None]
"""Called with the number of sentences done and in total."""


@dataclass(frozen=True, kw_only=True)
class BiLMReference:
    """The biLM that a task model reads."""

    path: str
    """Model directory, or the name of a bundled model."""
    model_hash: str
    """`PretrainedBiLM.model_hash`, of the weights as they were read."""
    precision: str = "fp32"
    """Arithmetic of its layers."""
    finetuned: bool = False
    """Whether it was trained with the task, and its weights are saved with the run."""
    tokenizer: TokenizerConfig | None = None
    """This and ``char_vocab`` are what conditions that need no biLM read of it; none: unknown."""
    char_vocab: CharVocabConfig | None = None

    def what_is_read(self, *, is_needed: bool) -> Any:
        """Return, as plain data, what identifies the parts of it that a task model reads.

        ``is_needed`` is `ConditionInputs.needs_bilm`.
        """
        if is_needed or self.tokenizer is None:
            return self.model_hash
        return {"tokenizer": to_dict(self.tokenizer), "char_vocab": to_dict(self.char_vocab)}

    def difference(self, other: "BiLMReference", *, is_needed: bool) -> str | None:
        """Return how another biLM differs in what a task model reads, or none.

        ``is_needed`` is `ConditionInputs.needs_bilm`.
        """
        if is_needed or self.tokenizer is None:
            what, mine, others = "hash", self.model_hash, other.model_hash
        else:
            what, mine, others = "tokenizer", self._reads(), other._reads()
        return None if mine == others else f"its {what} is {others}, not {mine}"

    def _reads(self) -> str:
        """Return how text is split and spelled, to compare and to show."""
        settings = {} if self.char_vocab is None else dataclasses.asdict(self.char_vocab)
        return ", ".join(
            [str(self.tokenizer), *(f"{key}={value}" for key, value in settings.items())]
        )


@dataclass(frozen=True, eq=False)
class TaskBiLM:
    """A biLM as a task sees it.

    Conditions without layers only have its tokenizer and width, or a plain tokenizer. Use
    `TaskBiLM.open`. ``module`` is the biLM itself if it is trained with the task; its layers
    are not kept then.
    """

    tokenizer: Tokenizer
    char_vocab: CharVocab
    dim: int = 0
    """Width of the layers, 2D; 0 without a biLM."""
    embedder: Embedder | None = None
    module: PretrainedBiLM | None = None
    state: StartState = "reset"
    """What every sentence starts from."""
    reference: BiLMReference | None = None
    cache_dir: Path | None = None
    on_layers: OnLayers | None = None

    @property
    def num_layers(self) -> int:
        """Layers that a mixture has; 0 if no biLM is read."""
        bilm = self.embedder or self.module
        return 0 if bilm is None else bilm.num_layers

    @classmethod
    def open(
        cls,
        settings: InputSettings,
        model: str | None,
        *,
        precision: str = "fp32",
        finetune: bool = False,
        device: str | torch.device = "cpu",
        cache_dir: Path | None = None,
        on_layers: OnLayers | None = None,
    ) -> "TaskBiLM":
        """Load what the condition needs.

        Args:
            settings: With the condition.
            model: Directory or name of a model; none: the English one in the package, where the
                condition needs a biLM.
            precision: Of the layers.
            finetune: Whether the biLM is trained with the task.
            device: Where it computes.
            cache_dir: Where layers are kept.
            on_layers: Called while layers are computed.
        """
        if finetune:
            _check_finetuning(settings, precision)
        if not settings.has_layers:
            if precision != "fp32":
                log.warning(
                    "precision %s has no effect: embeddings=%s reads no biLM",
                    precision, settings.embeddings,
                )  # fmt: skip
            if model is None and not settings.sources.needs_bilm:
                char_vocab = CharVocab(CharVocabConfig(normalization="NFC"))
                return cls(build_tokenizer("simple"), char_vocab)
        path = find_model(model)
        loaded = load_model(path)
        if settings.embeddings == "random":
            loaded.reset_parameters(torch.Generator().manual_seed(RANDOM_SEED))
        reference = BiLMReference(
            path=lasting_name(path), model_hash=loaded.model_hash(), precision=precision,
            finetuned=finetune, tokenizer=loaded.tokenizer, char_vocab=loaded.config.char_vocab,
        )  # fmt: skip
        embedder = None
        if finetune:
            loaded = loaded.encoder()
        elif settings.has_layers:
            embedder = Embedder(loaded, device=device, precision=precision)
        tokenizer = NormalizingTokenizer(
            build_tokenizer(loaded.tokenizer), loaded.config.char_vocab.normalization
        )
        return cls(
            tokenizer, CharVocab(loaded.config.char_vocab), dim=loaded.output_dim,
            embedder=embedder, module=loaded if finetune else None, state=settings.state,
            reference=reference, cache_dir=cache_dir, on_layers=on_layers,
        )  # fmt: skip

    @property
    def keep(self) -> Callable[..., SentenceLayers] | None:
        """Function that returns the kept layers of sentences; none if there are no layers.

        Its second argument is ``within`` of `keep_layers`.
        """
        if self.embedder is None:
            return None
        embedder = self.embedder
        return lambda sentences, within=(): keep_layers(
            embedder, sentences, self.cache_dir, state=self.state, within=within,
            on_progress=self.on_layers,
        )  # fmt: skip

    @property
    def compute(self) -> Callable[[list[Sentence]], Sequence[np.ndarray]] | None:
        """`keep` without keeping: for sentences that are read once."""
        if self.embedder is None:
            return None
        embedder = self.embedder
        return lambda sentences: [
            vectors.transpose(1, 0, 2)
            for vectors in embedder.embed([list(s) for s in sentences], state=self.state)
        ]


def _check_finetuning(settings: InputSettings, precision: str) -> None:
    if not settings.has_layers or precision != "fp32" or settings.state != "reset":
        raise InputError(
            "With train.finetune_bilm=true a biLM is read, in fp32 and every sentence from a zero "
            f"state, got embeddings={settings.embeddings!r}, {precision} and inputs.state="
            f"{settings.state!r}. Take embeddings=elmo without --precision and inputs.state, or "
            "leave out train.finetune_bilm=true."
        )
