"""A biLM with vocabulary, softmax and metadata, and its directory.

config.json        shapes, tokenizer, normalization, training metadata
model.safetensors  all parameters, fp32, fp16, int8 or int6 (`elmokit.weights.storage`)
vocab.txt          the words it predicts or reads, if any
README.md          the model card
lexicon.json       characters and words by list, if it reads them so (`elmokit.text.lexicon`)
mixes.safetensors  mixtures of layers trained with it, if any (`elmokit.weights.mix_file`)
spelling.safetensors  how words outside the vocabulary are spelled (`elmokit.text.spelling`), if any
"""

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from safetensors.torch import save_file
from torch import Tensor

from elmokit.bilm.bilm import BiLM
from elmokit.bilm.config import BiLMConfig, SoftmaxConfig
from elmokit.bilm.softmax import Softmax, build_softmax
from elmokit.config import to_dict
from elmokit.files.atomic import atomic_directory
from elmokit.files.hashing import file_sha256
from elmokit.files.json_files import json_bytes
from elmokit.kernels.threads import use_one_thread_after_a_fork
from elmokit.text.given_sentences import GivenSentence
from elmokit.text.lexicon import Lexicon, LexiconVocab
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.weights.arrays import Storage, check_name
from elmokit.weights.card import model_card
from elmokit.weights.locate import CONFIG_NAME, find_model
from elmokit.weights.mix_file import TrainedMixes, read_mixes, write_mixes
from elmokit.weights.model_files import (
    CARD_NAME,
    LEXICON_NAME,
    MIXES_NAME,
    SPELLING_NAME,
    VOCAB_NAME,
    WEIGHTS_NAME,
    ModelDirConfig,
    check_replaceable,
)
from elmokit.weights.storage import pack, round_parameters
from elmokit.weights.stored_bilm import (
    Arrays,
    LoadedBiLM,
    StoredBiLM,
    char_vocab_of,
    read_bilm,
    softmax_size,
)
from elmokit.weights.tensor_files import WithoutStorage


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

    mixes: TrainedMixes | None = None
    """Trained mixtures of its layers, which imported models can have; saved with the model."""
    spelling: SpellingModel | None = None

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
                stored.config,
                word_vocab=stored.word_vocab,
                softmax_config=stored.softmax_config,
                num_words=stored.num_target_words,
                tokenizer=stored.tokenizer,
                warm_text=stored.warm_text,
                lexicon=vocab.lexicon if isinstance(vocab, LexiconVocab) else None,
                training=stored.training_metadata,
                initialize=False,
            )
        tensors = {name: torch.from_numpy(array) for name, array in stored.arrays().items()}
        model.load_state_dict(tensors, assign=True)
        model.spelling = stored.spelling
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
        return {name: tensor.numpy() for name, tensor in self._tensors().items()}

    def stored(self) -> StoredBiLM:
        """Return the model with its parameters as arrays."""
        return StoredBiLM(
            self.config, self.arrays(), char_vocab=self.char_vocab, word_vocab=self.word_vocab,
            softmax_config=self.softmax_config, num_words=self.num_target_words,
            tokenizer=self.tokenizer, warm_text=self.warm_text, training=self.training_metadata,
            spelling=self.spelling, device=str(next(self.parameters()).device),
        )  # fmt: skip

    @property
    def num_target_words(self) -> int | None:
        """V of the softmax, if there is one."""
        return None if self.softmax is None else self.softmax.num_words

    def card(self) -> str:
        """Return the model card as Markdown; bytes of names that are not UTF-8 are escaped."""
        return model_card(self).encode("utf-8", "backslashreplace").decode("utf-8")

    def save(self, directory: str | os.PathLike[str], *, dtype: Storage = "float32") -> None:
        """Write the model directory, whole or not at all, replacing an older model.

        ``float16`` halves the file, ``int8`` quarters it; call `round_to` first, so that nothing is
        lost in saving.

        Raises:
            FileExistsError: if ``directory`` exists and is not a model directory.
            ValueError: if ``dtype`` cannot hold a parameter exactly.
        """
        target = Path(os.path.expanduser(directory)).resolve()
        check_name(target)
        tensors = pack(self._tensors(), dtype)
        check_replaceable(target)
        with atomic_directory(target, last=CONFIG_NAME) as fresh:
            self._write(fresh, dtype, tensors)

    def round_to(self, dtype: Storage) -> None:
        """Round all parameters in place to numbers that ``dtype`` holds exactly.

        Raises:
            ValueError: if a parameter is too large or not finite.
        """
        round_parameters(self, dtype)

    def _write(self, directory: Path, dtype: Storage, tensors: dict[str, Tensor]) -> None:
        save_file(tensors, directory / WEIGHTS_NAME, metadata={"format": "pt"})
        config = ModelDirConfig(
            elmokit_version=__version__,
            weights=dtype,
            weights_sha256=file_sha256(directory / WEIGHTS_NAME),
            bilm=self.config,
            softmax=None if self.softmax is None else self.softmax_config,
            num_words=self.num_target_words,
            has_vocab=self.word_vocab is not None,
            vocab_sha256=None if self.word_vocab is None else self.word_vocab.sha256,
            spelling_sha256=None if self.spelling is None else self.spelling.sha256,
            tokenizer=self.tokenizer,
            warm_text=self.warm_text,
            training=self.training_metadata,
        )
        (directory / CONFIG_NAME).write_bytes(json_bytes(to_dict(config), indent=2))
        if self.word_vocab is not None:
            self.word_vocab.write(directory / VOCAB_NAME)
        if isinstance(self.char_vocab, LexiconVocab):
            (directory / LEXICON_NAME).write_bytes(self.char_vocab.lexicon.to_bytes())
        if self.spelling is not None:
            (directory / SPELLING_NAME).write_bytes(self.spelling.to_bytes())
        if self.mixes is not None:
            write_mixes(self.mixes, directory / MIXES_NAME)
        (directory / CARD_NAME).write_text(self.card(), encoding="utf-8")

    def _tensors(self) -> dict[str, Tensor]:
        return {
            name: tensor.detach().to("cpu", torch.float32).contiguous()
            for name, tensor in self.state_dict().items()
        }


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
    directory = find_model(path)
    model = PretrainedBiLM.of(read_bilm(directory))
    if (directory / MIXES_NAME).exists():
        model.mixes = read_mixes(directory / MIXES_NAME)
    return model
