"""Write the text packs of the explorer's page: ``python recipes/explorer_packs.py``.

``packs/senses.{en,ko}.json``: sentences with ambiguous words, split by the tokenizer of the
packaged model. They are written for this project, in ``recipes/explorer/senses.*.txt``. Each word
opens with ``# word | sense: English = Korean | …``, and ``sense: sentence`` follows.
``packs/first.js``: three sentences with one word, which the page opens with, and the cosines of
that word's vectors in every layer of the packaged model, so that nobody waits for the model; a
module, so that nobody waits for the file.
``packs/results.json``: figures of ``docs/results`` that the page shows, with where they are from.
``packs/answers.json``: what the packaged taggers say of the page's examples, for copies of the page
without a server.
"""

import json
import re
from pathlib import Path
from typing import Any

from publish import SOURCES, is_made_with, read_published
from scipy.spatial.distance import pdist

import elmokit
from elmokit.experiments.tables import NOTHING
from elmokit.files.json_files import json_bytes, jsonable
from elmokit.weights.locate import TASK_RUNS

ROOT = Path(__file__).parents[1]
PACKS = ROOT / "src/elmokit/web/page/static/packs"
PRETRAINING = ROOT / "docs/results/pretraining.md"
CURVES = {
    "en": (0.0, [("from scratch", 88.0), ("going on", 34.2)]),
    "ko": (0.0, [("first stage of 36 M", 36.0), ("second stage of 54 M", 54.0)]),
}
"""By model: millions of words read before, then the stages of `PRETRAINING` and their lengths."""
KEYS = ("id", "en", "ko")
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
    path = Path(__file__).parent / f"explorer/senses.{language}.txt"
    model = elmokit.load_model(language)
    entries: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            word, *labels = line[2:].split(" | ")
            parts = [re.fullmatch("(.*?): (.*?) = (.*)", label) for label in labels]
            of_word = [dict(zip(KEYS, part.groups(), strict=True)) for part in parts if part]
            entries.append({"word": word, "senses": of_word, "sentences": []})
            continue
        sense, text = line.split(": ", 1)
        entry = entries[-1]
        tokens = elmokit.tokenize(model, text).tokens
        words = [token.text for token in tokens]
        places = [i for i, one in enumerate(words) if one.lower() == entry["word"]]
        assert places, line
        assert sense in [one["id"] for one in entry["senses"]], line
        entry["sentences"].append({
            "words": words, "index": places[0], "sense": sense,
            "text": text, "spans": [[token.start, token.end] for token in tokens],
        })  # fmt: skip
    return {"language": language, "entries": entries}


def first_view(language: str, senses_of_words: dict[str, Any]) -> dict[str, Any]:
    """The three sentences, and by layer the cosines of 1 and 2, 1 and 3, 2 and 3."""
    model, word = elmokit.load_model(language), FIRST_WORDS[language]
    entry = next(one for one in senses_of_words["entries"] if one["word"] == word)
    labels = {one["id"]: {"en": one["en"], "ko": one["ko"]} for one in entry["senses"]}
    sentences = []
    for text, sense in FIRST_SENTENCES[language]:
        words = model.tokenize(text)
        place = {"words": words, "index": words.index(word)}
        sentences.append({"text": text, **place, "sense": labels[sense]})
    layers = elmokit.Embedder(model, device="cpu").embed([one["words"] for one in sentences])
    at = [states[:, one["index"]] for states, one in zip(layers, sentences, strict=True)]
    pairs = [(1 - pdist(vectors, "cosine")).round(4).tolist() for vectors in zip(*at, strict=True)]
    made_with = {"name": language, "hash": model.model_hash()}
    return {
        "word": word, "model": made_with, "sentences": sentences, "cosines": pairs,
        "examples": FIRST_EXAMPLES[language],
    }  # fmt: skip


def results() -> dict[str, Any]:
    """Layer weights that tasks learned at the input; scores by labels; curves of pre-training."""
    rows, made = _published("figure2", "en")
    weights = [
        {"task": row[1], "weights": [float(cell.split()[0]) for cell in row[3:6]],
         "gamma": float(row[6].split()[0])}
        for row in rows if row[0] == "input"
    ]  # fmt: skip
    return {
        "mixture": {**made, "rows": weights},
        "labels": {language: _scores(language) for language in SOURCES},
        "training": {language: _curve(language) for language in CURVES},
    }


def _scores(language: str) -> dict[str, Any]:
    """Scores of static vectors and of ELMo, with a tenth of the labels and with all of them."""
    rows, made = _published(SOURCES[language], language)
    scores = [
        {"task": row[0], "percent": float(row[2].split()[0]), "metric": row[3],
         "static": float(row[5].split()[0]), "elmo": float(row[6].split()[0])}
        for row in rows if NOTHING not in row[5:7]
    ]  # fmt: skip
    return {**made, "rows": scores}


def _published(name: str, model: str) -> tuple[list[list[str]], dict[str, Any]]:
    """Rows of the first table of an experiment, and what it was made with."""
    result = read_published(name)
    made = result["made"]
    is_of_package = is_made_with(result, elmokit.load_model(model).model_hash())
    return result["tables"][0]["rows"], {
        "page": f"docs/results/experiments/{name}.md",
        **{key: made[key] for key in ("command", "hardware", "written")},
        "earlier_model": None if is_of_package else made["biLM"].split()[-1],
    }


def _curve(language: str) -> list[list[list[float]]]:
    """Stages of the packaged model: pairs of millions of words read and perplexity."""
    lines = PRETRAINING.read_text(encoding="utf-8").splitlines()
    read, stages = CURVES[language]
    curve: list[list[list[float]]] = []
    for name, length in stages:
        (place,) = (i for i, line in enumerate(lines) if line.startswith(f"| {name} |"))
        header = next(line for line in reversed(lines[:place]) if "%" in line and line[0] == "|")
        shares = [float(share) for share in re.findall(r"([\d.]+) %", header)]
        perplexities = [float(cell) for cell in lines[place].split("|")[2:-1]]
        curve.append([
            [round(read + share / 100 * length, 2), value]
            for share, value in zip(shares, perplexities, strict=True)
        ])  # fmt: skip
        read += length
    return curve


def answers() -> dict[str, dict[str, Any]]:
    """By tagger: its task, and what it says of each example sentence of the page."""
    tagged: dict[str, dict[str, Any]] = {}
    for name in TASK_RUNS.names():
        run = elmokit.TaskRun.load(name)
        # those among which the page offers to choose
        locale = PACKS.parent / f"locales/{name.rsplit('-', maxsplit=1)[-1]}.js"
        match = re.search(r"sentences: (\[.*?),?\s*\]", locale.read_text("utf-8"), re.DOTALL)
        assert match is not None
        texts = json.loads(f"{match[1]}]")
        records = [list(run.predict_json([text])) for text in texts]
        tagged[name] = {"task": run.task.name, "answers": dict(zip(texts, records, strict=True))}
    return jsonable(tagged)


def main() -> None:
    """Write all packs."""
    first: dict[str, Any] = {}
    packs: dict[str, Any] = {"results": results(), "answers": answers()}
    for language in FIRST_WORDS:
        packs[f"senses.{language}"] = pack = senses(language)
        first[language] = first_view(language, pack)
    for name, pack in packs.items():
        (PACKS / f"{name}.json").write_bytes(json_bytes(pack, indent=None))
    (PACKS / "first.js").write_bytes(b"export const first = " + json_bytes(first, indent=None))


if __name__ == "__main__":
    main()
