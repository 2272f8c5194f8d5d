"""Published scores: pages of experiments, tables in documents, cards of models (`publish.py`)."""

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.experiments.definitions import EXPERIMENTS
from elmokit.experiments.report import COUNTS_FILE, PLOT_FILE, RESULTS_FILE, TABLE_FILE
from elmokit.experiments.tables import NOTHING
from elmokit.files.atomic import atomic_file
from elmokit.tasks.runs.run_dir import CONFIG_FILE, read_metadata
from elmokit.weights.locate import PACKAGED_MODELS, PACKAGED_RUNS
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import read_config

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/results/experiments"
DOCUMENTS = {
    "README.md": "en",
    "README.ko.md": "ko",
    "docs/results/experiments.md": "en",
    "docs/ko/results/index.md": "ko",
    "docs/guides/taggers.md": "en",
    "docs/ko/guides/taggers.md": "ko",
}
"""Documents with tables between marks, and their language."""
SOURCES = {"en": "table1", "ko": "korean"}
"""The experiment that compares ELMo with static vectors in a language."""
PAIR = ("static", "elmo")
CONTROLS = ("static, as wide as elmo", "layer 0")
"""Columns of the controls that stand beside the scores."""
NAMES = tomllib.loads((Path(__file__).parent / "published.toml").read_text("utf-8"))
LABELS, WORDS = NAMES["labels"], NAMES["words"]
SEED_MARKS = {"1": " †", "2": " ‡"}
"""What stands after p where a condition has few seeds; the documents explain the marks."""
MARKED = re.compile(r"(<!-- (scores \w+|taggers): begin -->).*?(<!-- \2: end -->)", re.DOTALL)
"""A table in a document, between its marks."""
MISSING_SEEDS = re.compile(r" \(\d+ of \d+ seeds\)")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_file(path) as temp_path:
        temp_path.write_bytes(content)


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def publish_results(folder: Path) -> list[str]:
    """Copy the pages of the experiments in a folder and score the cards; return their names."""
    names = [path.parent.name for path in sorted(folder.glob(f"*/{TABLE_FILE}"))]
    if not names:
        raise InputError(f"{folder} has no experiment, a folder NAME with {TABLE_FILE}.")
    for name in names:
        experiment = name.removesuffix("_finetuned")
        if experiment not in EXPERIMENTS:
            raise InputError(f"{folder / name} is no experiment: expected {list(EXPERIMENTS)}.")
        title, rest = (folder / name / TABLE_FILE).read_text("utf-8").split("\n", 1)
        if name != experiment:
            title += ", with a biLM fine-tuned on the text of the task"
        if (plot := folder / name / PLOT_FILE).is_file():
            rest = f"\n![{title.lstrip('# ')}]({name}.png)\n{rest}"
            write_bytes(PAGES / f"{name}.png", plot.read_bytes())
        write_bytes(PAGES / f"{name}.md", f"{title}\n{rest}".encode())
        write_bytes(PAGES / f"{name}.json", (folder / name / RESULTS_FILE).read_bytes())
        if (counts := folder / name / COUNTS_FILE).is_file():
            write_bytes(PAGES / f"{name}.npz", counts.read_bytes())
    for language in SOURCES:
        write_card(language)
    return names


def read_published(name: str) -> dict[str, Any]:
    return json.loads((PAGES / f"{name}.json").read_text("utf-8"))


def columns_of(table: dict[str, Any], *names: str) -> list[tuple[str, ...]]:
    """Return some columns of a table, by their names; how many seeds a score has is left out."""
    places = [table["header"].index(name) for name in names]
    return [tuple(MISSING_SEEDS.sub("", row[place]) for place in places) for row in table["rows"]]


def scores_table(results: dict[str, Any], language: str, written_in: str) -> str:
    """Return the scores with all labels and a tenth of them; tasks without one are left out.

    The controls stand beside them where they have run: in English.
    """
    scores, gains = results["tables"][:2]
    by_row = {(row[0], row[1]): row[2:] for row in columns_of(scores, "data", "labels", *PAIR)}
    columns = ("condition", "data", "labels", "p (Holm)", "seeds")
    against = {row[1:3]: row[3:] for row in columns_of(gains, *columns) if row[0] == "elmo"}
    controls = dict[str, tuple[str, ...]]()
    if language == "en":
        table = read_published("controls")["tables"][0]
        controls = {row[0]: row[1:] for row in columns_of(table, "data", *CONTROLS)}
    words = WORDS[written_in]
    header = [name for place, name in enumerate(words["header"]) if controls or place not in (1, 2)]
    lines = [(words[language], *header), ("---",) * (len(header) + 1)]
    for dataset in dict.fromkeys(dataset for dataset, _ in by_row):
        static, elmo = by_row[dataset, "100 %"]
        if static == elmo == NOTHING:
            continue
        beside = controls.get(dataset, (NOTHING, NOTHING)) if controls else ()
        p, seeds = against.get((dataset, "100 %"), (NOTHING, ""))
        few = by_row.get((dataset, "10 %"), (NOTHING, NOTHING))
        lines.append((
            LABELS[dataset][written_in],
            *with_best_bold((static, *beside, elmo)),
            p + SEED_MARKS.get(seeds, ""),
            NOTHING if NOTHING in few else " → ".join(few),
        ))  # fmt: skip
    table = as_table(lines)
    return table.replace(" %", "%") if written_in == "ko" else table  # as Korean writes it


def conditions_table(results: dict[str, Any]) -> str:
    """Return a row for each task with a score and a column for each condition, the best in bold."""
    table = results["tables"][0]
    conditions = table["header"][table["header"].index("examples") + 1 :]
    lines = [("", *conditions), ("---",) * (len(conditions) + 1)]
    for dataset, *scores in columns_of(table, "data", *conditions):
        if set(scores) != {NOTHING}:
            lines.append((LABELS[dataset]["en"], *with_best_bold(scores)))
    return as_table(lines)


def with_best_bold(scores: Sequence[str]) -> list[str]:
    """Return scores with the highest in bold, if there are two or more."""
    values = [None if score == NOTHING else float(score.split()[0]) for score in scores]
    known = [value for value in values if value is not None]
    best = max(known) if len(known) > 1 or len(scores) > 2 else None
    return [
        f"**{score}**" if value is not None and value == best else score
        for score, value in zip(scores, values, strict=True)
    ]


def taggers_table(written_in: str) -> str:
    """Return the scores and sizes of the packaged taggers."""
    words = WORDS[written_in]
    rows = [f"| | {words['dev']} | MB |", "|---|---|---|"]
    for directory in sorted(path.parent for path in PACKAGED_RUNS.glob(f"*/{CONFIG_FILE}")):
        facts = read_metadata(directory)
        score = f"{words[facts['dev']['metric']]} {facts['card']['score']:.2f}"
        rows.append(f"| `{directory.name}` | {score} | {size_of(directory) / 1e6:.1f} |")
    return "\n".join(rows)


def as_table(lines: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_tables(document: str) -> str:
    """Return a document's text with the tables that its marks name."""

    def filled(match: re.Match[str]) -> str:
        begin, mark, end = match.groups()
        return f"{begin}\n{table_of(mark, DOCUMENTS[document])}\n{end}"

    return MARKED.sub(filled, (ROOT / document).read_text("utf-8"))


def table_of(mark: str, written_in: str) -> str:
    """Return the table that a mark names: taggers, or scores of a language or an experiment."""
    if mark == "taggers":
        return taggers_table(written_in)
    name = mark.removeprefix("scores ")
    if name in SOURCES:
        return scores_table(read_published(SOURCES[name]), name, written_in)
    return conditions_table(read_published(name))


def write_card(language: str) -> None:
    """Put the published scores onto the card of a packaged model, if they are that model's."""
    directory, results = PACKAGED_MODELS / language, read_published(SOURCES[language])
    model = load_model(directory)
    facts = model.training_metadata
    for fact in ("scores", "scores_note"):
        facts.pop(fact, None)
    if is_made_with(results, model.model_hash()):
        facts |= card_scores(results)
    model.save(directory, dtype=read_config(directory).weights or "float16")


def is_made_with(results: dict[str, Any], model_hash: str) -> bool:
    """Return whether an experiment was made with the model of this hash."""
    return model_hash.startswith(results["made"]["biLM"].split()[-1])


def card_scores(results: dict[str, Any]) -> dict[str, Any]:
    """Return the scores with all labels, by task, and what must be known to read them."""
    seeds = {
        (one["dataset"], one["share"]): len(one["seeds"])
        for one in results["comparisons"]
        if one["condition"] == "elmo"
    }
    scores = {
        LABELS[dataset]["en"]: f"{elmo} (static word vectors: {static}), "
        f"{seeds[dataset, 1.0]} seeds"
        for dataset, labels, static, elmo in columns_of(
            results["tables"][0], "data", "labels", *PAIR
        )
        if labels == "100 %" and NOTHING not in (static, elmo)
    }
    made = results["made"]
    note = (
        "In percent, of small task models trained on mostly reduced training sets; mean and "
        f"standard deviation over the seeds of each task; scored on {made['scored']}. Not "
        "comparable with published numbers. What was decided after scores were known, and what "
        f"the controls say: docs/results/experiments.md. Made by {made['command']}."
    )
    return {"scores": scores, "scores_note": note}
