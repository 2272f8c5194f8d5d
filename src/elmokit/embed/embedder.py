"""`Embedder`: sentences in, arrays out, in the same order."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.sentences_and_spans import SifStatistics, embed_sentences, embed_spans
from elmokit.embed.streaming import (
    DEFAULT_BATCH_TOKENS,
    EmbeddedSentence,
    StatePolicy,
    check_state_policy,
    stream_vectors,
)
from elmokit.embed.word_checks import WordChecks
from elmokit.errors import FormatError, InputError, needs_torch
from elmokit.inference.contexts import DistinctTokens
from elmokit.inference.device import Precision, check_precision, find_device, pick_device
from elmokit.inference.frozen_bilm import FrozenBiLM, warm_metadata, warm_state, warm_text
from elmokit.inference.layers_and_states import Layers, LSTMState, check_layers
from elmokit.kernels.library import set_num_threads
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.card import result_metadata
from elmokit.weights.locate import find_model, lasting_name
from elmokit.weights.stored_bilm import LoadedBiLM, StoredBiLM, read_bilm


class Embedder:
    """Turn sentences into contextual word vectors.

    A sentence gets the same vectors in any batch: LSTM state is an argument (`embed_batch`) or a
    policy (``state=``), never something the object remembers.

    Args:
        model: Neither moved nor changed. Its weights are copied: later changes have no effect.
        device: As in `load`.
        precision: Arithmetic of the matrix products: ``"fp32"``, ``"bf16"`` or ``"int8"``.
        word_cache: Keep token vectors between calls (64 MB at most).
    """

    def __init__(
        self, model: LoadedBiLM, *, device: Any = "auto", precision: Precision | str = "fp32",
        word_cache: bool = True,
    ) -> None:  # fmt: skip
        if not isinstance(model, LoadedBiLM):
            raise TypeError(f"Embedder.load({model!r}) reads a model by its directory or name.")
        self._model: LoadedBiLM | None = model
        self._model_dir: Path | None = None  # of a model that was loaded by directory or name
        self._device, self._word_cache = str(device), word_cache
        self.num_layers, self.dim = model.num_layers, model.output_dim
        self.tokenizer_config = model.tokenizer
        self.normalization: Normalization = model.config.char_vocab.normalization
        self._stored_text = model.warm_text
        self.word_vocab = model.word_vocab
        self._sif: dict[Layers, SifStatistics] = {}
        stored = model.stored()
        with ThreadPoolExecutor(1) as pool:  # hashed while the weights are packed
            model_hash = pool.submit(stored.model_hash)
            self._bilm = FrozenBiLM(
                stored, device=find_device(device), precision=check_precision(precision),
                word_cache=word_cache,
            )  # fmt: skip
        self._model_hash = model_hash.result()
        self._fingerprint = model.fingerprint(self._model_hash)
        self.precision: Precision = self._bilm.engine.precision
        self._checks = WordChecks(
            model.tokenizer.name, model.char_vocab, model.word_vocab,
            by_characters=model.config.char_cnn is not None,
        )  # fmt: skip

    @classmethod
    def load(
        cls, model: str | PathLike[str] | LoadedBiLM | None = None, *, device: str = "auto",
        precision: Precision | str = "fp32", num_threads: int | None = None,
        word_cache: bool = True,
    ) -> "Embedder":  # fmt: skip
        """Load a model for embedding.

        Args:
            model: Directory, name or loaded model; default: the model in the package.
            device: A torch device; ``"auto"`` is CUDA if available, else the CPU.
            precision: As for the class.
            num_threads: CPU threads of the whole process; default: unchanged.
            word_cache: As for the class.

        Raises:
            FileNotFoundError: if there is no such model.
            FormatError: if its directory is damaged.
        """
        if num_threads is not None:
            if num_threads < 1:
                raise InputError(f"`num_threads` must be at least 1, got {num_threads}.")
            set_num_threads(num_threads)
        options: Any = {"device": device, "precision": precision, "word_cache": word_cache}
        if isinstance(model, LoadedBiLM):
            return cls(model, **options)
        model_dir = find_model(model)
        embedder = cls(read_bilm(model_dir), **options)
        embedder._model_dir = model_dir.absolute()
        embedder._model = None  # the engine has its own weights: these would only take up memory
        return embedder

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a loaded embedder as its directory and hash, others with the model.

        The directory must hold the same model wherever it is unpickled. Packed weights and caches
        are made again; the device ``auto`` is chosen anew.
        """
        options = {
            "device": self._device, "precision": self.precision, "word_cache": self._word_cache
        }  # fmt: skip
        return _rebuild, (self._model_dir or self._model, self._fingerprint, options)

    def __repr__(self) -> str:
        name = repr(lasting_name(self._model_dir)) if self._model_dir else "a model in memory"
        device = self._bilm.engine.device
        return (
            f"Embedder({name}: {self.num_layers} layers of {self.dim}, {self.precision} on "
            f"{device}, tokenizer {self.tokenizer_config}, normalization {self.normalization})"
        )

    @property
    def model(self) -> Any:
        """The `PretrainedBiLM`, made of `stored` on first access, which takes PyTorch."""
        if self._model is None or isinstance(self._model, StoredBiLM):
            with needs_torch():
                modules = import_module("elmokit.weights.model_dir")
            self._model = modules.as_modules(self.stored())
        return self._model

    def stored(self) -> StoredBiLM:
        """Return the model as arrays, read again if it was loaded by its directory or name."""
        if self._model is not None:
            return self._model.stored()
        assert self._model_dir is not None
        model = read_bilm(self._model_dir)
        _check_unchanged(self._model_dir, model.fingerprint(), self._fingerprint)
        return model

    @property
    def device(self) -> Any:
        """The `torch.device` where vectors are computed."""
        return pick_device(self._bilm.engine.device)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, for sentences given as strings; it sees normalized text."""
        return NormalizingTokenizer(build_tokenizer(self.tokenizer_config), self.normalization)

    def embed(
        self,
        sentences: Iterable[GivenSentence],
        *,
        layers: Layers | str = "all",
        state: StatePolicy | str = "reset",
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        progress: bool = False,
    ) -> list[np.ndarray]:
        """Return the vectors of every sentence, in the order given.

        Args:
            sentences: Lists of words, or strings, which the model's tokenizer splits. In a list
                any string is one word: characters that UTF-8 cannot encode are dropped, and an
                empty word consists of its two boundary characters.
            layers: ``"all"``, ``"top"``, ``"average"`` (plain mean) or the number of a layer; 0 is
                the token layer.
            state: ``"reset"`` starts every sentence at zero; ``"carry"`` reads the input as one
                running text (slower); ``"warm"`` starts every sentence from one fixed state, the
                average after some neutral text.
            batch_tokens: Positions computed together; affects memory and speed, not the result.
            progress: Show a progress bar on stderr.

        Returns:
            float32 arrays: (L, W, 2D) with all layers, else (W, 2D); an empty sentence has W = 0.

        Raises:
            TypeError: if ``sentences`` is one string, or a sentence holds anything but strings.
            ValueError: for an invalid option, or a string with NUL or half a surrogate pair.
        """
        stream = self.embed_stream(sentences, layers=layers, state=state, batch_tokens=batch_tokens)
        if not progress:
            return list(stream)
        from rich.console import Console
        from rich.progress import track

        total = len(sentences) if isinstance(sentences, Sequence) else None
        return list(track(stream, "embedding", total=total, console=Console(stderr=True)))

    def embed_stream(
        self,
        sentences: Iterable[GivenSentence],
        *,
        layers: Layers | str = "all",
        state: StatePolicy | str = "reset",
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> Iterator[np.ndarray]:
        """Yield what `embed` returns; memory does not depend on the number of sentences."""
        stream = self.stream(sentences, layers=layers, state=state, batch_tokens=batch_tokens)
        return (sentence.vectors for sentence in stream)

    embed_sentences = embed_sentences
    embed_spans = embed_spans

    def sif_statistics(self, layers: Layers | str) -> SifStatistics:
        """Return what SIF knows of this model's words, measured when it is first asked for."""
        which = check_layers(layers, self.num_layers)
        if which not in self._sif:
            self._sif[which] = SifStatistics.of_vocabulary(self, which)
        return self._sif[which]

    def embed_batch(
        self,
        sentences: Sequence[GivenSentence],
        *,
        layers: Layers | str = "all",
        state: Any = None,
    ) -> tuple[list[np.ndarray], LSTMState]:
        """Embed a batch whose row *k* continues from row *k* of ``state``, as the original does.

        Return the vectors of each sentence, and the state for the next call. Rows of ``state``
        beyond the batch stay unchanged; new rows start at zero, as all do by default. A `BiLMState`
        may be given, too.
        """
        if state is not None and not hasattr(state, "hidden"):
            raise InputError(
                f"`state` of embed_batch is what its last call returned, or None, got {state!r}."
            )
        which = check_layers(layers, self.num_layers)
        words = self._tokenized(sentences)
        vectors, tokens = self._encode(list(words))
        before = None if state is None else LSTMState.of(state)
        out = self._bilm.engine.run(vectors, tokens.sentences, layers=which, state=before)
        return out.vectors, out.state

    def stream(
        self,
        sentences: Iterable[GivenSentence],
        *,
        layers: Layers | str = "all",
        state: StatePolicy | str = "reset",
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        initial_state: LSTMState | None = None,
    ) -> Iterator[EmbeddedSentence]:
        """Like `embed_stream`, but yield words, vectors and the state after them, to resume from.

        The state is None unless ``state`` is ``"carry"``; ``initial_state`` (one row) then is the
        state to continue from.
        """
        which = check_layers(layers, self.num_layers)
        policy = check_state_policy(state)
        if initial_state is not None and (policy != "carry" or initial_state.num_rows != 1):
            raise InputError('`initial_state` is for state="carry", and must hold one row.')
        if batch_tokens < 1:
            raise InputError(f"`batch_tokens` must be at least 1, got {batch_tokens}.")
        words = self._tokenized(sentences)
        return stream_vectors(
            words, self._bilm.engine, self._encode, layers=which, batch_tokens=batch_tokens,
            start=self._warm_state if policy == "warm" else initial_state, carry=policy == "carry",
        )  # fmt: skip

    def metadata(
        self, *, layers: Layers | np.integer | str = "all", state: StatePolicy | str = "reset"
    ) -> dict[str, Any]:
        """Return how the vectors are made: model, text processing, options, versions; JSON-able."""
        metadata = {
            **result_metadata(self._model_hash, self.tokenizer_config, self.normalization),
            "layers": check_layers(layers, self.num_layers),
            "state": state,
            "precision": self.precision,
            "computed_by": self._bilm.engine.computed_by,
            "dtype": "float32",
            "num_layers": self.num_layers,
            "dim": self.dim,
        }
        if state == "warm":
            metadata |= warm_metadata(warm_text(self._stored_text))
        return metadata

    def _tokenized(self, sentences: Iterable[GivenSentence]) -> Iterator[list[str]]:
        return split_sentences(sentences, self.tokenizer.tokenize)

    def _encode(self, sentences: list[list[str]]) -> tuple[np.ndarray, DistinctTokens]:
        vectors, tokens = self._bilm.encode(sentences)
        self._checks.tell(tokens)
        return vectors, tokens

    @cached_property
    def _warm_state(self) -> LSTMState:
        model = self._model or self.stored()  # which keeps none for this
        return warm_state(FrozenBiLM(model), warm_text(self._stored_text))


def _rebuild(source: Any, fingerprint: str, options: dict[str, Any]) -> Embedder:
    """Make an embedder of what `Embedder.__reduce__` returns."""
    embedder = Embedder.load(source, **options)
    if isinstance(source, Path):
        _check_unchanged(source, embedder._fingerprint, fingerprint)
    return embedder


def _check_unchanged(model_dir: Path, fingerprint: str, expected: str) -> None:
    if fingerprint != expected:
        raise FormatError(f"{model_dir} has changed since it was loaded. Call Embedder.load again.")
