"""Publish what was trained and measured: models and taggers in the package, scores in the docs.

    python recipes/publish.py model RUN en --license "CC BY-SA 3.0" --valid wiki/dev.txt.xz \
        --text "English Wikipedia (2015), 62 novels" --trained "100 minutes on one thread"
    python recipes/publish.py tagger ner-en --data DIR --work runs [--vectors FILE] [--further FILE]
    python recipes/publish.py results experiments

``model`` rounds to int8 and scores the rounded weights. ``tagger`` follows
recipes/taggers/NAME.toml: a part of the training set chooses the epoch, the dev file scores the
weights that ship and chooses nothing; the same command goes on with a training that was stopped.
``results`` copies the pages that ``elmokit experiment NAME -o experiments/NAME`` wrote. All three
fill the tables between the marks of the documents (``<!-- scores en: begin -->``), and ``results``
the scores on the cards.
"""

import argparse
import dataclasses
import json
import random
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.config import from_dict
from elmokit.corpus.readers import read_sentences
from elmokit.errors import InputError
from elmokit.evaluation.perplexity import perplexity
from elmokit.experiments.definitions import EXPERIMENTS
from elmokit.experiments.report import PLOT_FILE, RESULTS_FILE, TABLE_FILE
from elmokit.experiments.tables import NOTHING
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import json_bytes, read_json
from elmokit.tasks.formats.reading import find_split
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import CONFIG_FILE, HELD_OUT, read_metadata
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.vectors.vector_files import read_vectors, write_vectors
from elmokit.weights.locate import CONFIG_NAME, PACKAGED_MODELS, PACKAGED_RUNS
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import SPELLING_NAME, read_config

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/results/experiments"
RECIPES = Path(__file__).parent / "taggers"
MAX_MODEL_BYTES, MAX_TAGGER_BYTES = 20_000_000, 3_000_000
LIMITS = (
    "small, and trained on two processor cores, not for weeks on several GPUs: expect gains over "
    "static vectors, not the figures of large models; knows what its text knows, and shares its "
    "biases"
)
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
CONDITION_TABLES = ("table2", "table3", "controls")
CONTROLS = ("static, as wide as elmo", "layer 0")
"""Columns of the controls that stand beside the scores."""
NAMES = tomllib.loads((Path(__file__).parent / "published.toml").read_text("utf-8"))
LABELS, WORDS = NAMES["labels"], NAMES["words"]
SEED_MARKS = {"1": " †", "2": " ‡"}
"""What stands after p where a condition has few seeds; the documents explain the marks."""
MISSING_SEEDS = re.compile(r" \(\d+ of \d+ seeds\)")


def publish_model(options: argparse.Namespace) -> Path:
    """Round, score and write a model; return its directory."""
    model = load_model(options.model)
    model.round_to("int8")
    form = model.config.char_vocab.normalization
    tokenizer = build_tokenizer(model.tokenizer)
    report = perplexity(model, read_sentences(options.valid, tokenizer, normalization=form))
    model.training_metadata = {
        "language": options.name,
        "license": options.license,
        "text": options.text,
        "trained": options.trained,
        "held_out": options.held_out or ", ".join(path.name for path in options.valid),
        "perplexity": dataclasses.asdict(report),
        "limits": LIMITS,
    }
    return save_if_small(model, PACKAGED_MODELS / options.name, MAX_MODEL_BYTES)


def publish_spelling(options: argparse.Namespace) -> Path:
    """Learn how words outside the vocabulary of a packaged model are spelled."""
    target = PACKAGED_MODELS / options.name
    model = load_model(target)
    form, vocab = model.config.char_vocab.normalization, model.word_vocab
    assert vocab is not None
    words = {
        word
        for sentence in read_sentences(
            options.text, build_tokenizer(model.tokenizer), normalization=form
        )
        for word in sentence
        if word not in vocab
    }
    spelling = SpellingModel.train(sorted(words))
    spelling.write(target / SPELLING_NAME)
    config = read_json(target / CONFIG_NAME, advice="") | {"spelling_sha256": spelling.sha256}
    write_bytes(target / CONFIG_NAME, json_bytes(config, indent=2))
    return target


def save_if_small(model: Any, target: Path, max_bytes: int) -> Path:
    """Save in int8 what may ship; the packaged version stays if this one is too large."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model", dtype="int8")
        size = size_of(Path(folder) / "model")
    if size > max_bytes:
        raise InputError(f"{target.name} has {size:,} bytes, more than {max_bytes:,}: too large.")
    target.parent.mkdir(exist_ok=True)
    model.save(target, dtype="int8")
    return target


def size_of(directory: Path) -> int:
    """Return the bytes of the files in a directory."""
    return sum(path.stat().st_size for path in directory.iterdir())


def publish_tagger(options: argparse.Namespace) -> Path:
    """Train, or go on, round, score and write a tagger; return its directory."""
    name = options.name
    recipe = tomllib.loads((RECIPES / f"{name}.toml").read_text("utf-8"))
    for option in ("vectors", "further"):
        if bool(recipe.get(option)) != (getattr(options, option) is not None):
            raise InputError(f"--{option}: {RECIPES / name}.toml says {recipe.get(option)!r}.")
    config = from_dict(TaskRunConfig, recipe["run"], source=name)
    directory = options.work / name
    directory.mkdir(parents=True, exist_ok=True)
    suffixes = find_task(config.task).suffixes
    source, dev = (find_split(options.data, split, suffixes) for split in ("train", "dev"))
    vectors = first_vectors(recipe, options.vectors, directory)
    parts = divide(config.task, recipe, source, directory, options.further)
    result = train_task(
        config,
        *parts,
        directory / "run",
        model=recipe["model"],
        vectors=vectors,
        cache_dir=directory / "layers",
        resume=True,
        save_on_signals=True,
        on_epoch=lambda report: print(report, flush=True),
    )
    run = TaskRun.load(result.run_dir, vectors=vectors, cache_dir=directory / "layers")
    if vectors is not None:
        run.keep_vectors()
        run.metadata["vectors"] |= {"path": vectors.name}
    run.round_to("int8")
    run.metadata["data"] |= {"train": "train", "dev": HELD_OUT}
    score, best = run.evaluate(dev), result.best
    lowercase = ""
    if config.train.lowercase_share:
        lower = run.evaluate(dev, lowercase=True).value
        lowercase = f"; all of it in lower case {lower:.2f}"
    chosen = "the epoch" if "settings" in recipe["card"] else "settings and epoch"
    seen = ", except that its errors led to the training in lower case"
    except_for = seen if "lower case" in recipe["card"] else ""
    run.metadata["card"] = {
        "name": name,
        **recipe["card"],
        **({"vectors": recipe["vectors"]} if vectors else {}),
        **({"further training data": recipe["further"]} if options.further else {}),
        "trained": f"epoch {best.epoch} of {result.num_epochs}, {result.seconds / 60:.0f} minutes "
        "on one thread of a busy processor",
        "held out": f"{recipe['held_out']:,} sentences of the training set, used to choose "
        f"{chosen}: {best.dev.metric} {best.dev.value:.2f}",
        "made by": f"`python recipes/publish.py tagger {name} --data {options.data.name}"
        f"{' --vectors FILE' if vectors else ''}{' --further FILE' if options.further else ''}"
        " --work runs`",
        "score": score.value,
        "scored": f"The dev set ({dev.name}, {len(score.counts):,} sentences), not used to choose "
        f"settings or epoch{except_for}, with the weights in this directory: "
        f"**{score.metric} {score.value:.2f}**{lowercase}. In percent.",
        "scores": {
            label: {key: getattr(part, key) for key in ("precision", "recall", "f1", "gold")}
            for label, part in score.by_label.items()
        },
    }
    return save_if_small(run, PACKAGED_RUNS / name, MAX_TAGGER_BYTES)


def divide(
    task: str, recipe: dict[str, Any], source: Path, directory: Path, further: Path | None
) -> list[Path]:
    """Write the training set in two parts; random blocks make the second, ``held_out`` long.

    Consecutive sentences stay together in blocks, so that documents mostly do.
    """
    corpus, size = find_task(task).divide(source), recipe.get("block", 100)
    numbers = range(len(corpus.units))
    blocks = [numbers[start : start + size] for start in numbers[::size]]
    random.Random(0).shuffle(blocks)
    order = [number for block in blocks for number in block]
    more = find_task(task).divide(further).units if further is not None else []
    paths = []
    for name, part, others in (
        ("train", order[recipe["held_out"] :], more),
        (HELD_OUT, order[: recipe["held_out"]], []),
    ):
        units = [corpus.units[index] for index in sorted(part)]
        paths.append(directory / f"{name}.txt")
        write_bytes(paths[-1], corpus.join([*units, *others]).encode())
    return paths


def first_vectors(recipe: dict[str, Any], source: Path | None, directory: Path) -> Path | None:
    """Write the vectors that the tagger has, once: the training knows the file by its hash.

    The most frequent words come first; a truncated SVD leaves ``vector_dim`` dimensions.
    """
    target = directory / "vectors.bin"
    if source is None or target.exists():
        return None if source is None else target
    vectors = read_vectors(source).first(recipe["num_vectors"])
    values = vectors.values[2:]
    if dim := recipe.get("vector_dim"):
        values = values @ np.linalg.svd(values, full_matrices=False).Vh[:dim].T
    write_vectors(target, vectors.words, values)
    return target


# Scores in the documents and on the cards.


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
        pages = {
            ".md": f"{title}\n{rest}",
            ".json": (folder / name / RESULTS_FILE).read_text("utf-8"),
        }
        for suffix, text in pages.items():
            write_bytes(PAGES / f"{name}{suffix}", text.encode())
    for language in SOURCES:
        write_card(language)
    return names


def read_published(name: str) -> dict[str, Any]:
    """Return the results of an experiment as they are published."""
    return json.loads((PAGES / f"{name}.json").read_text("utf-8"))


def columns_of(table: dict[str, Any], *names: str) -> list[tuple[str, ...]]:
    """Return some columns of a table of a results file, by their names."""
    places = [table["header"].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in table["rows"]]


def scores_table(results: dict[str, Any], language: str, written_in: str) -> str:
    """Return the scores with all labels and a tenth of them; tasks without one are left out.

    The controls stand beside them where they have run: in English.
    """
    scores, gains = results["tables"][:2]
    by_row = {
        (dataset, labels): tuple(MISSING_SEEDS.sub("", cell) for cell in pair)
        for dataset, labels, *pair in columns_of(scores, "data", "labels", "static", "elmo")
    }
    columns = ("condition", "data", "labels", "p (Holm)", "seeds")
    against = {
        (dataset, labels): rest
        for condition, dataset, labels, *rest in columns_of(gains, *columns)
        if condition == "elmo"
    }
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
        beside = controls.get(dataset, (NOTHING,) * 2) if controls else ()
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
    for dataset, *cells in columns_of(table, "data", *conditions):
        scores = tuple(MISSING_SEEDS.sub("", cell) for cell in cells)
        if set(scores) != {NOTHING}:
            lines.append((LABELS[dataset]["en"], *with_best_bold(scores)))
    return as_table(lines)


def with_best_bold(scores: tuple[str, ...]) -> list[str]:
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
    """Return lines of cells as a table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_tables(document: str) -> str:
    """Return a document's text with the tables that its marks name."""
    text, written_in = (ROOT / document).read_text("utf-8"), DOCUMENTS[document]
    tables = {
        **{f"scores {language}": (scores_table, name, language, written_in)
           for language, name in SOURCES.items()},
        **{f"scores {name}": (conditions_table, name) for name in CONDITION_TABLES},
    }  # fmt: skip
    for mark, (build, name, *rest) in tables.items():
        if f"<!-- {mark}: begin -->" in text:
            text = between(text, mark, build(read_published(name), *rest))
    if "<!-- taggers: begin -->" in text:
        text = between(text, "taggers", taggers_table(written_in))
    return text


def between(text: str, mark: str, content: str) -> str:
    """Return a text with other content between two marks."""
    begin, end = (f"<!-- {mark}: {edge} -->" for edge in ("begin", "end"))
    return f"{text.split(begin)[0]}{begin}\n{content}\n{end}{text.split(end)[1]}"


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
    scores = {}
    for dataset, labels, *pair in columns_of(
        results["tables"][0], "data", "labels", "static", "elmo"
    ):
        if labels == "100 %" and NOTHING not in pair:
            static, elmo = (MISSING_SEEDS.sub("", cell) for cell in pair)
            text = f"{elmo} (static word vectors: {static}), {seeds[dataset, 1.0]} seeds"
            scores[LABELS[dataset]["en"]] = text
    made = results["made"]
    note = (
        "In percent, of small task models trained on mostly reduced training sets; mean and "
        f"standard deviation over the seeds of each task; scored on {made['scored']}. Not "
        "comparable with published numbers. What was decided after scores were known, and what "
        f"the controls say: docs/results/experiments.md. Made by {made['command']}."
    )
    return {"scores": scores, "scores_note": note}


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_file(path) as temp_path:
        temp_path.write_bytes(content)


def main() -> None:
    """Publish, fill the tables of the documents, and say what is there now."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    model = commands.add_parser("model")
    model.add_argument("model", type=Path, help="model directory")
    model.add_argument("name", help="what `--model` calls it, a language code")
    model.add_argument("--trained", required=True, help="how, in words: stages, time, machine")
    model.add_argument("--license", required=True, help="of the text, hence of the weights")
    model.add_argument("--text", required=True, help="what it was trained on")
    model.add_argument("--valid", type=Path, nargs="+", required=True, help="held-out text")
    model.add_argument("--held-out", help="the held-out text in words; default: its file names")
    spelling = commands.add_parser("spelling")
    spelling.add_argument("name", help="what `--model` calls the model")
    spelling.add_argument("text", type=Path, nargs="+", help="of its training")
    tagger = commands.add_parser("tagger")
    tagger.add_argument("name", choices=sorted(path.stem for path in RECIPES.glob("*.toml")))
    tagger.add_argument("--data", type=Path, required=True, help="one train… and one dev… file")
    tagger.add_argument("--work", type=Path, required=True, help="where the training is kept")
    tagger.add_argument("--vectors", type=Path, help="static word vectors, if the recipe has any")
    tagger.add_argument("--further", type=Path, help="more training data, if the recipe has any")
    results = commands.add_parser("results")
    results.add_argument("experiments", type=Path, help="with a folder for each experiment")
    options = parser.parse_args()
    if options.command == "results":
        print("published:", *publish_results(options.experiments))
    else:
        publish = {
            "model": publish_model, "spelling": publish_spelling, "tagger": publish_tagger,
        }  # fmt: skip
        target = publish[options.command](options)
        print(f"{target}: {size_of(target):,} bytes\n{(target / 'README.md').read_text('utf-8')}")
    for document in DOCUMENTS:
        write_bytes(ROOT / document, with_tables(document).encode())


if __name__ == "__main__":
    with exit_on_user_error():
        main()
