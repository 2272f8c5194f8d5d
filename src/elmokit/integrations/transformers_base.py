"""What the classes for transformers have in common: saved code, configurations, splitting of text.

A saved folder holds no copy of our source files but one line of code that imports the classes.
"""

# pyright: reportMissingImports=false

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.config import from_dict, to_dict
from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.files.atomic import atomic_file
from elmokit.integrations.shared import AnyModel
from elmokit.text.alignment import Offsets, align
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.model_dir import PretrainedBiLM, as_modules

try:
    from transformers import PreTrainedConfig, PreTrainedTokenizer
except ImportError as error:
    raise MissingExtraError("transformers", extra="transformers") from error

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


class SavedConfig(OwnCode, PreTrainedConfig):
    """Shape and text processing of a biLM, as plain dictionaries.

    Args:
        bilm: `BiLMConfig`; default: the original's shape.
        tokenizer: `TokenizerConfig` of the training text.
        warm_text: Neutral text of the model's warm state.
    """

    def __init__(
        self,
        *,
        bilm: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        warm_text: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        self.bilm = to_dict(from_dict(BiLMConfig, bilm or {}, source="the configuration's `bilm`"))
        self.tokenizer, self.warm_text = tokenizer, list(warm_text)
        super().__init__(**kwargs)

    def modules(self, **settings: Any) -> PretrainedBiLM:
        """Return the biLM, whose weights are about to come; ``settings`` are its further ones."""
        return PretrainedBiLM(
            from_dict(BiLMConfig, self.bilm or {}, source="the configuration's `bilm`"),
            tokenizer=from_dict(
                TokenizerConfig, self.tokenizer or {}, source="the configuration's `tokenizer`"
            ),
            warm_text=self.warm_text,
            initialize=torch.get_default_device().type != "meta",
            **settings,
        )


class OwnWeights(OwnCode):
    """A model whose folder must hold all weights, and the lists of words beside them."""

    base_model_prefix = "elmo"
    main_input_name = "input_ids"

    @classmethod
    def from_pretrained(
        cls, path: Any, *arguments: Any, output_loading_info: bool = False, **options: Any
    ) -> Any:
        """Load a folder or hub repository; the arguments are those of transformers."""
        options["output_loading_info"] = True
        model, info = super().from_pretrained(path, *arguments, **options)  # pyright: ignore[reportAttributeAccessIssue]
        if missing := sorted(info["missing_keys"]):  # which transformers would draw at random
            raise FormatError(f"{path}: weight `{missing[0]}` is missing. Copy the folder again.")
        model.read_lists(path)
        return (model, info) if output_loading_info else model

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Leave the weights as the biLM drew them, or as they were loaded."""


class OwnTokenizer(OwnCode, PreTrainedTokenizer):
    """A tokenizer that splits text as the training text of the model was split."""

    vocab_files_names = {"vocab_file": "vocab.txt"}  # noqa: RUF012 (as in transformers)
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    _words: Any  # a WordVocab, None for characters

    def _set_splitter(
        self, tokenizer: dict[str, Any] | None, form: Normalization
    ) -> dict[str, Any]:
        """Take the `TokenizerConfig` of the training text; return it with all its settings."""
        config = from_dict(TokenizerConfig, tokenizer or {}, source="`tokenizer`")
        self._splitter = NormalizingTokenizer(build_tokenizer(config), form)
        return to_dict(config)

    def _places(self, words: Sequence[str], text: str) -> Offsets:
        offsets = align(words, text)
        if offsets is None:
            raise InputError(f"The tokenizer's words are not in {text!r:.60}: no offsets.")
        return offsets

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        if self._words is None:
            return ()
        name = self.vocab_files_names["vocab_file"]
        path = Path(save_directory) / (f"{filename_prefix}-{name}" if filename_prefix else name)
        self._words.write(path)
        return (str(path),)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> Any:
        self._auto_map = {"AutoTokenizer": [self.path_in_code(), None]}
        return super().save_pretrained(save_directory, *args, **kwargs)
