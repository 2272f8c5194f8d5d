"""The directory of a packaged tagger: a trained run in int8 with all its vectors, and a card."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from elmokit.files.json_files import write_json
from elmokit.files.sources import file_sha256
from elmokit.tasks.runs.run_dir import (
    CONFIG_FILE,
    STATIC_WEIGHT,
    WEIGHTS_FILE,
    WORDS_FILE,
    read_metadata,
    read_static,
    read_weights,
)
from elmokit.vectors.vector_files import read_vectors
from elmokit.weights.arrays import pack, round_all
from elmokit.weights.card import UNKNOWN, cell, plain

HUB_TAGS = {"sentiment": "text-classification"}
"""What model hubs call a task, if not ``token-classification``."""
NOT_LISTED = (
    "name", "language", "license", "example", "label_meanings", "score", "scores", "scored"
)  # fmt: skip
"""Entries of ``card`` that the list under "Training" leaves out."""


def copy_run(
    run_dir: Path, target: Path, *, vectors: Path | None, most: int | None
) -> dict[str, Any]:
    """Copy a run without what resumes it, with weights in int8; return its metadata.

    All ``vectors`` of the file are kept, or the first ``most``: first those of the training and dev
    words, in the order of the file.
    """
    metadata, arrays = read_metadata(run_dir), read_weights(run_dir)
    static = read_static(run_dir, arrays)
    target.mkdir(parents=True)
    if static is not None and vectors is not None:
        static = static.extended(read_vectors(vectors))
        static = static if most is None else static.first(most)
        arrays[STATIC_WEIGHT] = static.values
        metadata["keeps_vectors"] = True
        metadata["vectors"] |= {"path": vectors.name}
    if static is not None:
        words = "".join(f"{word}\n" for word in static.words)
        (target / WORDS_FILE).write_text(words, "utf-8")
    save_file(pack(round_all(arrays, "int8"), "int8"), target / WEIGHTS_FILE)
    metadata |= {"weights": "int8", "weights_sha256": file_sha256(target / WEIGHTS_FILE)}
    write_json(target / CONFIG_FILE, metadata, indent=2)
    return metadata


def tagger_card(directory: Path) -> str:
    """Return the card of a run as Markdown with the header that model hubs read.

    The table ``card`` of ``task.json`` has ``name``, ``language``, ``license``, an ``example``
    text, ``label_meanings``, ``scores`` (by label: precision, recall, F1, gold) and ``scored``
    (what was scored, and how); its other entries are listed as they are.
    """
    metadata, arrays = read_metadata(directory), read_weights(directory)
    entries, config, bilm = metadata["card"], metadata["config"], metadata["bilm"]
    num_parameters = sum(a.size for name, a in arrays.items() if name != STATIC_WEIGHT)
    tokenizer = bilm["tokenizer"]
    header = [
        "library_name: elmokit",
        f"tags: [elmo, {HUB_TAGS.get(config['task'], 'token-classification')}]",
    ]
    header += [
        f"{key}: {json.dumps(str(entries[key]), ensure_ascii=False)}"
        for key in ("language", "license")
    ]
    rows = {
        "Task": f"`{config['task']}`, {config['units']}",
        "Language": entries["language"],
        "License": entries["license"],
        "biLM": f"`{bilm['path']}`, hash `{bilm['model_hash']}`",
        "Tokenizer of raw text": f"{tokenizer['name']} {tokenizer['version']}",
        "Network": f"biLSTM {config['hidden_dims']}, {num_parameters:,} parameters",
        "Weights": metadata["weights"],
    }
    table = "\n".join(f"| {key} | {cell(value)} |" for key, value in rows.items())
    listed = "\n".join(
        f"- {key}: {plain(value)}" for key, value in entries.items() if key not in NOT_LISTED
    )
    return f"""---
{chr(10).join(header)}
---

# {entries["name"]}

A task model on the layers of a biLM, made with elmokit. The biLM is not in this directory.

| | |
|---|---|
{table}

## Use

```bash
echo {shlex.quote(entries["example"])} | elmokit predict {entries["name"]} -
```

```python
import elmokit

run = elmokit.TaskRun.load({json.dumps(entries["name"])})
(answer,) = run.predict_json([{json.dumps(entries["example"], ensure_ascii=False)}])
```

## Training

{listed or UNKNOWN.capitalize() + "."}
{_scores(entries)}"""


def _scores(entries: Mapping[str, Any]) -> str:
    meanings = entries["label_meanings"]
    rows = "\n".join(
        f"| {cell(label)} | {cell(meanings.get(label, ''))} | {score['precision']:.2f} "
        f"| {score['recall']:.2f} | {score['f1']:.2f} | {score['gold']:,} |"
        for label, score in entries["scores"].items()
    )
    header = "| | | Precision | Recall | F1 | Gold |\n|---|---|---|---|---|---|"
    return f"\n## Scores\n\n{plain(entries['scored'])}\n\n{header}\n{rows}\n"
