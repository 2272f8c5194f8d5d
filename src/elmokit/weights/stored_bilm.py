"""A loaded biLM: what it says of itself, its parameters as arrays, and its directory.

config.json        shapes, tokenizer, normalization, training metadata
model.safetensors  all parameters, fp32, fp16, int8 or int6 (`elmokit.weights.arrays`)
vocab.txt          the words it predicts or reads, if any
README.md          the model card
lexicon.json       characters and words by list, if it reads them so (`elmokit.text.lexicon`)
mixes.safetensors  mixtures of layers trained with it, if any (`elmokit.weights.model_files`)
spelling.safetensors  spellings of words outside the vocabulary, if any (`elmokit.text.spelling`)

`StoredBiLM` is all that running a model takes; `elmokit.weights.model_dir` makes modules of it.
"""

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from elmokit.bilm.config import BiLMConfig, SoftmaxConfig, parameter_shapes
from elmokit.config import to_dict
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import json_bytes
from elmokit.files.sources import file_sha256
from elmokit.shapes import Integer
from elmokit.text.char_vocab import CharVocab
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.text.lexicon import Lexicon, LexiconVocab
from elmokit.text.normalization import normalize
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.weights import model_files as files
from elmokit.weights.arrays import Storage, StoredArrays, pack, round_all
from elmokit.weights.card import model_card, result_metadata
from elmokit.weights.locate import CONFIG_NAME, find_model

Arrays = Mapping[str, np.ndarray]
"""Parameters in fp32, by the names that the modules have for them."""


class LoadedBiLM(ABC):
    """What `StoredBiLM` and `PretrainedBiLM` have in common: all but the kind of the weights."""

    config: BiLMConfig
    char_vocab: CharVocab
    word_vocab: WordVocab | None
    softmax_config: SoftmaxConfig | None
    tokenizer: TokenizerConfig
    warm_text: tuple[str, ...]
    training_metadata: dict[str, Any]
    mixes: files.TrainedMixes | None = None
    """Trained mixtures of its layers, which imported models can have; saved with the model."""
    spelling: SpellingModel | None = None
    """How words outside the vocabulary are spelled, if the model knows."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return the parameters; those of modules share memory where they can."""

    @abstractmethod
    def stored(self) -> "StoredBiLM":
        """Return the model with its parameters as arrays."""

    @property
    def num_layers(self) -> int:
        return self.config.lstm.num_layers + 1

    @property
    def output_dim(self) -> int:
        return 2 * self.config.lstm.projection_dim

    @property
    @abstractmethod
    def num_target_words(self) -> int | None:
        """V of the softmax, if there is one."""

    def tokenize(self, sentence: str) -> list[str]:
        """Normalize one sentence and split it into words, as the training text was."""
        form = self.config.char_vocab.normalization
        return NormalizingTokenizer(build_tokenizer(self.tokenizer), form).tokenize(sentence)

    def ids_of_sentences(
        self, sentences: Iterable[GivenSentence], *, boundaries: bool
    ) -> Integer[np.ndarray, "B T C"] | Integer[np.ndarray, "B T"]:
        """Return the ids of characters or words that the model reads, padded with 0."""
        token_lists = list(split_sentences(sentences, self.tokenize))
        if self.config.char_cnn is not None:
            return self.char_vocab.encode(token_lists, boundaries=boundaries)
        vocab = self.word_vocab
        if vocab is None:
            raise InputError(
                "This model reads word ids and has no vocabulary, so it cannot encode words. Load "
                "it with one: read_bilm_tf(options, weights, vocab='vocab.txt')."
            )
        begin, end = (
            ([vocab.sentence_begin_id], [vocab.sentence_end_id]) if boundaries else ([], [])
        )
        form = self.config.char_vocab.normalization
        encoded = (vocab.encode([normalize(word, form) for word in words]) for words in token_lists)
        rows = [[*begin, *word_ids, *end] for word_ids in encoded]
        ids = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)  # (B, T)
        for row, word_ids in zip(ids, rows, strict=True):
            row[: len(word_ids)] = word_ids
        return ids

    def ids_of_words(
        self, words: Sequence[str]
    ) -> Integer[np.ndarray, "U C"] | Integer[np.ndarray, " U"]:
        """Return what the token layer reads of distinct words: character rows or word ids."""
        if self.config.char_cnn is not None:
            return self.char_vocab.encode_words(words)
        return self.ids_of_sentences([words], boundaries=False)[0]

    def num_parameters(self) -> int:
        """Count the learned parameters of the biLM, without the softmax and the padding row."""
        shapes = parameter_shapes(self.config)
        padding = [shape[1] for name, shape in shapes.items() if name.endswith("embedding.weight")]
        return sum(map(math.prod, shapes.values())) - sum(padding)

    def model_hash(self) -> str:
        """Return the hex SHA-256 of parameters, settings that affect results and input words."""
        digest = hashlib.sha256(files.hashed_settings(self.config))
        arrays = self.arrays()
        for name in sorted(arrays):
            array = arrays[name]
            digest.update(f"\n{name} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array, dtype="<f4").data)
        if self.config.char_cnn is None and self.word_vocab is not None:
            digest.update(self.word_vocab.sha256.encode())
        return digest.hexdigest()

    def metadata(self, *, tokenizer: Tokenizer | None = None) -> dict[str, Any]:
        """Return the metadata of results; ``tokenizer`` split the text, if not the model's own."""
        normalization = self.config.char_vocab.normalization
        return result_metadata(self.model_hash(), tokenizer or self.tokenizer, normalization)

    def fingerprint(self, model_hash: str | None = None) -> str:
        """Return the hex SHA-256 of what decides results: weights, tokenizer, warm text, words."""
        vocab = None if self.word_vocab is None else self.word_vocab.sha256
        parts = [model_hash or self.model_hash(), to_dict(self.tokenizer), self.warm_text, vocab]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def card(self) -> str:
        """Return the model card as Markdown; bytes of names that are not UTF-8 are escaped."""
        return model_card(self).encode("utf-8", "backslashreplace").decode("utf-8")

    def save(self, directory: str | os.PathLike[str], *, dtype: Storage = "float32") -> None:
        """Write the model directory, whole or not at all, replacing an older model.

        ``float16`` halves the file, ``int8`` quarters it; call `round_to` first: a parameter that
        ``dtype`` cannot hold exactly is refused (`ValueError`), as is a ``directory`` that is not a
        model's (`FileExistsError`) or is a file (`NotADirectoryError`).
        """
        target = Path(os.path.expanduser(directory)).resolve()
        packed = pack(self.arrays(), dtype)
        files.check_replaceable(target)
        with atomic_directory(target) as fresh:
            save_file(packed, fresh / files.WEIGHTS_NAME, metadata={"format": "pt"})
            config = self._config(dtype, file_sha256(fresh / files.WEIGHTS_NAME))
            (fresh / CONFIG_NAME).write_bytes(json_bytes(to_dict(config), indent=2))
            if self.word_vocab is not None:
                self.word_vocab.write(fresh / files.VOCAB_NAME)
            if isinstance(self.char_vocab, LexiconVocab):
                (fresh / files.LEXICON_NAME).write_bytes(self.char_vocab.lexicon.to_bytes())
            if self.spelling is not None:
                (fresh / files.SPELLING_NAME).write_bytes(self.spelling.to_bytes())
            if self.mixes is not None:
                files.write_mixes(self.mixes, fresh / files.MIXES_NAME)
            (fresh / files.CARD_NAME).write_text(self.card(), encoding="utf-8")

    def _config(self, dtype: Storage, weights_sha256: str) -> files.ModelDirConfig:
        config = files.ModelDirConfig(
            elmokit_version=__version__, weights=dtype, weights_sha256=weights_sha256,
            bilm=self.config, num_words=self.num_target_words,
            softmax=None if self.num_target_words is None else self.softmax_config,
            has_vocab=self.word_vocab is not None,
            vocab_sha256=None if self.word_vocab is None else self.word_vocab.sha256,
            spelling_sha256=None if self.spelling is None else self.spelling.sha256,
            tokenizer=self.tokenizer, warm_text=self.warm_text, training=self.training_metadata,
            model_hash=self.model_hash(),
        )  # fmt: skip
        return replace(config, hash_key=files.hash_key(config))


@dataclass(eq=False, repr=False)
class StoredBiLM(LoadedBiLM):
    """A biLM as arrays; the fields are those of `PretrainedBiLM`."""

    config: BiLMConfig
    parameters: Arrays
    _: KW_ONLY
    char_vocab: CharVocab
    word_vocab: WordVocab | None = None
    softmax_config: SoftmaxConfig | None = None
    num_words: int | None = None
    """V of the softmax, if there is one."""
    tokenizer: TokenizerConfig = TokenizerConfig()  # noqa: RUF009 (frozen)
    warm_text: tuple[str, ...] = ()
    training_metadata: dict[str, Any] = field(default_factory=dict)
    mixes: files.TrainedMixes | None = None
    spelling: SpellingModel | None = None
    device: str = "cpu"
    """Where PyTorch holds the parameters."""
    stated_hash: str | None = None
    """The hash that the model's directory states for these files."""

    def arrays(self) -> Arrays:
        return self.parameters

    def model_hash(self) -> str:
        """Return the hash that the model's directory states for these files, or compute it."""
        return self.stated_hash or super().model_hash()

    def stored(self) -> "StoredBiLM":
        return self

    @property
    def num_target_words(self) -> int | None:
        return None if self.softmax_config is None else self.num_words

    def rounded_to(self, dtype: Storage) -> "StoredBiLM":
        """Return the model with all parameters rounded to numbers that ``dtype`` holds exactly."""
        return replace(self, parameters=round_all(self.parameters, dtype), stated_hash=None)

    def encoder(self) -> "StoredBiLM":
        """Return the part that makes layers of words, with the same arrays.

        It has no softmax, and a vocabulary only if it reads word ids.
        """
        own = {name: self.parameters[name] for name in parameter_shapes(self.config)}
        vocab = self.word_vocab if self.config.char_cnn is None else None
        return replace(
            self, parameters=own, word_vocab=vocab, softmax_config=None, stated_hash=None
        )


def open_bilm(model: LoadedBiLM | str | os.PathLike[str] | None) -> StoredBiLM:
    """Return a model as arrays: a loaded one, or one by its directory or name."""
    return model.stored() if isinstance(model, LoadedBiLM) else read_bilm(model)


def read_bilm(path: str | os.PathLike[str] | None = None) -> StoredBiLM:
    """Read a model directory, by default the English model; fp32 weights are memory-mapped."""
    directory = find_model(path)
    config = files.read_config(directory)
    vocab = files.read_vocab(directory, config)
    lexicon = None if config.bilm.lexicon is None else Lexicon.read(directory / files.LEXICON_NAME)
    try:
        char_vocab = char_vocab_of(config.bilm, lexicon)
        num_words = softmax_size(config.bilm, config.softmax, vocab, config.num_words)
    except ValueError as error:
        raise FormatError(f"{directory / CONFIG_NAME}: {error}") from error
    shapes = parameter_shapes(config.bilm, config.softmax, num_words)
    arrays = StoredArrays(
        directory / files.WEIGHTS_NAME, shapes=shapes, sha256=config.weights_sha256,
        advice=files.COPY_AGAIN,
    )  # fmt: skip
    is_stated = config.weights_sha256 is not None and config.hash_key == files.hash_key(config)
    mixes, spelling = directory / files.MIXES_NAME, directory / files.SPELLING_NAME
    return StoredBiLM(
        config.bilm, arrays, char_vocab=char_vocab, word_vocab=vocab,
        softmax_config=config.softmax, num_words=num_words, tokenizer=config.tokenizer,
        warm_text=config.warm_text, training_metadata=config.training,
        mixes=files.read_mixes(mixes) if mixes.exists() else None,
        spelling=SpellingModel.of_model(spelling, config.spelling_sha256),
        stated_hash=config.model_hash if is_stated else None,
    )  # fmt: skip


def softmax_size(
    config: BiLMConfig,
    softmax: SoftmaxConfig | None,
    vocab: WordVocab | None,
    num_words: int | None,
) -> int | None:
    """Return V; raise `ValueError` if the parts of a model differ in it, or a softmax has none."""
    num_lines = None if vocab is None else len(vocab)
    sizes = {num_lines, config.num_words, num_words} - {None}
    if len(sizes) > 1 or (softmax is not None and not sizes):
        raise ValueError(
            f"`word_vocab` has {num_lines} words, the word embedding {config.num_words} and "
            f"`num_words` is {num_words}; they must be one number, and a softmax needs it."
        )
    return next(iter(sizes), None)


def char_vocab_of(config: BiLMConfig, lexicon: Lexicon | None) -> CharVocab:
    """Return what turns words into ids, with the lists that a configuration describes, if any."""
    if config.lexicon is None and lexicon is None:
        return CharVocab(config.char_vocab)
    actual = None
    if lexicon is not None and config.lexicon is not None:
        actual = lexicon.config(word_dim=config.lexicon.word_dim)
    if lexicon is None or actual != config.lexicon:
        raise ConfigError(
            "The lists of characters and words are missing, or not those that the configuration "
            f"describes: {config.lexicon}, got {actual}."
        )
    return LexiconVocab(config.char_vocab, lexicon)
