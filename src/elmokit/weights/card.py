"""What results and models say of their making: metadata, and the card (README.md) of a model."""

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, tokenizer_metadata
from elmokit.version import __version__

UNKNOWN = "not stated"
_NOT_LISTED = ("language", "license", "perplexity", "original_options", "scores", "scores_note")
"""Metadata that the list under "Training" leaves out."""
_EXAMPLE = ["I", "sat", "by", "the", "bank"]
_EXAMPLES = {"korean": ["나", "는", "강가", "에", "앉", "었", "다", "."]}
"""Words of tokenizers that do not leave `_EXAMPLE` as it is, by name."""


def model_card(model: Any) -> str:
    """Return the card of a `PretrainedBiLM` as Markdown with the header that model hubs read."""
    config, metadata, tokenizer = model.config, model.training_metadata, model.tokenizer
    header = ["library_name: elmokit", "tags: [elmo, bilm, contextual-embeddings]"]
    named = [key for key in ("language", "license") if metadata.get(key)]
    header += [f"{key}: {json.dumps(str(metadata[key]))}" for key in named]
    reads = "words (embedding table)"
    if config.char_cnn is not None:
        most = model.char_vocab.max_bytes
        kind = "bytes of UTF-8" if config.lexicon is None else "by list"
        words = "" if config.lexicon is None else f", and {config.lexicon.num_words:,} words"
        reads = f"characters ({kind}), at most {most} per word{words}"
    rows = {
        "Language": str(metadata.get("language") or UNKNOWN),
        "License": str(metadata.get("license") or UNKNOWN),
        "Perplexity": _perplexity(metadata.get("perplexity")),
        "Tokenizer": f"{tokenizer.name} {tokenizer.version}".strip(),
        "Normalization": config.char_vocab.normalization,
        "Input": reads,
        "Layers": f"{model.num_layers} of {model.output_dim} (cell {config.lstm.cell_dim})",
        "Parameters": f"{model.num_parameters():,} without softmax",
        "Vocabulary": "none" if model.word_vocab is None else f"{len(model.word_vocab):,} words",
        "Model hash": f"`{model.model_hash()}`",
    }
    example = _EXAMPLES.get(tokenizer.name, _EXAMPLE)
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    listed = "\n".join(
        f"- {key}: {plain(value)}" for key, value in metadata.items() if key not in _NOT_LISTED
    )
    return f"""---
{chr(10).join(header)}
---

# ELMo biLM

A bidirectional language model for contextual word vectors, made with elmokit.

| | |
|---|---|
{table}

## Use

```python
import elmokit

embedder = elmokit.Embedder.load("path/to/this/directory")
vectors = embedder.embed([{json.dumps(example, ensure_ascii=False)}])
```

Lists of words must be tokenized as the training text was (see the table); strings are split by
that tokenizer.

## Training

{listed or UNKNOWN.capitalize() + "."}
{_scores(metadata.get("scores") or {}, metadata.get("scores_note"))}"""


def _scores(scores: Mapping[str, Any], note: Any) -> str:
    if not scores:
        return ""
    rows = "\n".join(f"| {cell(name)} | {cell(score)} |" for name, score in scores.items())
    below = f"\n{plain(note)}\n" if note else ""
    return f"\n## Task scores\n\n| Task | Score |\n|---|---|\n{rows}\n{below}"


def cell(value: Any) -> str:
    return plain(value).replace("|", "\\|")


def _perplexity(value: Any) -> str:
    if isinstance(value, Mapping):
        # bits per byte charge nothing for the bytes of unknown words; JSON has null for infinity
        figures = [
            f"{name} {plain(math.inf if number is None else number)}"
            for name, number in value.items()
            if name != "bits_per_byte"
        ]
        return ", ".join(figures) or UNKNOWN
    return UNKNOWN if value is None else plain(value)


def plain(value: Any) -> str:
    """Return a value on one line."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return " ".join(text.split())


METADATA_KEY = "elmokit"
"""Name of the metadata, as JSON, in HDF5, Parquet and NPZ files."""
EMBEDDINGS = "embedding file"
ResultKind = Literal["embedding file", "surprisal", "model weights"]
"""``kind`` in the metadata of a file; embedding files have none."""


def result_metadata(
    model_hash: str | None, tokenizer: Tokenizer | TokenizerConfig, normalization: Normalization
) -> dict[str, Any]:
    """Return the metadata of results that a model computed; JSON-able."""
    return {
        "model_hash": model_hash,
        "tokenizer": tokenizer_metadata(tokenizer),
        "normalization": normalization,
        "elmokit_version": __version__,
    }
