"""The ELMo layer of a task model: character ids in, learned mixtures of a biLM's layers out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLM, BiLMOutput, BiLMState
from elmokit.bilm.masking import lengths_of, mask_of
from elmokit.bilm.scalar_mix import LayerChoice, LayerMixes, LayerNorm
from elmokit.errors import InputError
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.layers_and_states import LSTMState
from elmokit.kernels.library import load_kernels, use_one_thread_after_a_fork
from elmokit.shapes import Bool, Float, Int
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.model_files import read_mixes
from elmokit.weights.stored_bilm import StoredBiLM

ORIGINAL_CHAR_VOCAB = CharVocabConfig(max_characters=50, normalization="none", truncation="byte")
"""How the original implementations turn words into characters."""


@dataclass(frozen=True)
class ELMoOutput:
    """What `ELMo` returns."""

    mixes: list[Float[Tensor, "B W E2"]]
    """``num_mixes`` mixtures, dropout applied."""
    mask: Bool[Tensor, "B W"]
    """True at real positions."""
    state: BiLMState
    """The biLM's memory after each row."""


class ELMo(LayerMixes):
    """Contextual word vectors for a task model.

    Adds the sentence boundaries, runs the biLM once, mixes its layers ``num_mixes`` times with
    separate weights, removes the boundaries and applies dropout. A frozen biLM in fp32 on the CPU
    runs through the compiled kernels, within 1e-5 of the plain modules on natural text.
    `torch.compile` leaves the biLM as it is and compiles the mixtures with the rest of the network.

    Its weights may change between calls, in place or by loading. A change through ``weight.data``
    or NumPy, which PyTorch does not count, is noticed if it reaches a whole tensor; if you change
    single values, do so under ``torch.no_grad()`` and without ``.data``.

    Saved with a network (``state_dict`` or ``torch.save``) it holds the biLM, so that the file is
    complete, but neither the softmax nor the vocabulary of its targets, which it cannot use. To
    load the state, build the network with the same model first.

    Args:
        model: The biLM, which shares its weights with this layer; its directory or name; default:
            the English model in the package. Frozen and in evaluation mode unless
            ``trainable_bilm``.
        num_mixes: This and ``layers``, ``dropout``, ``layer_norm``, ``l2``: see `LayerMixes`;
            default: one mixture, not normalized, or those of ``mixes``.
        trainable_bilm: Whether gradients reach the biLM.
        keep_boundaries: Return the positions of ``<S>`` and ``</S>`` too (W + 2 positions).
        mixes: File of trained mixtures, which says how many there are and how layers are
            normalized.

    Shape: char_ids (B, W, C) without boundaries, as from `elmokit.batch_to_ids` -> `ELMoOutput`.
    Source: Peters et al. 2018, sections 3.2 and 3.3.

    Raises:
        InputError: if ``num_mixes`` is below 1, an argument or the model does not fit ``mixes``,
            ``layer_norm="batch"`` has boundaries to keep, or a name is unknown.
    """

    def __init__(
        self,
        model: BiLM | str | PathLike[str] | None = None,
        *,
        num_mixes: int | None = None,
        layers: LayerChoice = "mix",
        dropout: float = 0.5,
        layer_norm: bool | LayerNorm | None = None,
        l2: float = 1e-3,
        trainable_bilm: bool = False,
        keep_boundaries: bool = False,
        mixes: str | PathLike[str] | None = None,
    ) -> None:
        use_one_thread_after_a_fork()
        if isinstance(layer_norm, bool):
            layer_norm = "token" if layer_norm else "none"
        if not isinstance(model, BiLM):
            model = load_model(model)
        trained = None if mixes is None else read_mixes(mixes)
        if trained is not None:
            stored = {
                "num_mixes": (num_mixes, len(trained.gammas)),
                "layer_norm": (layer_norm, trained.layer_norm),
                "layers of the model": (model.num_layers, trained.num_layers),
                "layers": (layers, "mix"),
            }
            for name, (value, expected) in stored.items():
                if value not in (None, expected):
                    raise InputError(f"`{name}` is {value!r}, but that of {mixes} is {expected!r}.")
            num_mixes, layer_norm = len(trained.gammas), trained.layer_norm
        num_mixes = 1 if num_mixes is None else num_mixes
        if num_mixes < 1:
            raise InputError(f"`num_mixes` must be at least 1, got {num_mixes}.")
        if layer_norm == "batch" and keep_boundaries:
            raise InputError("To keep boundaries, use layer_norm='batch_with_boundaries'.")
        super().__init__(
            model.num_layers, num_mixes=num_mixes, layers=layers, dropout=dropout,
            layer_norm="none" if layer_norm is None else layer_norm, l2=l2,
        )  # fmt: skip
        if trained is not None:
            self.set_mixes(torch.from_numpy(trained.mix_weights), torch.from_numpy(trained.gammas))
        self.bilm = model.encoder() if isinstance(model, PretrainedBiLM) else model
        self.trainable_bilm = trainable_bilm
        self.keep_boundaries = keep_boundaries
        self.bilm.requires_grad_(trainable_bilm)
        self._packed = PackedWeights()
        self.register_load_state_dict_pre_hook(_drop_softmax)
        self.train(self.training)

    def train(self, mode: bool = True) -> "ELMo":
        """Set the mode; a frozen biLM stays in evaluation mode."""
        super().train(mode)
        if not self.trainable_bilm:
            self.bilm.eval()
        return self

    def encode(
        self, sentences: Iterable[GivenSentence]
    ) -> Int[Tensor, "B W C"] | Int[Tensor, "B W"]:
        """Turn sentences into the input of `forward`, on the biLM's device.

        The model's tokenizer splits strings; lists are taken as words.

        Raises:
            ValueError: if a word-input model has no vocabulary, or a string is no text.
            TypeError: if ``sentences`` is one string, or a sentence holds anything but strings.
        """
        if isinstance(self.bilm, PretrainedBiLM):
            ids = self.bilm.encode(sentences, boundaries=False)
        else:
            ids = torch.from_numpy(self.bilm.char_vocab.encode(sentences, boundaries=False))
        return ids.to(next(self.bilm.parameters()).device)

    def forward(
        self, ids: Int[Tensor, "B W C"] | Int[Tensor, "B W"], *, state: BiLMState | None = None
    ) -> ELMoOutput:
        """Return the mixtures of a batch of sentences.

        Args:
            ids: Character ids (B, W, C), or word ids (B, W) for word-input models, without
                boundaries; 0 where padded.
            state: Memory to start from; none: zeros.

        Raises:
            TypeError: for anything but a tensor of integers, such as sentences; see `encode`.
            ValueError: for ids of another shape, padding that is not at the end, or a state with
                fewer rows.
        """
        run: Any = self._run_bilm
        if torch.compiler.is_compiling():  # as a decorator, `disable` takes 2 s to import
            run = torch.compiler.disable(run)
        out, mask = run(ids, state)
        mixes = [
            self.dropout(self._at_words(index, out.layers, out.mask, mask))
            for index in range(len(self.scalar_mixes))
        ]
        return ELMoOutput(mixes, out.mask if self.keep_boundaries else mask, out.state)

    def _run_bilm(self, ids: Tensor, state: BiLMState | None) -> tuple[BiLMOutput, Tensor]:
        """Return the layers with boundaries, and the mask without (B, W); never compiled."""
        self.bilm.check_inputs(ids, state)
        mask = mask_of(ids)
        ids = self._add_boundaries(ids, lengths_of(mask))
        frozen = None if self.trainable_bilm else self._packed.of(self.bilm)
        if frozen is not None:
            return run_frozen(frozen, ids, state=state), mask
        with torch.set_grad_enabled(self.trainable_bilm and torch.is_grad_enabled()):
            if self.trainable_bilm and not self.bilm._forward_hooks:
                return run_modules(self.bilm, ids, state=state), mask
            return self.bilm(ids, state=state), mask

    def _at_words(self, index: int, layers: Tensor, mask: Tensor, inner_mask: Tensor) -> Tensor:
        """Mix and remove boundaries that are not kept; padded positions of the result are zero."""
        if self.scalar_mixes[index].layer_norm == "batch":
            layers = torch.stack([_strip(layer, inner_mask) for layer in layers])
            return self._mixed(index, layers, inner_mask) * inner_mask.unsqueeze(2)
        mixed = self._mixed(index, layers, mask)
        return mixed * mask.unsqueeze(2) if self.keep_boundaries else _strip(mixed, inner_mask)

    def _add_boundaries(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Put ``<S>`` before and ``</S>`` after every sentence: (B, W, …) -> (B, W + 2, …)."""
        if ids.dim() == 2:
            words = getattr(self.bilm, "word_vocab", None)
            if words is None:
                raise ValueError(
                    "A word-input model needs its `word_vocab` to know the ids of <S> and </S>."
                )
            begin, end = words.sentence_begin_id, words.sentence_end_id
        else:
            characters = self.bilm.char_vocab
            begin, end = (
                torch.from_numpy(row.astype("int64")).to(ids)
                for row in (characters.sentence_begin, characters.sentence_end)
            )
        padded = ids.new_zeros(ids.shape[0], 2 + ids.shape[1], *ids.shape[2:])
        padded[:, 1:-1] = ids
        padded[:, 0] = begin
        padded[torch.arange(len(lengths), device=ids.device), lengths + 1] = end
        return padded


def run_modules(bilm: BiLM, ids: Tensor, *, state: BiLMState | None = None) -> BiLMOutput:
    """Return ``bilm(ids, state=state)``, with each distinct word encoded once."""
    mask = mask_of(ids)
    words, index = ids[mask].unique(dim=0, return_inverse=True)
    vectors = bilm.encode_tokens(words)
    tokens = vectors.new_zeros(*mask.shape, vectors.shape[1])
    tokens[mask] = vectors[index]
    return bilm.run_tokens(tokens, mask, state=state)


def _strip(x: Float[Tensor, "B T X"], inner_mask: Bool[Tensor, "B W"]) -> Float[Tensor, "B W X"]:
    return x[:, 1:-1] * inner_mask.unsqueeze(2)


def _drop_softmax(module: torch.nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    """Leave out the softmax that earlier versions saved with the biLM."""
    for name in [name for name in state if name.startswith(f"{prefix}bilm.softmax.")]:
        del state[name]


def run_frozen(frozen: FrozenBiLM, ids: Tensor, *, state: BiLMState | None = None) -> BiLMOutput:
    """Return what `BiLM.forward` returns, without gradients.

    ``ids`` are on the CPU and fit the model (`BiLM.check_inputs`); they have boundaries, and
    padding only at the end.
    """
    mask = mask_of(ids)
    lengths = lengths_of(mask).tolist()
    before = None if state is None else LSTMState.of(state)
    out = frozen.run_ids(ids[mask].numpy(), lengths, before)
    lstm = frozen.engine.config.lstm
    layers = torch.zeros(
        lstm.num_layers + 1, *mask.shape, 2 * lstm.projection_dim, dtype=torch.float32,
        device="cpu",
    )  # fmt: skip
    for row, array in enumerate(out.vectors):
        layers[:, row, : array.shape[1]] = torch.from_numpy(array)
    after = BiLMState(torch.from_numpy(out.state.hidden), torch.from_numpy(out.state.cell))
    return BiLMOutput(layers, mask, after.rows(slice(0, len(ids))))


class PackedWeights:
    """Keeps a biLM's weights packed for the kernels, and packs them again after a change.

    A change through ``weight.data`` or NumPy, which PyTorch does not count, is noticed if it
    reaches a whole tensor. Copies and pickles hold no weights; they pack their own.
    """

    def __init__(self) -> None:
        self._packed: tuple[FrozenBiLM, object] | None = None

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return PackedWeights, ()

    def of(self, bilm: BiLM) -> FrozenBiLM | None:
        """Return the biLM with packed weights; none where it must run as plain modules.

        Other devices and types of numbers, graphs that are being compiled or traced, and modules
        with forward hooks run as they are.
        """
        if torch.compiler.is_compiling() or torch.jit.is_tracing():  # pyright: ignore[reportPrivateImportUsage]
            return None
        modules = list(bilm.modules())
        weights = [w for module in modules for w in module._parameters.values() if w is not None]
        is_plain = all(w.is_cpu and w.dtype == torch.float32 for w in weights) and not any(
            module._forward_hooks or module._forward_pre_hooks for module in modules
        )
        if not is_plain or load_kernels() is None:  # which says so
            return None
        # PyTorch counts changes in place; the sample finds those made around it
        version = [
            (w.data_ptr(), 0 if w.is_inference() else w._version, _sample(w)) for w in weights
        ]
        if self._packed is None or self._packed[1] != version:
            self._packed = FrozenBiLM(_stored(bilm), word_cache=True), version
        return self._packed[0]


def _sample(weight: Tensor) -> bytes:
    """Return some 64 values from all over a tensor; the odd step leaves no columns aside."""
    return weight.detach().numpy().flat[:: weight.numel() // 64 | 1].tobytes()


def _stored(bilm: BiLM) -> StoredBiLM:
    if isinstance(bilm, PretrainedBiLM):
        return bilm.stored()
    arrays = {name: tensor.detach().numpy() for name, tensor in bilm.state_dict().items()}
    return StoredBiLM(bilm.config, arrays, char_vocab=bilm.char_vocab)


def batch_to_ids(
    sentences: Iterable[Sequence[str]], *, char_vocab: CharVocab | None = None
) -> Int[Tensor, "B W C"]:
    """Encode tokenized sentences as character ids, without sentence boundaries.

    By default equal to AllenNLP's function: 50 characters, no Unicode normalization, long words cut
    at byte 48. This suits imported original weights; for a model trained with elmokit, which reads
    normalized words, use `ELMo.encode`, or pass ``char_vocab=model.char_vocab``. Rows are padded
    with 0 to the longest sentence.

    Raises:
        TypeError: for a string: without a model there is no tokenizer. ``model.encode(sentences,
            boundaries=False)`` splits strings.
    """
    vocab = CharVocab(ORIGINAL_CHAR_VOCAB) if char_vocab is None else char_vocab
    words = list(split_sentences(sentences, None))
    return torch.from_numpy(vocab.encode(words, boundaries=False))
