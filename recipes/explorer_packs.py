"""Write the text packs of the explorer's page: ``python recipes/explorer_packs.py``.

``packs/senses.{en,ko}.json``: sentences with ambiguous words, split by the tokenizer of the
packaged model. They are written for this project, in ``recipes/explorer/senses.*.txt``. Each word
opens with ``# word | sense: English = Korean | …``, and ``sense: sentence`` follows.
``packs/first.json``: three sentences with one word, which the page opens with, and the cosines of
that word's vectors in every layer of the packaged model, so that nobody waits for the model.
``packs/results.json``: figures of ``docs/results`` that the page shows, with where they are from.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

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
FIRST_WORDS = {"en": "bank", "ko": "배"}
FIRST_SENTENCES = {
    "en": [
        ("We sat on the bank of the river.", "river"),
        ("They walked along the bank of the stream.", "river"),
        ("He borrowed money from the bank.", "money"),
    ],
    "ko": [
        ("우리는 배를 타고 섬에 갔다.", "ship"),
        ("그는 배를 타고 바다로 나갔다.", "ship"),
        ("너무 많이 먹어서 배가 아프다.", "belly"),
    ],
}
"""Two of one sense, then one of another, with the senses of ``explorer/senses.*.txt``."""
FIRST_EXAMPLES = {
    "en": ["They fished from the bank of the river.", "She opened an account at the bank."],
    "ko": ["점심을 굶었더니 배가 고프다.", "어부들이 배를 타고 떠났다."],
}
"""What a reader may try, a sentence of each sense."""


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
        tokens = elmokit.tokenize(model, text).tokens
        words = [token.text for token in tokens]
        places = [i for i, one in enumerate(words) if one.lower() == entry["word"]]
        if not places or sense not in [one["id"] for one in entry["senses"]]:
            faults.append(f"line {number}: {' '.join(words)}")
            continue
        entry["sentences"].append({
            "words": words, "index": places[0], "sense": sense,
            "text": text, "spans": [[token.start, token.end] for token in tokens],
        })  # fmt: skip
    if faults:
        raise FormatError(f"{path}: no word or no such sense in {'; '.join(faults)}.")
    return {"language": language, "entries": entries}


def _sense(label: str) -> dict[str, str]:
    name, meanings = label.split(": ")
    english, korean = meanings.split(" = ")
    return {"id": name, "en": english, "ko": korean}


def first_view(language: str, senses_of_words: dict[str, Any]) -> dict[str, Any]:
    """The three sentences, and by layer the cosines of 1 and 2, 1 and 3, 2 and 3."""
    import elmokit

    model, word = elmokit.load_model(language), FIRST_WORDS[language]
    entry = next(one for one in senses_of_words["entries"] if one["word"] == word)
    labels = {one["id"]: {"en": one["en"], "ko": one["ko"]} for one in entry["senses"]}
    sentences = []
    for text, sense in FIRST_SENTENCES[language]:
        words = model.tokenize(text)
        place = {"words": words, "index": words.index(word)}
        sentences.append({"text": text, **place, "sense": labels[sense]})
    layers = elmokit.Embedder(model, device="cpu").embed([one["words"] for one in sentences])
    vectors = np.stack(
        [states[:, one["index"]] for states, one in zip(layers, sentences, strict=True)], axis=1
    )  # (L, 3, 2D)
    units = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    cosines = np.einsum("lid,ljd->lij", units, units)
    pairs = [
        [round(float(layer[i, j]), 4) for i, j in ((0, 1), (0, 2), (1, 2))] for layer in cosines
    ]
    return {
        "word": word,
        "model": {"name": language, "hash": model.model_hash()},
        "sentences": sentences,
        "cosines": pairs,
        "examples": [
            {"text": text, "split": " ".join(model.tokenize(text))}
            for text in FIRST_EXAMPLES[language]
        ],
    }


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
    senses_by_language = {language: senses(language) for language in FIRST_WORDS}
    for name, pack in [
        *((f"senses.{language}", pack) for language, pack in senses_by_language.items()),
        ("first", {one: first_view(one, pack) for one, pack in senses_by_language.items()}),
        ("results", results()),
    ]:
        (PACKS / f"{name}.json").write_bytes(json_bytes(pack, indent=None))


if __name__ == "__main__":
    main()
