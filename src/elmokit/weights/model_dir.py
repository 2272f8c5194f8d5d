"""A biLM with vocabulary, softmax and metadata, and its directory.

config.json        shapes, tokenizer, normalization, training metadata
model.safetensors  all parameters, fp32, fp16, int8 or int6 (`elmokit.weights.storage`)
vocab.txt          the words it predicts or reads, if any
README.md          the model card
lexicon.json       characters and words by list, if it reads them so (`elmokit.text.lexicon`)
mixes.safetensors  mixtures of layers trained with it, if any (`elmokit.weights.mix_file`)
"""

import copy
import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from safetensors.torch import save_file
from torch import Tensor, nn

from elmokit.bilm.bilm import BiLM, BiLMConfig
from elmokit.bilm.softmax import Softmax, SoftmaxConfig, build_softmax
from elmokit.config import to_dict
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.files.atomic import atomic_directory
from elmokit.files.hashing import file_sha256
from elmokit.files.json_files import json_bytes
from elmokit.kernels.forking import use_one_thread_after_a_fork
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.text.lexicon import Lexicon, LexiconVocab
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.weights.card import model_card
from elmokit.weights.locate import CONFIG_NAME, find_model
from elmokit.weights.mix_file import TrainedMixes, read_mixes, write_mixes
from elmokit.weights.model_files import (
    CARD_NAME,
    COPY_AGAIN,
    LEXICON_NAME,
    MIXES_NAME,
    VOCAB_NAME,
    WEIGHTS_NAME,
    ModelDirConfig,
    check_replaceable,
    load_tensors,
    read_config,
)
from elmokit.weights.result_metadata import result_metadata
from elmokit.weights.storage import Storage, pack, round_parameters
from elmokit.weights.tensor_files import WithoutStorage, check_name

logger = logging.getLogger(__name__)


class PretrainedBiLM(BiLM):
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
        if config.lexicon is not None or lexicon is not None:
            self.char_vocab = _lexicon_vocab(config, lexicon)
        num_lines = None if word_vocab is None else len(word_vocab)
        sizes = {num_lines, config.num_words, num_words} - {None}
        if len(sizes) > 1 or (softmax_config is not None and not sizes):
            raise ValueError(
                f"`word_vocab` has {num_lines} words, the word embedding {config.num_words} and "
                f"`num_words` is {num_words}; they must be one number, and a softmax needs it."
            )
        self.word_vocab = word_vocab
        self.softmax_config = softmax_config
        self.tokenizer = tokenizer
        self.warm_text = tuple(warm_text)
        self.training_metadata = dict(training or {})
        self.softmax: Softmax | None = None
        if softmax_config is not None:
            (size,) = sizes
            assert size is not None
            self.softmax = build_softmax(softmax_config, size, config.lstm.projection_dim)
            if initialize:
                self.softmax.reset_parameters(torch.Generator().manual_seed(0))

    def encoder(self) -> "PretrainedBiLM":
        """Return the part that makes layers of words, with the same weights, which are shared.

        It has no softmax, and a vocabulary only if it reads word ids.
        """
        encoder = copy.copy(self)
        encoder._modules = dict(self._modules)
        encoder.softmax = encoder.softmax_config = None
        if self.config.char_cnn is not None:
            encoder.word_vocab = None
        return encoder

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights, including the softmax."""
        super().reset_parameters(generator)
        softmax = getattr(self, "softmax", None)  # absent while the base class is being built
        if softmax is not None:
            softmax.reset_parameters(generator)

    def tokenize(self, sentence: str) -> list[str]:
        """Normalize one sentence and split it into words, as the training text was."""
        form = self.config.char_vocab.normalization
        return NormalizingTokenizer(build_tokenizer(self.tokenizer), form).tokenize(sentence)

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
        token_lists = list(split_sentences(sentences, self.tokenize))
        if self.config.char_cnn is not None:
            return torch.from_numpy(self.char_vocab.encode(token_lists, boundaries=boundaries))
        vocab = self.word_vocab
        if vocab is None:
            raise InputError(
                "This model reads word ids and has no vocabulary, so it cannot encode words. Load "
                "it with one: read_bilm_tf(options, weights, vocab='vocab.txt')."
            )
        edge = ([vocab.sentence_begin_id], [vocab.sentence_end_id]) if boundaries else ([], [])
        form = self.config.char_vocab.normalization
        encoded = (vocab.encode([normalize(word, form) for word in words]) for words in token_lists)
        rows = [np.concatenate((edge[0], word_ids, edge[1])) for word_ids in encoded]
        ids = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)  # (B, T)
        for row, word_ids in zip(ids, rows, strict=True):
            row[: len(word_ids)] = word_ids
        return torch.from_numpy(ids)

    def encode_words(self, words: Sequence[str]) -> Int[Tensor, "U C"] | Int[Tensor, " U"]:
        """Turn distinct words into the input of `encode_tokens`: character rows or word ids."""
        if self.config.char_cnn is not None:
            return torch.from_numpy(self.char_vocab.encode_words(words).astype(np.int64))
        return self.encode([words], boundaries=False)[0]

    def extra_repr(self) -> str:
        """Return sizes and text processing; torch shows them above the modules."""
        words = "no softmax" if self.softmax is None else f"{self.softmax.num_words:,} target words"
        return (
            f"{self.num_layers} layers of {self.output_dim}, {self.num_parameters():,} parameters, "
            f"{words}, tokenizer {self.tokenizer}, normalization "
            f"{self.config.char_vocab.normalization}"
        )

    def num_parameters(self) -> int:
        """Count the learned parameters of the biLM, without the softmax and the padding row."""
        padding = sum(  # a row of each embedding
            table.embedding_dim for table in self.modules() if isinstance(table, nn.Embedding)
        )
        softmax = 0 if self.softmax is None else sum(p.numel() for p in self.softmax.parameters())
        return sum(p.numel() for p in self.parameters()) - softmax - padding

    def model_hash(self) -> str:
        """Return the hex SHA-256 of parameters, settings that affect results and input words."""
        settings = to_dict(self.config)
        del settings["dropout"]  # acts in training only
        if self.config.lexicon is None:
            del settings["lexicon"]  # which older versions do not have
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name, tensor in sorted(self._tensors().items()):
            digest.update(f"\n{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.numpy().astype("<f4", copy=False).data)
        if self.config.char_cnn is None and self.word_vocab is not None:
            digest.update(self.word_vocab.sha256.encode())
        return digest.hexdigest()

    def metadata(self, *, tokenizer: Tokenizer | None = None) -> dict[str, Any]:
        """Return the metadata of results that the model computes; JSON-able.

        ``tokenizer`` is the one that split the text, if not the model's own.
        """
        normalization = self.config.char_vocab.normalization
        return result_metadata(self.model_hash(), tokenizer or self.tokenizer, normalization)

    def fingerprint(self, model_hash: str | None = None) -> str:
        """Return the hex SHA-256 of everything that decides the model's numbers.

        Besides the hash of the parameters these are tokenizer, warm text and vocabulary.
        """
        vocab = None if self.word_vocab is None else self.word_vocab.sha256
        parts = [model_hash or self.model_hash(), to_dict(self.tokenizer), self.warm_text, vocab]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()

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
            num_words=None if self.softmax is None else self.softmax.num_words,
            has_vocab=self.word_vocab is not None,
            vocab_sha256=None if self.word_vocab is None else self.word_vocab.sha256,
            tokenizer=self.tokenizer,
            warm_text=self.warm_text,
            training=self.training_metadata,
        )
        (directory / CONFIG_NAME).write_bytes(json_bytes(to_dict(config), indent=2))
        if self.word_vocab is not None:
            self.word_vocab.write(directory / VOCAB_NAME)
        if isinstance(self.char_vocab, LexiconVocab):
            (directory / LEXICON_NAME).write_bytes(self.char_vocab.lexicon.to_bytes())
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
    config = read_config(directory)
    vocab = _read_vocab(directory, config)
    lexicon = None if config.bilm.lexicon is None else Lexicon.read(directory / LEXICON_NAME)
    try:
        with WithoutStorage():
            model = PretrainedBiLM(
                config.bilm,
                word_vocab=vocab,
                softmax_config=config.softmax,
                num_words=config.num_words,
                tokenizer=config.tokenizer,
                warm_text=config.warm_text,
                lexicon=lexicon,
                training=config.training,
                initialize=False,
            )
    except ValueError as error:
        raise FormatError(f"{directory / CONFIG_NAME}: {error}") from error
    load_tensors(model, directory / WEIGHTS_NAME, sha256=config.weights_sha256)
    if (directory / MIXES_NAME).exists():
        model.mixes = read_mixes(directory / MIXES_NAME)
    return model.eval()


def _read_vocab(directory: Path, config: ModelDirConfig) -> WordVocab | None:
    """Return the vocabulary of a model, if it has one."""
    path = directory / VOCAB_NAME
    if not path.exists():
        if config.has_vocab:
            raise FormatError(
                f"{path} is missing: {CONFIG_NAME} says that the model has one. {COPY_AGAIN}"
            )
        return None
    vocab = WordVocab.read(path, advice=f"The file is damaged. {COPY_AGAIN}")
    num_words = config.num_words if config.num_words is not None else config.bilm.num_words
    # older directories have no hash
    if config.vocab_sha256 not in (None, vocab.sha256) or num_words not in (None, len(vocab)):
        raise FormatError(
            f"{path}: damaged, or of another model: {len(vocab)} words with the SHA-256 "
            f"{vocab.sha256[:12]}…, but {CONFIG_NAME} says {num_words} words and "
            f"{str(config.vocab_sha256)[:12]}…. {COPY_AGAIN}"
        )
    return vocab


def _lexicon_vocab(config: BiLMConfig, lexicon: Lexicon | None) -> LexiconVocab:
    actual = None
    if lexicon is not None and config.lexicon is not None:
        actual = lexicon.config(word_dim=config.lexicon.word_dim)
    if lexicon is None or actual != config.lexicon:
        raise ConfigError(
            "The lists of characters and words are missing, or not those that the configuration "
            f"describes: {config.lexicon}, got {actual}."
        )
    return LexiconVocab(config.char_vocab, lexicon)
