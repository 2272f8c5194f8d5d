"""Publish what was trained and measured: models and taggers in the package, scores in the docs.

    python recipes/publish.py model RUN en --license "CC BY-SA 3.0" --valid wiki/dev.txt.xz \
        --text "English Wikipedia (2015), 62 novels" --trained "100 minutes on one thread"
    python recipes/publish.py tagger ner-en --data DIR --work runs [--vectors FILE] [--further FILE]
    python recipes/publish.py results experiments

``model`` rounds to int8 and scores the rounded weights. ``tagger`` follows
recipes/taggers/NAME.toml: a part of the training set chooses the epoch, the dev file scores the
weights that ship and chooses nothing; the same command goes on with a training that was stopped.
``results`` copies the pages that ``elmokit experiment NAME -o experiments/NAME`` wrote, and puts
the scores on the models' cards. The tables of scores in README and docs are written by hand;
`tests/project/test_published_results.py` compares their numbers.
"""

import argparse
import dataclasses
import json
import random
import re
import shutil
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tagger_files import copy_run, tagger_card

from elmokit.config import from_dict
from elmokit.corpus.readers import read_sentences
from elmokit.errors import InputError
from elmokit.evaluation.perplexity import perplexity
from elmokit.experiments.report import COUNTS_FILE, PLOT_FILE, RESULTS_FILE, TABLE_FILE
from elmokit.experiments.tables import NOTHING
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import write_json
from elmokit.files.sources import plain_suffix
from elmokit.tasks.formats.data_files import find_split
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.run_dir import CONFIG_FILE, HELD_OUT, TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.vectors.vector_files import read_vectors, write_vectors
from elmokit.weights.locate import PACKAGED_MODELS, PACKAGED_RUNS
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import CARD_NAME, read_config

RECIPES = Path(__file__).parent / "taggers"
PAGES = Path(__file__).parents[1] / "docs/results/experiments"
SOURCES = {"en": "table1", "ko": "korean"}
"""The experiment that compares ELMo with static vectors in a language."""
LABELS = {
    "ner-en-uner-ewt": "named entity recognition, UNER-EWT (span F1)",
    "srl-en-propbank-ewt": "semantic role labeling, PropBank-EWT (F1)",
    "sst-5": "sentiment analysis, SST-5 (accuracy)",
    "nli-snli-sample": "natural language inference, SNLI (accuracy)",
    "squad-v1.1": "question answering, SQuAD (F1)",
    "coref-en-litbank": "coreference resolution, LitBank (average F1)",
    "ud-ko-kaist": "part-of-speech tagging, Kaist (accuracy)",
    "ner-ko-kmou": "named entity recognition, KMOU (span F1)",
    "nsmc-rebuilt-ko": "sentiment analysis, NSMC (accuracy)",
    "nli-klue-ko": "natural language inference, KLUE (accuracy)",
    "korquad-v1.0": "question answering, KorQuAD (character F1)",
}
"""What cards and documents call the data sets of the experiments."""
MISSING_SEEDS = re.compile(r" \(\d+ of \d+ seeds\)")
LIMITS = (
    "small, and trained on two processor cores, not for weeks on several GPUs: do not expect the "
    "figures of large models; knows what its text knows, and shares its biases"
)


def publish_model(options: argparse.Namespace) -> Path:
    """Round, score and write a model; return its directory."""
    model, target = load_model(options.model), PACKAGED_MODELS / options.name
    model.round_to("int8")
    form = model.config.char_vocab.normalization
    held_out = read_sentences(options.valid, build_tokenizer(model.tokenizer), normalization=form)
    model.training_metadata = {
        "language": options.name,
        "license": options.license,
        "text": options.text,
        "trained": options.trained,
        "held_out": options.held_out or ", ".join(path.name for path in options.valid),
        "perplexity": dataclasses.asdict(perplexity(model, held_out, precision="fp32")),
        "limits": LIMITS,
    }
    model.save(target, dtype="int8")
    return target


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
        config, *parts, directory / "run", model=recipe["model"], vectors=vectors,
        cache_dir=directory / "layers", resume=True, save_on_signals=True,
        on_epoch=lambda report: print(report, flush=True),
    )  # fmt: skip
    copy = directory / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    most = recipe.get("kept_vectors")
    metadata = copy_run(result.run_dir, copy, vectors=vectors, most=most)
    run = TaskRun.load(copy, cache_dir=directory / "layers")
    score, best = run.evaluate(dev), result.best
    lowercase = ""
    if recipe.get("lowercase_share"):
        corpus = find_task(config.task).divide(dev)
        lower_dev = directory / f"lower-dev{plain_suffix(dev)}"
        units = [lowercased(unit, recipe["lowercase_column"]) for unit in corpus.units]
        lower_dev.write_text(corpus.join(units), "utf-8")
        lowercase = f"; all of it in lower case {run.evaluate(lower_dev).value:.2f}"
    chosen = "the epoch" if "settings" in recipe["card"] else "settings and epoch"
    seen = ", except that errors of an earlier version on it led to the training in lower case"
    except_for = seen if "lower case" in recipe["card"] else ""
    metadata["data"] |= {"train": "train", "dev": HELD_OUT}
    metadata["card"] = {
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
    write_json(copy / CONFIG_FILE, metadata, indent=2)
    (copy / CARD_NAME).write_text(tagger_card(copy), "utf-8")
    with atomic_directory(PACKAGED_RUNS / name) as fresh:
        shutil.copytree(copy, fresh, dirs_exist_ok=True)
    return PACKAGED_RUNS / name


def divide(
    task: str, recipe: dict[str, Any], source: Path, directory: Path, further: Path | None
) -> list[Path]:
    """Write the training set in two parts; random blocks make the second, ``held_out`` long.

    Consecutive sentences stay together in blocks, so that documents mostly do. A share of the
    sentences to train on stands in the file a second time, in lower case.
    """
    corpus, num_held_out = find_task(task).divide(source), recipe["held_out"]
    size = recipe.get("block", 100)
    numbers = range(len(corpus.units))
    blocks = [numbers[start : start + size] for start in numbers[::size]]
    random.Random(0).shuffle(blocks)
    order = list(chain(*blocks))
    train, held_out = (
        [corpus.units[index] for index in sorted(part)]
        for part in (order[num_held_out:], order[:num_held_out])
    )
    if further is not None:
        train += find_task(task).divide(further).units
    if share := recipe.get("lowercase_share"):
        sentences = [unit for unit in train if corpus.size(unit)]
        drawn = random.Random(0).sample(range(len(sentences)), round(share * len(sentences)))
        copies = (
            (sentences[index], lowercased(sentences[index], recipe["lowercase_column"]))
            for index in sorted(drawn)
        )
        train += [lower for given, lower in copies if lower != given]
    paths = [directory / "train.txt", directory / f"{HELD_OUT}.txt"]
    for path, units in zip(paths, (train, held_out), strict=True):
        path.write_text(corpus.join(units), "utf-8")
    return paths


def lowercased(unit: list[str], column: int) -> list[str]:
    """Return the lines of a sentence with its words, in a column from 1, in lower case."""
    lines = []
    for line in unit:
        fields = line.split("\t")
        if len(fields) >= column and not line.startswith("#"):
            fields[column - 1] = fields[column - 1].lower()
        lines.append("\t".join(fields))
    return lines


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


def publish_results(folder: Path) -> list[str]:
    """Copy the pages of the experiments in a folder and score the cards; return their names."""
    names = [path.parent.name for path in sorted(folder.glob(f"*/{TABLE_FILE}"))]
    for name in names:
        title, rest = (folder / name / TABLE_FILE).read_text("utf-8").split("\n", 1)
        if name.endswith("_finetuned"):
            title += ", with a biLM fine-tuned on the text of the task"
        if (folder / name / PLOT_FILE).is_file():
            rest = f"\n![{title.lstrip('# ')}]({name}.png)\n{rest}"
        (PAGES / f"{name}.md").write_text(f"{title}\n{rest}", "utf-8")
        for file in (RESULTS_FILE, PLOT_FILE, COUNTS_FILE):
            if (source := folder / name / file).is_file():
                shutil.copyfile(source, PAGES / f"{name}{source.suffix}")
    for language in SOURCES:
        write_card(language)
    return names


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


def read_published(name: str) -> dict[str, Any]:
    return json.loads((PAGES / f"{name}.json").read_text("utf-8"))


def scores_of(results: dict[str, Any], table: int = 0) -> list[dict[str, str]]:
    """Return the rows of a table by column; how many seeds a score has is left out."""
    header = results["tables"][table]["header"]
    return [
        {name: MISSING_SEEDS.sub("", cell) for name, cell in zip(header, row, strict=True)}
        for row in results["tables"][table]["rows"]
    ]


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
        LABELS[row["data"]]: f"{row['elmo']} (static word vectors: {row['static']}), "
        f"{seeds[row['data'], 1.0]} seeds"
        for row in scores_of(results)
        if row["labels"] == "100 %" and NOTHING not in (row["static"], row["elmo"])
    }
    made = results["made"]
    note = (
        "In percent, of small task models trained on mostly reduced training sets; mean and "
        f"standard deviation over the seeds of each task; scored on {made['scored']}. Not "
        "comparable with published numbers. What was decided after scores were known, and what "
        f"the controls say: docs/results/experiments.md. Made by {made['command']}."
    )
    return {"scores": scores, "scores_note": note}


def main() -> None:
    """Publish, and say what is there now."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    model, tagger, results = map(commands.add_parser, ("model", "tagger", "results"))
    model.add_argument("model", type=Path, help="model directory")
    model.add_argument("name", help="what `--model` calls it, a language code")
    model.add_argument("--trained", required=True, help="how, in words: stages, time, machine")
    model.add_argument("--license", required=True, help="of the text, hence of the weights")
    model.add_argument("--text", required=True, help="what it was trained on")
    model.add_argument("--valid", type=Path, nargs="+", required=True, help="held-out text")
    model.add_argument("--held-out", help="the held-out text in words; default: its file names")
    tagger.add_argument("name", choices=sorted(path.stem for path in RECIPES.glob("*.toml")))
    tagger.add_argument("--data", type=Path, required=True, help="one train… and one dev… file")
    tagger.add_argument("--work", type=Path, required=True, help="where the training is kept")
    tagger.add_argument("--vectors", type=Path, help="static word vectors, if the recipe has any")
    tagger.add_argument("--further", type=Path, help="more training data, if the recipe has any")
    results.add_argument("experiments", type=Path, help="with a folder for each experiment")
    model.set_defaults(publish=publish_model)
    tagger.set_defaults(publish=publish_tagger)
    options = parser.parse_args()
    if options.command == "results":
        print("published:", *publish_results(options.experiments))
    else:
        target = options.publish(options)
        size = sum(path.stat().st_size for path in target.iterdir())
        print(f"{target}: {size:,} bytes\n{(target / CARD_NAME).read_text('utf-8')}")


if __name__ == "__main__":
    main()
