"""What a task reads of a biLM: layers, tokenizer, character rows."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.config import to_dict
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.inference.device import import_torch
from elmokit.inference.layers_and_states import StartState
from elmokit.tasks.inputs.layer_cache import OnLayers, Sentence, SentenceLayers, keep_layers
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.locate import MODELS, find_model, lasting_name, path_of
from elmokit.weights.model_files import read_config
from elmokit.weights.stored_bilm import read_bilm

log = logging.getLogger(__name__)

RANDOM_SEED = 0  # of the untrained biLM
LayersOf = Callable[[Sequence[Sentence]], SentenceLayers | Sequence[np.ndarray]]
"""Returns the layers of each sentence, (W, L, 2D)."""


@dataclass(frozen=True, kw_only=True)
class BiLMReference:
    """The biLM that a task model reads."""

    path: str  # model directory, or the name of a bundled model
    model_hash: str  # `PretrainedBiLM.model_hash`, of the weights as they were read
    precision: str = "fp32"  # arithmetic of its layers
    tokenizer: TokenizerConfig | None = None
    """This and ``char_vocab`` are what conditions that need no biLM read of it; none: unknown."""
    char_vocab: CharVocabConfig | None = None

    def what_is_read(self, *, is_needed: bool) -> Any:
        """Return, as plain data, what identifies the parts of it that a task model reads."""
        if is_needed or self.tokenizer is None:
            return self.model_hash
        return {"tokenizer": to_dict(self.tokenizer), "char_vocab": to_dict(self.char_vocab)}


@dataclass(frozen=True, eq=False)
class TaskBiLM:
    """A biLM as a task sees it; conditions without layers have its tokenizer and width alone."""

    tokenizer: Tokenizer
    char_vocab: CharVocab
    dim: int = 0  # width of the layers, 2D; 0 without a biLM
    embedder: Embedder | None = None
    state: StartState = "reset"
    reference: BiLMReference | None = None
    cache_dir: Path | None = None
    on_layers: OnLayers | None = None

    @property
    def num_layers(self) -> int:
        return 0 if self.embedder is None else self.embedder.num_layers

    @classmethod
    def open(
        cls,
        settings: InputSettings,
        model: str | None,
        *,
        precision: str = "fp32",
        device: str = "cpu",
        cache_dir: Path | None = None,
        on_layers: OnLayers | None = None,
    ) -> "TaskBiLM":
        """Load what the condition needs; by default of the English model in the package."""
        if precision != "fp32" and not settings.has_layers:
            log.warning("precision %s has no effect: no biLM is read", precision)
        if model is None and not settings.sources.needs_bilm:
            char_vocab = CharVocab(CharVocabConfig(normalization="NFC"))
            # that of all runs without a biLM, whenever they were trained
            return cls(build_tokenizer(TokenizerConfig(name="simple", version="2")), char_vocab)
        path = find_model(model)
        loaded: Any = None
        config, embedder = read_config(path), None
        if settings.embeddings == "random":
            torch = import_torch()
            loaded = import_module("elmokit.weights.model_dir").load_model(path)
            loaded.reset_parameters(torch.Generator().manual_seed(RANDOM_SEED))
        if settings.has_layers:
            embedder = Embedder.load(loaded or path, device=device, precision=precision)
            model_hash = embedder.metadata()["model_hash"]
        else:
            model_hash = read_bilm(path).model_hash()
        char_vocab = config.bilm.char_vocab
        reference = BiLMReference(
            path=lasting_name(path), model_hash=model_hash, precision=precision,
            tokenizer=config.tokenizer, char_vocab=char_vocab,
        )  # fmt: skip
        tokenizer = build_tokenizer(config.tokenizer)
        return cls(
            NormalizingTokenizer(tokenizer, char_vocab.normalization), CharVocab(char_vocab),
            dim=2 * config.bilm.lstm.projection_dim, embedder=embedder, state=settings.state,
            reference=reference, cache_dir=cache_dir, on_layers=on_layers,
        )  # fmt: skip

    def layers_of(self, *, kept: bool) -> LayersOf | None:
        """Return the function that computes layers, and keeps them or not; none without layers."""
        embedder, state = self.embedder, self.state
        if embedder is None:
            return None
        if kept:
            return lambda sentences: keep_layers(
                embedder, sentences, self.cache_dir, state=state, on_progress=self.on_layers
            )
        return lambda sentences: [
            vectors.transpose(1, 0, 2)
            for vectors in embedder.embed([list(words) for words in sentences], state=state)
        ]


def reopen_bilm(
    reference: BiLMReference | None,
    model: str | None,
    run_dir: Path,
    settings: InputSettings,
    *,
    precision: str | None,
    **options: Any,
) -> TaskBiLM:
    """Open the biLM that a run was trained with, at ``model`` if it has moved."""
    is_needed = settings.sources.needs_bilm
    if model is not None and not (reference or is_needed):
        log.warning("the biLM %s has no effect: %s was trained without one", model, run_dir)
        model = None
    if model is None and reference is not None:
        try:
            model = str(MODELS.find(path_of(reference.path)))
        except FileNotFoundError as error:
            error.add_note(
                f"{run_dir} was trained with this biLM. If it has moved: `elmokit predict` and "
                "`evaluate` take --model DIR, in Python TaskRun.load(…, model=DIR)."
            )
            raise
    precision = precision or (reference.precision if reference else "fp32")
    bilm = TaskBiLM.open(settings, model, precision=precision, **options)
    if reference is not None and bilm.reference is not None:
        is_needed = is_needed or reference.tokenizer is None
        mine = reference.what_is_read(is_needed=is_needed)
        other = bilm.reference.what_is_read(is_needed=is_needed)
        if mine != other:
            what = "hash is" if is_needed else "tokenizer and spelling are"
            raise FormatError(
                f"{model} is not the biLM that {run_dir} was trained with: its {what} {other}, "
                f"not {mine}. Give the right one with --model, or train the task again."
            )
        # the model hash does not cover the tokenizer
        own_tokenizer, tokenizer = reference.tokenizer, bilm.reference.tokenizer
        if own_tokenizer and tokenizer and not own_tokenizer.matches(tokenizer):
            raise FormatError(
                f"{model} splits text with {tokenizer}, but the biLM of {run_dir} with "
                f"{own_tokenizer}. Give the right one with --model, or train the task again."
            )
    return bilm
