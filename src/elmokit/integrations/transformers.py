"""elmokit models in Hugging Face transformers (extra ``transformers``).

A folder written by ``save_pretrained`` holds config, weights, tokenizer settings and one file of
code, ``elmokit_model.py``, that imports the classes from here. It loads with
``trust_remote_code=True``; after ``import elmokit.integrations.transformers``, which registers the
classes, without.
"""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.masking import mask_of
from elmokit.config import from_dict, to_dict
from elmokit.errors import FormatError
from elmokit.inference.elmo import PackedWeights, run_frozen
from elmokit.integrations.shared import AnyModel, needs_extra
from elmokit.integrations.transformers_tokenizer import ElmoTokenizer, OwnCode, convertible
from elmokit.shapes import Float, Int
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.model_files import VOCAB_NAME

with needs_extra("transformers", module="transformers"):
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoTokenizer,
        PreTrainedConfig,
        PreTrainedModel,
    )
    from transformers.modeling_outputs import BaseModelOutput

__all__ = ["ElmoConfig", "ElmoModel", "ElmoTokenizer"]


class ElmoConfig(OwnCode, PreTrainedConfig):
    """Shape and text processing of an `ElmoModel`, as plain dictionaries.

    Args:
        bilm: `BiLMConfig`; default: the original's shape.
        tokenizer: `TokenizerConfig` of the training text.
        warm_text: Neutral text of the model's warm state.
        training: Metadata of the training.
        kwargs: Those of transformers.
    """

    model_type = "elmo"

    def __init__(
        self,
        *,
        bilm: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        warm_text: Sequence[str] = (),
        training: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs["auto_map"] = {
            "AutoConfig": self.path_in_code(), "AutoModel": ElmoModel.path_in_code(),
        }  # fmt: skip
        self.bilm = to_dict(from_dict(BiLMConfig, bilm or {}, source="the configuration's `bilm`"))
        self.tokenizer, self.warm_text = tokenizer, list(warm_text)
        super().__init__(**kwargs)
        self.training = training
        self.hidden_size = 2 * self.bilm["lstm"]["projection_dim"]
        self.num_hidden_layers = self.bilm["lstm"]["num_layers"]


class ElmoModel(OwnCode, PreTrainedModel):
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
            warm_text=config.warm_text, training=config.training,
            initialize=torch.get_default_device().type != "meta",
        )  # fmt: skip
        self._packed = PackedWeights()
        self.post_init()

    @classmethod
    def from_pretrained(
        cls, path: Any, *arguments: Any, output_loading_info: bool = False, **options: Any
    ) -> Any:
        """Load a folder or hub repository; the arguments are those of transformers."""
        options["output_loading_info"] = True
        model, info = cast(Any, super().from_pretrained(path, *arguments, **options))
        if missing := sorted(info["missing_keys"]):  # which transformers would draw at random
            raise FormatError(f"{path}: weight `{missing[0]}` is missing. Copy the folder again.")
        # the vocabulary of a word-input model, if a tokenizer has one beside it
        if model.bilm.config.char_cnn is None and (vocab := Path(path) / VOCAB_NAME).is_file():
            model.bilm.word_vocab = WordVocab.read(vocab, advice=COPY_AGAIN)
        return (model, info) if output_loading_info else model

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Leave the weights as the biLM drew them, or as they were loaded."""

    @classmethod
    def from_elmokit(cls, model: AnyModel = None) -> "ElmoModel":
        """Return a model with the weights of an elmokit model, its directory or name."""
        source = convertible(model)
        built = cls(ElmoConfig(
            bilm=to_dict(source.config), tokenizer=to_dict(source.tokenizer),
            training=source.training_metadata, warm_text=source.warm_text,
        ))  # fmt: skip
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
        """
        self.bilm.check_inputs(input_ids)
        if attention_mask is not None:
            keep = attention_mask.bool().to(input_ids.device)
            input_ids = input_ids * (keep.unsqueeze(2) if input_ids.dim() == 3 else keep)
        layers = self._layers(input_ids) * mask_of(input_ids).unsqueeze(2)  # (L, B, T, 2D)
        wanted = output_hidden_states
        wanted = self.config.output_hidden_states if wanted is None else wanted
        output = BaseModelOutput(
            last_hidden_state=layers[-1],  # pyright: ignore[reportArgumentType]
            hidden_states=tuple(layers) if wanted else None,  # pyright: ignore[reportArgumentType]
        )
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def _layers(self, ids: Tensor) -> Float[Tensor, "L B T E2"]:
        # kernels give no gradients, and dropout would be lost with them
        learns = torch.is_grad_enabled() and any(w.requires_grad for w in self.bilm.parameters())
        frozen = None if learns or self.training else self._packed.of(self.bilm)
        return (self.bilm(ids) if frozen is None else run_frozen(frozen, ids)).layers


AutoConfig.register(ElmoConfig.model_type, ElmoConfig, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
