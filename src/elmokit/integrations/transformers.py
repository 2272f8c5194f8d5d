"""elmokit models in Hugging Face transformers (extra ``transformers``).

A folder written by ``save_pretrained`` holds config, weights, tokenizer settings and one file of
code, ``elmokit_model.py``, that imports the classes from here. It loads with
``trust_remote_code=True``; after ``import elmokit.integrations.transformers``, which registers the
classes, without.
"""

# pyright: reportMissingImports=false

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.masking import mask_of
from elmokit.config import from_dict, to_dict
from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.files.atomic import atomic_file
from elmokit.inference.packed_weights import PackedWeights
from elmokit.text.char_vocab import NUM_CHARS, CharVocab, CharVocabConfig
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
from elmokit.weights.model_dir import PretrainedBiLM, load_model

try:
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoTokenizer,
        BatchEncoding,
        PreTrainedConfig,
        PreTrainedModel,
        PreTrainedTokenizer,
    )
    from transformers.modeling_outputs import BaseModelOutput
    from transformers.utils.generic import PaddingStrategy
except ImportError as error:
    raise MissingExtraError("transformers", extra="transformers") from error

CODE_NAME = "elmokit_model.py"
"""The file of code in a saved folder."""
_CODE = """\
\"\"\"Classes of this model; needs: pip install "elmokit[transformers]".\"\"\"

from elmokit.integrations.transformers import ElmoConfig, ElmoModel, ElmoTokenizer

__all__ = ["ElmoConfig", "ElmoModel", "ElmoTokenizer"]
"""
_PAD = "<pad>"


class _OwnCode:
    """Keeps transformers from copying our source files into folders; we write `CODE_NAME`."""

    @classmethod
    def register_for_auto_class(cls, auto_class: object = None) -> None:
        """Do nothing: ``auto_map`` names `CODE_NAME` in any case."""


class ElmoConfig(_OwnCode, PreTrainedConfig):
    """Shape and text processing of an `ElmoModel`, as plain dictionaries.

    Args:
        bilm: `BiLMConfig`; default: the original's shape.
        tokenizer: `TokenizerConfig` of the training text.
        training: Metadata of the training.
        warm_text: Neutral text of the model's warm state.
    """

    model_type = "elmo"

    def __init__(
        self,
        *,
        bilm: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        training: dict[str, Any] | None = None,
        warm_text: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        config = from_dict(BiLMConfig, bilm or {}, source="the configuration's `bilm`")
        self.bilm = to_dict(config)
        self.tokenizer = tokenizer
        self.training = training
        self.warm_text = list(warm_text)
        kwargs["auto_map"] = {
            "AutoConfig": f"{Path(CODE_NAME).stem}.ElmoConfig",
            "AutoModel": f"{Path(CODE_NAME).stem}.ElmoModel",
        }
        kwargs["hidden_size"] = 2 * config.lstm.projection_dim
        kwargs["num_hidden_layers"] = config.lstm.num_layers
        super().__init__(**kwargs)

    def save_pretrained(self, save_directory: str | os.PathLike[str], **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write config.json and the file of code."""
        saved = super().save_pretrained(save_directory, **kwargs)
        _write_code(save_directory)
        return saved


class ElmoModel(_OwnCode, PreTrainedModel):
    """A biLM as a transformers model: layers of words, with gradients unless they are off.

    Without gradients, in fp32 on the CPU, it runs through the compiled kernels and equals
    `elmokit.Embedder`; positions of ``<S>`` and ``</S>`` come with the words. The softmax of
    pre-training is not part of it. ``model.bilm`` is a `PretrainedBiLM`, which can be saved as a
    model directory.
    """

    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)  # pyright: ignore[reportCallIssue]
        self.bilm = PretrainedBiLM(
            from_dict(BiLMConfig, config.bilm or {}, source="the configuration's `bilm`"),
            tokenizer=from_dict(
                TokenizerConfig, config.tokenizer or {}, source="the configuration's `tokenizer`"
            ),
            training=config.training,
            warm_text=config.warm_text,
            initialize=torch.get_default_device().type != "meta",  # where weights are about to come
        )
        self._packed = PackedWeights()
        self.post_init()

    @classmethod
    def from_pretrained(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, path: Any, *arguments: Any, output_loading_info: bool = False, **options: Any
    ) -> Any:
        """Load a folder or hub repository; the arguments are those of transformers.

        Raises:
            FormatError: if weights are missing, which transformers would draw at random.
        """
        options["output_loading_info"] = True
        model, info = super().from_pretrained(path, *arguments, **options)  # pyright: ignore[reportGeneralTypeIssues]
        missing = sorted(info["missing_keys"])
        if missing:
            raise FormatError(f"{path}: weight `{missing[0]}` is missing. Copy the folder again.")
        vocab_path = Path(path) / ElmoTokenizer.vocab_files_names["vocab_file"]
        if model.bilm.config.char_cnn is None and vocab_path.is_file():  # beside it, of a tokenizer
            model.bilm.word_vocab = WordVocab.read(vocab_path, advice=COPY_AGAIN)
        return (model, info) if output_loading_info else model

    @classmethod
    def from_elmokit(
        cls, model: PretrainedBiLM | str | os.PathLike[str] | None = None
    ) -> "ElmoModel":
        """Return a model with the weights of an elmokit model, its directory or name."""
        source = _supported(model)
        config = ElmoConfig(
            bilm=to_dict(source.config),
            tokenizer=to_dict(source.tokenizer),
            training=source.training_metadata,
            warm_text=source.warm_text,
        )
        built = cls(config)
        built.bilm.word_vocab = source.word_vocab if source.config.char_cnn is None else None
        built.bilm.load_state_dict(source.encoder().state_dict())
        return built.eval()

    def forward(
        self,
        input_ids: Int[Tensor, "B T C"] | Int[Tensor, "B T"],
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Return the top layer (B, T, 2D) and, on request, all L layers.

        Args:
            input_ids: What `ElmoTokenizer` makes, with boundaries; padding at the end.
            attention_mask: Positions to leave out; (B, T), zeros at the end of rows.
            output_hidden_states: Whether ``hidden_states`` holds all layers, the token layer first.
            return_dict: As everywhere in transformers.

        Raises:
            ValueError: for padding that is not at the end.
        """
        if attention_mask is not None:
            keep = attention_mask.bool().to(input_ids.device)
            input_ids = input_ids * (keep.unsqueeze(2) if input_ids.dim() == 3 else keep)
        mask = mask_of(input_ids)
        layers = self._layers(input_ids) * mask.unsqueeze(2)  # (L, B, T, 2D)
        wanted = self.config.output_hidden_states if output_hidden_states is None else (
            output_hidden_states
        )  # fmt: skip
        output = BaseModelOutput(
            last_hidden_state=layers[-1],  # pyright: ignore[reportArgumentType]
            hidden_states=tuple(layers) if wanted else None,  # pyright: ignore[reportArgumentType]
        )
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def _layers(self, ids: Tensor) -> Float[Tensor, "L B T E2"]:
        learns = torch.is_grad_enabled() and any(w.requires_grad for w in self.bilm.parameters())
        frozen = None if learns or self.training else self._packed.of(self.bilm)
        return (self.bilm(ids) if frozen is None else frozen.run(ids)).layers

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the weights as the biLM drew them, or as they were loaded."""


class ElmoTokenizer(_OwnCode, PreTrainedTokenizer):
    """Text or words to the ids of an `ElmoModel`: a row of characters (C) for every token.

    A string is split by the tokenizer of the model's training text; in a list (with
    ``is_split_into_words=True`` if it stands alone) every string is one word. Ids of a word-input
    model are single numbers, from its vocabulary.

    Args:
        char_vocab: `CharVocabConfig`.
        tokenizer: `TokenizerConfig`.
        vocab_file: ``vocab.txt`` of a word-input model.
    """

    vocab_files_names = {"vocab_file": "vocab.txt"}  # noqa: RUF012 (as in transformers)
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(
        self,
        char_vocab: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        vocab_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("auto_map", None)
        text = from_dict(CharVocabConfig, char_vocab or {}, source="`char_vocab`")
        splitter = from_dict(TokenizerConfig, tokenizer or {}, source="`tokenizer`")
        self._chars = CharVocab(text)
        self._words = None
        if vocab_file is not None:
            self._words = WordVocab.read(Path(vocab_file), advice=COPY_AGAIN)
        self._splitter = NormalizingTokenizer(build_tokenizer(splitter), text.normalization)
        kwargs["pad_token"] = _PAD
        settings = {"char_vocab": to_dict(text), "tokenizer": to_dict(splitter)}
        super().__init__(**settings, **kwargs)

    @classmethod
    def from_elmokit(
        cls, model: PretrainedBiLM | str | os.PathLike[str] | None = None
    ) -> "ElmoTokenizer":
        """Return the tokenizer of an elmokit model, its directory or name."""
        source = _supported(model)
        made = cls(to_dict(source.config.char_vocab), to_dict(source.tokenizer))
        if source.config.char_cnn is None:
            made._words = source.word_vocab
        return made

    @property
    def vocab_size(self) -> int:
        """Distinct ids without padding: words, or bytes and marks."""
        return NUM_CHARS if self._words is None else len(self._words)

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of words, for a word-input model; characters have no names."""
        words = [] if self._words is None else self._words.words
        return {_PAD: 0, **{word: number for number, word in enumerate(words, 1)}}

    def tokenize(self, text: str, **_: Any) -> list[str]:
        """Split text into words, as the training text was split."""
        return next(split_sentences([text], self._splitter.tokenize))

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """Return the ids of one word or of several."""
        if tokens == _PAD:
            return 0
        found = self._ids([tokens] if isinstance(tokens, str) else tokens)
        return found[0] if isinstance(tokens, str) else found

    def _ids(self, words: Sequence[str]) -> list[Any]:
        if self._words is None:
            return self._chars.encode_words(words).tolist()
        form = self._chars.config.normalization
        return self._words.encode([normalize(word, form) for word in words]).tolist()

    def _boundaries(self) -> tuple[Any, Any]:
        if self._words is not None:
            return self._words.sentence_begin_id, self._words.sentence_end_id
        return self._chars.sentence_begin.tolist(), self._chars.sentence_end.tolist()

    def _encode_plus(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        text: GivenSentence | Sequence[GivenSentence],
        text_pair: object = None,
        *,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: Any = None,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_attention_mask: bool | None = None,
        return_special_tokens_mask: bool = False,
        return_length: bool = False,
        **others: Any,
    ) -> BatchEncoding:
        if text_pair is not None:
            raise InputError("ELMo reads single sentences; `text_pair` is not supported.")
        for name in ("return_offsets_mapping", "return_overflowing_tokens"):
            if others.get(name):
                raise InputError(f"`{name}` is not supported. Leave it out.")
        is_words = is_split_into_words and all(isinstance(word, str) for word in text)
        is_single = isinstance(text, str) or is_words
        edges = self._boundaries() if add_special_tokens else None
        cut = truncation_strategy is not None and truncation_strategy.value != "do_not_truncate"
        room = max_length - 2 * (edges is not None) if cut and max_length is not None else None
        if room is not None and room < 0:
            raise InputError(
                f"`max_length` must be at least 2, for the sentence's boundaries, got {max_length}."
            )
        batch: dict[str, list[Any]] = {"input_ids": []}
        for words in split_sentences([text] if is_single else text, self._splitter.tokenize):  # pyright: ignore[reportArgumentType]
            if room is not None and len(words) > room:
                words = (
                    words[len(words) - room :] if self.truncation_side == "left" else words[:room]
                )
            rows = self._ids(words)
            if edges is not None:
                rows = [edges[0], *rows, edges[1]]
            batch["input_ids"].append(rows)
            if return_special_tokens_mask:
                inner = len(rows) - 2 * (edges is not None)
                mark = [1] * (edges is not None)
                batch.setdefault("special_tokens_mask", []).append([*mark, *[0] * inner, *mark])
            if return_length:
                batch.setdefault("length", []).append(len(rows))
        padded = self.pad(
            batch, padding=padding_strategy.value, max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of, padding_side=padding_side,
            return_attention_mask=return_attention_mask,
        )  # fmt: skip
        if return_tensors is not None:
            if len({len(rows) for rows in padded["input_ids"]}) > 1:
                raise InputError("Sentences of different lengths make no tensor: set padding=True.")
            padded = {name: np.array(values) for name, values in padded.items()}  # faster than rows
            return BatchEncoding(padded, tensor_type=return_tensors)
        return BatchEncoding({n: v[0] for n, v in padded.items()} if is_single else padded)  # pyright: ignore[reportArgumentType]

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        padded = super()._pad(encoded_inputs, *args, **kwargs)
        if self._words is None:  # a row of zeros, not one zero
            zeros = [0] * self._chars.config.max_characters
            padded["input_ids"] = [zeros if isinstance(r, int) else r for r in padded["input_ids"]]
        return padded

    def _decode(self, token_ids: Any, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("ids of ELMo are rows of bytes of words; keep the words instead")

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """Write ``vocab.txt`` of a word-input model; return the paths written."""
        if self._words is None:
            return ()
        name = self.vocab_files_names["vocab_file"]
        path = Path(save_directory) / (f"{filename_prefix}-{name}" if filename_prefix else name)
        self._words.write(path)
        return (str(path),)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        """Write settings, vocabulary and the file of code."""
        self._auto_map = {"AutoTokenizer": [f"{Path(CODE_NAME).stem}.ElmoTokenizer", None]}
        saved = super().save_pretrained(save_directory, *args, **kwargs)
        return (*saved, _write_code(save_directory))


def _supported(model: PretrainedBiLM | str | os.PathLike[str] | None) -> PretrainedBiLM:
    """Return a model, its directory or name; InputError for one that cannot be converted."""
    source = model if isinstance(model, PretrainedBiLM) else load_model(model)
    if source.config.lexicon is not None:
        raise InputError(
            "A model with lists of characters and words (ELMoForManyLangs) cannot be converted to "
            "transformers; elmokit.Embedder and elmokit.ELMo read it."
        )
    return source


def _write_code(directory: str | os.PathLike[str]) -> str:
    path = Path(directory) / CODE_NAME
    with atomic_file(path) as temp_path:
        Path(temp_path).write_text(_CODE, encoding="utf-8")
    return str(path)


AutoConfig.register(ElmoConfig.model_type, ElmoConfig, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
