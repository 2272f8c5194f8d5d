"""What model and tokenizer share on their way into a transformers folder, with its code."""

import os
from pathlib import Path

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file
from elmokit.weights.model_dir import PretrainedBiLM, load_model

CODE_NAME = "elmokit_model.py"
"""The file of code in a saved folder."""
_CODE = """\
\"\"\"Classes of this model; needs: pip install "elmokit[transformers]".\"\"\"

from elmokit.integrations.transformers import ElmoConfig, ElmoModel, ElmoTokenizer

__all__ = ["ElmoConfig", "ElmoModel", "ElmoTokenizer"]
"""


class OwnCode:
    """Keeps transformers from copying our source files into folders; we write `CODE_NAME`."""

    @classmethod
    def register_for_auto_class(cls, auto_class: object = None) -> None:
        """Do nothing: ``auto_map`` names `CODE_NAME` in any case."""


def write_code(directory: str | os.PathLike[str]) -> str:
    """Write the file of code into a folder; return its path."""
    path = Path(directory) / CODE_NAME
    with atomic_file(path) as temp_path:
        Path(temp_path).write_text(_CODE, encoding="utf-8")
    return str(path)


def convertible(model: PretrainedBiLM | str | os.PathLike[str] | None) -> PretrainedBiLM:
    """Return a model, its directory or name; InputError for one that cannot be converted."""
    source = model if isinstance(model, PretrainedBiLM) else load_model(model)
    if source.config.lexicon is not None:
        raise InputError(
            "A model with lists of characters and words (ELMoForManyLangs) cannot be converted to "
            "transformers; elmokit.Embedder and elmokit.ELMo read it."
        )
    return source
