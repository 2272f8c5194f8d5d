"""A stored biLM as modules of PyTorch, to train it or to build it into a network."""

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmokit.bilm.bilm import BiLM
from elmokit.bilm.config import BiLMConfig, SoftmaxConfig
from elmokit.bilm.softmax import Softmax, build_softmax
from elmokit.files.atomic import StrPath
from elmokit.kernels.library import use_one_thread_after_a_fork
from elmokit.shapes import Int
from elmokit.text.given_sentences import GivenSentence
from elmokit.text.lexicon import Lexicon, LexiconVocab
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.arrays import Storage, round_all
from elmokit.weights.bilm_tf import read_original
from elmokit.weights.stored_bilm import (
    Arrays,
    LoadedBiLM,
    StoredBiLM,
    char_vocab_of,
    read_bilm,
    softmax_size,
)


class PretrainedBiLM(LoadedBiLM, BiLM):
    """A biLM with its vocabulary, softmax, tokenizer and training metadata.

    Args:
        config: Shape of the network.
        word_vocab: The words that the softmax predicts and that a word-input model reads.
        softmax_config: The output layer ``softmax``, shared by both directions; default: none, the
            model only encodes.
        num_words: V, for an output layer without a vocabulary.
        tokenizer: The tokenizer of the training text.
        warm_text: Neutral sentences, words joined by spaces.
        lexicon: The lists of characters and words that ``config.lexicon`` describes.
        training: JSON-able, kept as ``training_metadata`` (``training`` is torch's own flag).
        initialize: As for `BiLM`.

    Raises:
        ValueError: if vocabulary, ``num_words`` and the word embedding differ in size, or a softmax
            has no size.
    """

    def __init__(
        self,
        config: BiLMConfig,
        *,
        word_vocab: WordVocab | None = None,
        softmax_config: SoftmaxConfig | None = None,
        num_words: int | None = None,
        tokenizer: TokenizerConfig = TokenizerConfig(),  # noqa: B008 (frozen)
        warm_text: Sequence[str] = (),
        lexicon: Lexicon | None = None,
        training: Mapping[str, Any] | None = None,
        initialize: bool = True,
    ) -> None:
        super().__init__(config, initialize=initialize)
        self.char_vocab = char_vocab_of(config, lexicon)
        size = softmax_size(config, softmax_config, word_vocab, num_words)
        self.word_vocab = word_vocab
        self.softmax_config = softmax_config
        self.tokenizer = tokenizer
        self.warm_text = tuple(warm_text)
        self.training_metadata = dict(training or {})
        self.softmax: Softmax | None = None
        if softmax_config is not None:
            assert size is not None
            self.softmax = build_softmax(softmax_config, size, config.lstm.projection_dim)
            if initialize:
                self.softmax.reset_parameters(torch.Generator().manual_seed(0))

    @classmethod
    def of(cls, stored: StoredBiLM) -> "PretrainedBiLM":
        """Return the modules of a stored model, with the same memory, in evaluation mode."""
        vocab = stored.char_vocab
        with WithoutStorage():
            model = cls(
                stored.config, word_vocab=stored.word_vocab, softmax_config=stored.softmax_config,
                num_words=stored.num_target_words, tokenizer=stored.tokenizer,
                warm_text=stored.warm_text, training=stored.training_metadata, initialize=False,
                lexicon=vocab.lexicon if isinstance(vocab, LexiconVocab) else None,
            )  # fmt: skip
        tensors = {name: torch.from_numpy(array) for name, array in stored.arrays().items()}
        model.load_state_dict(tensors, assign=True)
        model.mixes, model.spelling = stored.mixes, stored.spelling
        return model.eval()

    def encoder(self) -> "PretrainedBiLM":
        """Return the part that makes layers of words, with the same weights, which are shared.

        It has no softmax, and a vocabulary only if it reads word ids.
        """
        encoder = copy.copy(self)
        encoder._modules = dict(self._modules)
        encoder.softmax = encoder.softmax_config = None
        if self.config.char_cnn is not None:
            encoder.word_vocab = encoder.spelling = None
        return encoder

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights, including the softmax."""
        super().reset_parameters(generator)
        softmax = getattr(self, "softmax", None)  # absent while the base class is being built
        if softmax is not None:
            softmax.reset_parameters(generator)

    def encode(
        self, sentences: Iterable[GivenSentence], *, boundaries: bool = True
    ) -> Int[Tensor, "B T C"] | Int[Tensor, "B T"]:
        """Turn sentences into the ids that this model reads, padded with 0.

        Character ids (B, T, C), or word ids (B, T) for a word-input model; ``boundaries`` adds
        ``<S>`` and ``</S>``. A string goes through `tokenize`, a list is taken as words.

        Raises:
            ValueError: if a word-input model has no vocabulary, or a string is no text.
            TypeError: if ``sentences`` is one string, or a sentence holds anything but strings.
        """
        return torch.from_numpy(self.ids_of_sentences(sentences, boundaries=boundaries))

    def encode_words(self, words: Sequence[str]) -> Int[Tensor, "U C"] | Int[Tensor, " U"]:
        """Turn distinct words into the input of `encode_tokens`: character rows or word ids."""
        return torch.from_numpy(self.ids_of_words(words).astype(np.int64))

    def extra_repr(self) -> str:
        """Return sizes and text processing; torch shows them above the modules."""
        words = "no softmax" if self.softmax is None else f"{self.softmax.num_words:,} target words"
        return (
            f"{self.num_layers} layers of {self.output_dim}, {self.num_parameters():,} parameters, "
            f"{words}, tokenizer {self.tokenizer}, normalization "
            f"{self.config.char_vocab.normalization}"
        )

    def arrays(self) -> Arrays:
        """Return the parameters in fp32 on the CPU, without a copy if they are that."""
        return {
            name: tensor.detach().to("cpu", torch.float32).contiguous().numpy()
            for name, tensor in self.state_dict().items()
        }

    def stored(self) -> StoredBiLM:
        """Return the model with its parameters as arrays."""
        return StoredBiLM(
            self.config, self.arrays(), char_vocab=self.char_vocab, word_vocab=self.word_vocab,
            softmax_config=self.softmax_config, num_words=self.num_target_words,
            tokenizer=self.tokenizer, warm_text=self.warm_text, mixes=self.mixes,
            training_metadata=dict(self.training_metadata), spelling=self.spelling,
            device=str(next(self.parameters()).device),
        )  # fmt: skip

    @property
    def num_target_words(self) -> int | None:
        """V of the softmax, if there is one."""
        return None if self.softmax is None else self.softmax.num_words

    def round_to(self, dtype: Storage) -> None:
        """Round all parameters in place to numbers that ``dtype`` holds exactly."""
        self.load_state_dict({
            name: torch.from_numpy(array) for name, array in round_all(self.arrays(), dtype).items()
        })  # fmt: skip


def load_model(path: str | os.PathLike[str] | None = None) -> PretrainedBiLM:
    """Load a model in evaluation mode, on the CPU, in fp32.

    Args:
        path: Directory, or the name of a packaged model; default: the English one.

    Raises:
        FileNotFoundError: if there is no such model.
        FormatError: if a file or a tensor is missing or damaged.
        ConfigError: if config.json holds an unknown key or a wrong value.
    """
    use_one_thread_after_a_fork()
    return PretrainedBiLM.of(read_bilm(path))


def as_modules(model: LoadedBiLM | str | os.PathLike[str] | None) -> PretrainedBiLM:
    """Return a model as modules: a loaded one, or one by its directory or name."""
    if isinstance(model, LoadedBiLM):
        return model if isinstance(model, PretrainedBiLM) else PretrainedBiLM.of(model.stored())
    return load_model(model)


def read_bilm_tf(
    options: StrPath,
    weights: StrPath,
    *,
    vocab: StrPath | None = None,
    softmax: StrPath | None = None,
) -> PretrainedBiLM:
    """Read a model in the original format (bilm-tf, AllenNLP), in evaluation mode.

    Words are encoded as in the original: no Unicode normalization, cut at any byte, split at white
    space.

    Args:
        options: Options of training or of inference (``n_characters`` 261 or 262).
        weights: The HDF5 weights.
        vocab: Needed for perplexity, and by a word-input model to encode words.
        softmax: HDF5 with ``softmax/W`` and ``softmax/b``, if not in ``weights``.

    Raises:
        FileNotFoundError: if a file is missing.
        FormatError: if a file is damaged, an option is missing or impossible, or a dataset is
            missing or has another shape than the options say.
    """
    return PretrainedBiLM.of(read_original(options, weights, vocab=vocab, softmax=softmax))


class WithoutStorage(TorchFunctionMode):
    """A context in which new modules get shapes but no memory, until tensors are assigned.

    As ``torch.device("meta")``, but weights are not drawn: on that device drawing would import
    seconds of torch.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func in (torch.empty, torch.zeros):
            return func(*args, **options | {"device": "meta"})
        if getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else options["tensor"]
        return func(*args, **options)
