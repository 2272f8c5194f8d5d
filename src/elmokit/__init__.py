"""elmokit: train ELMo on your own text or load an existing ELMo, and use it.

The public names are imported on first use, so that `import elmokit` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmokit.bilm.bilm import BiLM, BiLMConfig, BiLMState
    from elmokit.bilm.scalar_mix import ScalarMix
    from elmokit.embed.embedder import Embedder
    from elmokit.embed.vector_sequence import open_vectors
    from elmokit.errors import ConfigError, ElmokitError, FormatError, InputError, MissingExtraError
    from elmokit.evaluation.perplexity import perplexity
    from elmokit.evaluation.surprisal import surprisal
    from elmokit.evaluation.word_prediction import predict_word
    from elmokit.inference.elmo import ELMo, batch_to_ids
    from elmokit.inspection.trace import tokenize, trace
    from elmokit.learn import finetune, pretrain, train
    from elmokit.tasks.runs.task_run import TaskRun
    from elmokit.text.char_vocab import CharVocab, CharVocabConfig
    from elmokit.text.word_vocab import WordVocab
    from elmokit.version import __version__
    from elmokit.weights.bilm_tf import write_bilm_tf
    from elmokit.weights.model_dir import PretrainedBiLM, load_model, read_bilm_tf

__all__ = [
    "BiLM", "BiLMConfig", "BiLMState", "CharVocab", "CharVocabConfig", "ConfigError", "ELMo",
    "ElmokitError", "Embedder", "FormatError", "InputError", "MissingExtraError",
    "PretrainedBiLM", "ScalarMix", "TaskRun", "WordVocab", "__version__", "batch_to_ids",
    "finetune", "load_model", "open_vectors", "perplexity", "predict_word", "pretrain",
    "read_bilm_tf", "surprisal", "tokenize", "trace", "train", "write_bilm_tf",
]  # fmt: skip

_MODULES = {
    "elmokit.bilm.bilm": ("BiLM", "BiLMConfig", "BiLMState"),
    "elmokit.inference.elmo": ("ELMo", "batch_to_ids"),
    "elmokit.bilm.scalar_mix": ("ScalarMix",),
    "elmokit.embed.embedder": ("Embedder",),
    "elmokit.embed.vector_sequence": ("open_vectors",),
    "elmokit.errors": (
        "ConfigError", "ElmokitError", "FormatError", "InputError", "MissingExtraError",
    ),
    "elmokit.evaluation.perplexity": ("perplexity",),
    "elmokit.evaluation.surprisal": ("surprisal",),
    "elmokit.evaluation.word_prediction": ("predict_word",),
    "elmokit.inspection.trace": ("tokenize", "trace"),
    "elmokit.learn": ("finetune", "pretrain", "train"),
    "elmokit.tasks.runs.task_run": ("TaskRun",),
    "elmokit.text.char_vocab": ("CharVocab", "CharVocabConfig"),
    "elmokit.text.word_vocab": ("WordVocab",),
    "elmokit.version": ("__version__",),
    "elmokit.weights.bilm_tf": ("write_bilm_tf",),
    "elmokit.weights.model_dir": ("PretrainedBiLM", "load_model", "read_bilm_tf"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'elmokit' has no attribute {name!r}")
    from elmokit.errors import needs_torch

    with needs_torch():
        value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
