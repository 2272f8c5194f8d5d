"""Write the text packs of the explorer's page: ``python recipes/explorer_packs.py``.

``packs/senses.{en,ko}.json``: sentences with ambiguous words, split by the tokenizer of the
packaged model. They are written for this project, in ``recipes/explorer/senses.*.txt``. Each word
opens with ``# word | sense: English = Korean | …``, and ``sense: sentence`` follows.
``packs/results.json``: figures of ``docs/results`` that the page shows, with where they are from.
"""

import json
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.experiments.tables import NOTHING
from elmokit.files.json_files import json_bytes
from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model

ROOT = Path(__file__).parents[1]
PACKS = ROOT / "src/elmokit/web/page/static/packs"
RESULTS = ROOT / "docs/results/experiments"
SOURCES = ("figure2", "table1")
"""Of the layer weights, and of the scores."""


def senses(language: str) -> dict[str, Any]:
    """The sentences of a language, tokenized, with the place of the ambiguous word."""
    import elmokit

    path = Path(__file__).parent / f"explorer/senses.{language}.txt"
    model = elmokit.load_model(language)
    entries: list[dict[str, Any]] = []
    faults = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("# "):
            word, *labels = line[2:].split(" | ")
            entries.append({"word": word, "senses": list(map(_sense, labels)), "sentences": []})
            continue
        sense, text = line.split(": ", 1)
        entry = entries[-1]
        words = model.tokenize(text)
        places = [i for i, one in enumerate(words) if one.lower() == entry["word"]]
        if not places or sense not in [one["id"] for one in entry["senses"]]:
            faults.append(f"line {number}: {' '.join(words)}")
            continue
        entry["sentences"].append({"words": words, "index": places[0], "sense": sense})
    if faults:
        raise FormatError(f"{path}: no word or no such sense in {'; '.join(faults)}.")
    return {"language": language, "entries": entries}


def _sense(label: str) -> dict[str, str]:
    name, meanings = label.split(": ")
    english, korean = meanings.split(" = ")
    return {"id": name, "en": english, "ko": korean}


def results() -> dict[str, Any]:
    """Layer weights that tasks learned at the input; scores with a tenth and all of the labels."""
    weights, labels = (json.loads((RESULTS / f"{name}.json").read_bytes()) for name in SOURCES)
    return {
        "mixture": {
            **_made(weights),
            "rows": [
                {
                    "task": row[1],
                    "weights": [float(cell.split()[0]) for cell in row[3:6]],
                    "gamma": float(row[6].split()[0]),
                }
                for row in weights["tables"][0]["rows"]
                if row[0] == "input"
            ],
        },
        "labels": {
            **_made(labels),
            "rows": [
                {
                    "task": row[0], "percent": float(row[2].split()[0]), "metric": row[3],
                    "static": float(row[5].split()[0]), "elmo": float(row[6].split()[0]),
                }
                for row in labels["tables"][0]["rows"]
                if NOTHING not in row[5:7]
            ],
        },
    }  # fmt: skip


def _made(result: dict[str, Any]) -> dict[str, Any]:
    made = result["made"]
    model_hash = made["biLM"].split()[-1]
    is_of_package = load_model(PACKAGED_MODELS / "en").model_hash().startswith(model_hash)
    return {
        **{key: made[key] for key in ("command", "hardware", "written")},
        "earlier_model": None if is_of_package else model_hash,
    }


def main() -> None:
    """Write all packs."""
    for name, pack in [
        *((f"senses.{one}", senses(one)) for one in ("en", "ko")),
        ("results", results()),
    ]:
        (PACKS / f"{name}.json").write_bytes(json_bytes(pack, indent=None))


if __name__ == "__main__":
    main()
