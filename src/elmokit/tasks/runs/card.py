"""The card of a task run: its README.md, made from the run's own data."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from elmokit.tasks.registry import find_task
from elmokit.weights.card import UNKNOWN, cell, plain

NOT_LISTED = (
    "name", "language", "license", "example", "label_meanings", "score", "scores", "scored"
)  # fmt: skip
"""Entries that the list under "Training" leaves out."""


def run_card(metadata: Mapping[str, Any], *, tokenizer: str, num_parameters: int) -> str:
    """Return the card as Markdown with the header that model hubs read.

    Args:
        metadata: ``task.json``, whose table ``card`` has ``name``, ``language``, ``license``, an
            ``example`` text, ``label_meanings``, ``scores`` (by label: precision, recall, F1, gold;
            the first one is over all) and ``scored`` (what was scored, and how); its other entries
            are listed as they are.
        tokenizer: Of raw text.
        num_parameters: Of the task model, without its biLM.
    """
    entries, config, bilm = metadata.get("card", {}), metadata["config"], metadata["bilm"]
    name = str(entries.get("name") or "path/to/this/directory")
    task = find_task(config["task"])
    header = ["library_name: elmokit", f"tags: [elmo, {task.hub_tag}]"]
    header += [
        f"{key}: {json.dumps(str(entries[key]), ensure_ascii=False)}"
        for key in ("language", "license")
        if entries.get(key)
    ]
    reads = "no biLM" if bilm is None else f"`{bilm['path']}`, hash `{bilm['model_hash']}`"
    rows = {
        "Task": f"`{task.name}`, {config['units']}",
        "Language": entries.get("language") or UNKNOWN,
        "License": entries.get("license") or UNKNOWN,
        "biLM": reads,
        "Tokenizer of raw text": tokenizer,
        "Network": f"{task.encoder} {config['hidden_dims']}, {num_parameters:,} parameters",
        "Weights": metadata.get("weights", "float32"),
    }
    table = "\n".join(f"| {key} | {cell(value)} |" for key, value in rows.items())
    listed = "\n".join(
        f"- {key}: {plain(value)}" for key, value in entries.items() if key not in NOT_LISTED
    )
    example = str(entries.get("example") or "…")
    return f"""---
{chr(10).join(header)}
---

# {name}

A task model on the layers of a biLM, made with elmokit. The biLM is not in this directory.

| | |
|---|---|
{table}

## Use

```bash
echo {shlex.quote(example)} | elmokit predict {name} -
```

```python
import elmokit

run = elmokit.TaskRun.load({json.dumps(name)})
(answer,) = run.predict_json([{json.dumps(example, ensure_ascii=False)}])
```

## Training

{listed or UNKNOWN.capitalize() + "."}
{_scores(entries)}"""


def _scores(entries: Mapping[str, Any]) -> str:
    scores: Mapping[str, Mapping[str, float]] = entries.get("scores") or {}
    if not scores:
        return ""
    meanings = entries.get("label_meanings") or {}
    rows = "\n".join(
        f"| {cell(label)} | {cell(meanings.get(label, ''))} | {score['precision']:.2f} "
        f"| {score['recall']:.2f} | {score['f1']:.2f} | {score['gold']:,} |"
        for label, score in scores.items()
    )
    header = "| | | Precision | Recall | F1 | Gold |\n|---|---|---|---|---|---|"
    return f"\n## Scores\n\n{plain(entries.get('scored', ''))}\n\n{header}\n{rows}\n"
