"""elmokit models in Hugging Face transformers (extra ``transformers``).

A folder written by ``save_pretrained`` holds config, weights, tokenizer settings and one file of
code, ``elmokit_model.py``, that imports the classes from here. It loads with
``trust_remote_code=True``; after ``import elmokit.integrations.transformers``, which registers the
classes, without.
"""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.bilm.masking import mask_of
from elmokit.config import to_dict
from elmokit.inference.elmo import PackedWeights, run_frozen
from elmokit.integrations.shared import AnyModel, needs_extra
from elmokit.integrations.transformers_causal import ElmoCausalLMConfig, ElmoForCausalLM
from elmokit.integrations.transformers_tokenizer import (
    ElmoTokenizer,
    OwnWeights,
    SavedConfig,
    convertible,
)
from elmokit.integrations.transformers_words import ElmoWordTokenizer
from elmokit.shapes import Float, Int
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab

with needs_extra("transformers", module="transformers"):
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
        AutoTokenizer,
        PreTrainedModel,
    )
    from transformers.modeling_outputs import BaseModelOutput

__all__ = [
    "ElmoCausalLMConfig",
    "ElmoConfig",
    "ElmoForCausalLM",
    "ElmoModel",
    "ElmoTokenizer",
    "ElmoWordTokenizer",
]


class ElmoConfig(SavedConfig):
    """Configuration of an `ElmoModel`; ``training`` is metadata of the training."""

    model_type = "elmo"

    def __init__(self, *, training: dict[str, Any] | None = None, **kwargs: Any) -> None:
        kwargs["auto_map"] = {
            "AutoConfig": self.path_in_code(), "AutoModel": ElmoModel.path_in_code(),
        }  # fmt: skip
        super().__init__(**kwargs)
        self.training = training
        self.hidden_size = 2 * self.bilm["lstm"]["projection_dim"]
        self.num_hidden_layers = self.bilm["lstm"]["num_layers"]


class ElmoModel(OwnWeights, PreTrainedModel):
    """A biLM as a transformers model: layers of words, with gradients unless they are off.

    Without gradients, in fp32 on the CPU, it runs through the compiled kernels and equals
    `elmokit.Embedder`; positions of ``<S>`` and ``</S>`` come with the words. The softmax of
    pre-training is not part of it. ``model.bilm`` is a `PretrainedBiLM`, which can be saved as a
    model directory.
    """

    config_class = ElmoConfig

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)  # pyright: ignore[reportCallIssue]
        self.bilm = config.modules(training=config.training)
        self._packed = PackedWeights()
        self.post_init()

    def read_lists(self, path: Any) -> None:
        """Read the vocabulary of a word-input model, if a tokenizer has one beside it."""
        vocab_path = Path(path) / ElmoTokenizer.vocab_files_names["vocab_file"]
        if self.bilm.config.char_cnn is None and vocab_path.is_file():
            self.bilm.word_vocab = WordVocab.read(vocab_path, advice=COPY_AGAIN)

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
AutoConfig.register(ElmoCausalLMConfig.model_type, ElmoCausalLMConfig, exist_ok=True)
AutoModelForCausalLM.register(ElmoCausalLMConfig, ElmoForCausalLM, exist_ok=True)
AutoTokenizer.register(ElmoCausalLMConfig, tokenizer_class=ElmoWordTokenizer, exist_ok=True)
