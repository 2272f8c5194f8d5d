"""The tokenizer of an `ElmoModel`, and the code in its folder (extra ``transformers``)."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmokit.config import from_dict, to_dict
from elmokit.errors import InputError, needs_extra
from elmokit.files.atomic import atomic_file
from elmokit.integrations.shared import AnyModel
from elmokit.text.char_vocab import NUM_CHARS, CharVocab, CharVocabConfig
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
from elmokit.weights.model_dir import PretrainedBiLM, as_modules
from elmokit.weights.model_files import VOCAB_NAME

# pyright: reportMissingImports=false

with needs_extra("transformers", module="transformers"):
    from transformers import BatchEncoding, PreTrainedTokenizer
    from transformers.tokenization_utils_base import TruncationStrategy
    from transformers.utils.generic import PaddingStrategy

CODE_NAME = "elmokit_model.py"
_CODE = """\
\"\"\"Classes of this model; needs: pip install "elmokit[transformers]".\"\"\"

from elmokit.integrations.transformers import *
"""
PAD = "<pad>"


def convertible(model: AnyModel) -> PretrainedBiLM:
    """Return the modules of a model that transformers can hold."""
    source = as_modules(model)
    if source.config.lexicon is not None:
        raise InputError(
            "A model with lists of characters and words (ELMoForManyLangs) cannot be converted to "
            "transformers; elmokit.Embedder and elmokit.ELMo read it."
        )
    return source


class OwnCode:
    """Writes `CODE_NAME` into folders, and keeps transformers from copying our source files."""

    @classmethod
    def register_for_auto_class(cls, auto_class: object = None) -> None:
        """Do nothing: ``auto_map`` names `CODE_NAME` in any case."""

    @classmethod
    def path_in_code(cls) -> str:
        return f"{Path(CODE_NAME).stem}.{cls.__name__}"

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> Any:
        saved = super().save_pretrained(save_directory, *args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]
        with atomic_file(Path(save_directory) / CODE_NAME) as temp_path:
            temp_path.write_text(_CODE, encoding="utf-8")
        return saved


class SavedTokenizer(OwnCode, PreTrainedTokenizer):
    """A tokenizer that splits text as the training text was split, and writes its words, if any."""

    vocab_files_names = {"vocab_file": VOCAB_NAME}  # noqa: RUF012 (as in transformers)
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    _words: Any
    """A `WordVocab`, or None."""

    def __init__(
        self, tokenizer: dict[str, Any] | None, form: Normalization, **kwargs: Any
    ) -> None:
        kwargs.pop("auto_map", None)
        splitter = from_dict(TokenizerConfig, tokenizer or {}, source="`tokenizer`")
        self._splitter = NormalizingTokenizer(build_tokenizer(splitter), form)
        super().__init__(**kwargs | {"tokenizer": to_dict(splitter), "pad_token": PAD})

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        if self._words is None:
            return ()
        name = f"{filename_prefix}-{VOCAB_NAME}" if filename_prefix else VOCAB_NAME
        self._words.write(Path(save_directory) / name)
        return (str(Path(save_directory) / name),)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> Any:
        self._auto_map = {"AutoTokenizer": [self.path_in_code(), None]}
        return super().save_pretrained(save_directory, *args, **kwargs)


_UNSUPPORTED = (
    "return_overflowing_tokens", "return_offsets_mapping", "return_special_tokens_mask",
    "return_length",
)  # fmt: skip
_ONE_SENTENCE = (
    "ELMo reads single sentences, a token for each word: `text_pair`, "
    f"`{'`, `'.join(_UNSUPPORTED)}` are not supported."
)


class ElmoTokenizer(SavedTokenizer):
    """Text or words to the ids of an `ElmoModel`: a row of characters (C) for every token.

    A string is split by the tokenizer of the model's training text; in a list (with
    ``is_split_into_words=True`` if it stands alone) every string is one word. Ids of a word-input
    model are single numbers, from its vocabulary.

    Args:
        char_vocab: `CharVocabConfig`.
        tokenizer: `TokenizerConfig`.
        vocab_file: ``vocab.txt`` of a word-input model.
    """

    def __init__(
        self,
        char_vocab: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        vocab_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        text = from_dict(CharVocabConfig, char_vocab or {}, source="`char_vocab`")
        self._chars, self._words = CharVocab(text), None
        if vocab_file is not None:
            self._words = WordVocab.read(Path(vocab_file), advice=COPY_AGAIN)
        super().__init__(tokenizer, text.normalization, char_vocab=to_dict(text), **kwargs)

    @classmethod
    def from_elmokit(cls, model: AnyModel = None) -> "ElmoTokenizer":
        """Return the tokenizer of an elmokit model, its directory or name."""
        source = convertible(model)
        made = cls(to_dict(source.config.char_vocab), to_dict(source.tokenizer))
        if source.config.char_cnn is None:
            made._words = source.word_vocab
        return made

    @property
    def vocab_size(self) -> int:
        return NUM_CHARS if self._words is None else len(self._words)

    def get_vocab(self) -> dict[str, int]:
        words = [] if self._words is None else self._words.words
        return {PAD: 0, **{word: number for number, word in enumerate(words, 1)}}

    def tokenize(self, text: str, **_: Any) -> list[str]:
        return next(split_sentences([text], self._splitter.tokenize))

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        if tokens == PAD:
            return 0
        return self._ids([tokens])[0] if isinstance(tokens, str) else self._ids(tokens)

    def _ids(self, words: Sequence[str]) -> list[Any]:
        if self._words is None:
            return self._chars.encode_words(words).tolist()
        form = self._chars.config.normalization
        return self._words.encode([normalize(word, form) for word in words]).tolist()

    def _boundaries(self) -> tuple[Any, Any]:
        if self._words is not None:
            return self._words.sentence_begin_id, self._words.sentence_end_id
        return self._chars.sentence_begin.tolist(), self._chars.sentence_end.tolist()

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[Any], token_ids_1: list[Any] | None = None
    ) -> list[Any]:
        if token_ids_1 is not None:
            raise InputError(_ONE_SENTENCE)
        begin, end = self._boundaries()
        return [begin, *token_ids_0, end]

    def get_special_tokens_mask(
        self,
        token_ids_0: list[Any],
        token_ids_1: list[Any] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        if not already_has_special_tokens:
            return [1, *[0] * len(token_ids_0), 1]
        boundaries = self._boundaries()
        return [int(ids in boundaries) for ids in token_ids_0]

    def _encode_plus(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        text: GivenSentence | Sequence[GivenSentence],
        text_pair: object = None,
        *,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        return_tensors: Any = None,
        **options: Any,
    ) -> BatchEncoding:
        if text_pair is not None or any(options.get(name) for name in _UNSUPPORTED):
            raise InputError(_ONE_SENTENCE)
        is_words = is_split_into_words and all(isinstance(word, str) for word in text)
        is_single = isinstance(text, str) or is_words
        texts: Any = [text] if is_single else list(text)
        rows = []
        for words in split_sentences(texts, self._splitter.tokenize):
            if max_length is not None and truncation_strategy.value != "do_not_truncate":
                most = max(0, max_length - 2 * add_special_tokens)
                start = max(0, len(words) - most) if self.truncation_side == "left" else 0
                words = words[start : start + most]
            ids = self._ids(words)
            rows.append(self.build_inputs_with_special_tokens(ids) if add_special_tokens else ids)
        names = ("pad_to_multiple_of", "padding_side", "return_attention_mask")
        padded = self.pad(
            {"input_ids": rows}, padding=padding_strategy.value, max_length=max_length,
            **{name: options[name] for name in names if name in options},
        )  # fmt: skip
        batch = dict(padded)
        if is_single and return_tensors is None:
            batch = {name: values[0] for name, values in batch.items()}
        return BatchEncoding(batch, tensor_type=return_tensors)

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        ids = encoded_inputs["input_ids"]
        if self._words is None and len(ids) and isinstance(ids[0], int):
            raise InputError("`pad` takes a batch, a list of sentences, not a single sentence.")
        padded = super()._pad(encoded_inputs, *args, **kwargs)
        if self._words is None:  # a row of zeros, not one zero
            zeros = [0] * self._chars.config.max_characters
            padded["input_ids"] = [zeros if isinstance(r, int) else r for r in padded["input_ids"]]
        return padded
