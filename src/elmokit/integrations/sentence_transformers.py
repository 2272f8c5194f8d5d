"""elmokit models in sentence-transformers (extra ``sentence-transformers``).

`ElmoWords` is the first module of a `SentenceTransformer` (a pooling follows) or of a
`MultiVectorEncoder`. Built from ``modules=[…]`` it needs no permission; a saved folder names the
class, so loading it needs ``trust_remote_code=True``.
"""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.bilm.masking import mask_of
from elmokit.bilm.scalar_mix import LayerChoice
from elmokit.errors import FormatError, InputError, check_choice, needs_extra
from elmokit.files.atomic import atomic_file
from elmokit.inference.elmo import ELMo
from elmokit.integrations.shared import AnyModel
from elmokit.weights.model_dir import PretrainedBiLM, as_modules

with needs_extra("sentence-transformers", module="sentence-transformers"):
    from sentence_transformers.base.modules import InputModule

_MODEL_DIR = "bilm"


class ElmoWords(InputModule):
    """Sentences to the contextual vectors of their words.

    A frozen biLM gives the vectors of `elmokit.Embedder`; what learns, in sentence-transformers'
    own trainer, is the mixture with ``layers="mix"`` and, with ``trainable_bilm``, the biLM.

    Args:
        model: The biLM; its directory or name; default: the English model in the package.
        layers: ``average``, ``top``, ``layer0`` or ``mix``: see `LayerMixes`.
        trainable_bilm: Whether gradients reach the biLM.
        max_seq_length: Words after which a sentence is cut; none: never.
    """

    config_keys = ["layers", "trainable_bilm", "max_seq_length"]  # noqa: RUF012 (as in the base)
    save_in_root = False

    def __init__(
        self,
        model: AnyModel = None,
        *,
        layers: LayerChoice | str = "average",
        trainable_bilm: bool = False,
        max_seq_length: int | None = None,
    ) -> None:
        super().__init__()
        if max_seq_length is not None and max_seq_length < 1:
            raise InputError(f"`max_seq_length` must be at least 1, got {max_seq_length}.")
        source = as_modules(model)
        self.layers = check_choice(layers, LayerChoice, name="layers")
        self.trainable_bilm, self.max_seq_length = trainable_bilm, max_seq_length
        self.elmo = ELMo(source, layers=self.layers, dropout=0.0, trainable_bilm=trainable_bilm)  # pyright: ignore[reportArgumentType]
        if layers != "mix":  # the vectors themselves, not a learned multiple
            self.elmo.scalar_mixes.requires_grad_(False)
        self.tokenizer = self.bilm.tokenize  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def bilm(self) -> PretrainedBiLM:
        """The model, without its softmax."""
        bilm = self.elmo.bilm
        assert isinstance(bilm, PretrainedBiLM)
        return bilm

    def preprocess(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, inputs: Sequence[str], prompt: str | None = None, **_: Any
    ) -> dict[str, Tensor]:
        """Return ids (B, W, C) without boundaries, and the mask (B, W)."""
        texts = self._prepend_prompt(list(inputs), prompt) if prompt else inputs
        ids = self.bilm.encode(texts, boundaries=False)[:, : self.max_seq_length]
        if ids.shape[1] == 0:  # (B, 1, C): a pooling needs a position
            ids = ids.new_zeros(len(ids), 1, *ids.shape[2:])
        mask = mask_of(ids)
        mask[:, 0] = True  # of an empty text one position, which is zeros: else its maximum is -inf
        return {"input_ids": ids, "attention_mask": mask.to(torch.int64)}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``token_embeddings`` (B, W, 2D), zeros where padded."""
        # A tensor made by inference_mode cannot be kept for gradients; nothing here keeps one.
        features["token_embeddings"] = self.elmo(features["input_ids"]).mixes[0]
        return features

    def get_embedding_dimension(self) -> int:
        return self.bilm.output_dim

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **_: Any) -> None:
        """Write config.json, the mixture (always safetensors), and the model directory ``bilm``."""
        from safetensors.torch import save_file

        self.save_config(output_path)
        self.bilm.save(Path(output_path) / _MODEL_DIR)
        with atomic_file(Path(output_path) / "model.safetensors") as temp_path:
            save_file(self.elmo.scalar_mixes.state_dict(), temp_path, metadata={"format": "pt"})

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> "ElmoWords":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Load what `save` wrote, from a folder or a hub repository."""
        known = ("token", "cache_folder", "revision", "local_files_only")
        hub = {name: options[name] for name in known if name in options}
        folder = cls.load_dir_path(model_name_or_path, subfolder=subfolder, **hub)
        if folder is None:
            raise FormatError(f"{model_name_or_path} has no folder {subfolder!r} with a biLM.")
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **hub)
        module = cls(Path(folder) / _MODEL_DIR, **config)
        state = cls.load_torch_weights(model_name_or_path, subfolder=subfolder, **hub)
        module.elmo.scalar_mixes.load_state_dict(state)  # pyright: ignore[reportArgumentType]
        return module
