"""Train a tagger on a packaged biLM and make it one that ships: int8, scored once on dev.

    python recipes/package_tagger.py NAME --data DIR --work runs [--vectors FILE] [--further FILE]

Reads recipes/taggers/NAME.toml. A part of the training set chooses the epoch, as it chose the
settings; the dev file scores the weights that ship and chooses nothing. WORK keeps the training:
the same command continues one that was stopped, and packages one that is finished. Writes
src/elmokit/data/taggers/NAME, and the scores into the pages that have them.
"""

import argparse
import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.config import from_dict
from elmokit.files.atomic import atomic_file
from elmokit.files.hashing import file_sha256
from elmokit.files.json_files import read_json, write_json
from elmokit.tasks.formats.splits import find_split
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import CONFIG_FILE, HELD_OUT, read_metadata
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import TaskResult, train_task
from elmokit.tasks.task import TaskScore
from elmokit.vectors.vector_files import read_vectors, write_vectors
from elmokit.weights.locate import PACKAGED_RUNS

RECIPES = Path(__file__).parent / "taggers"
MAX_BYTES = 3_000_000
"""Of all files of a tagger in the package."""
PART_NAMES = ("train", HELD_OUT)
ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "en",
    "README.ko.md": "ko",
    "docs/guides/taggers.md": "en",
    "docs/ko/guides/taggers.md": "ko",
}
"""Pages with the table of scores, and what they are written in."""
WORDS_OF_TABLE = {
    "en": {"dev": "dev", "accuracy": "accuracy", "span F1": "span F1"},
    "ko": {"dev": "개발 데이터", "accuracy": "정확도", "span F1": "개체명 F1"},
}
MARKS = ("<!-- taggers: begin -->", "<!-- taggers: end -->")


@dataclass(frozen=True, kw_only=True)
class TaggerRecipe:
    """What a tagger is made of."""

    model: str
    """Name of the packaged biLM."""
    held_out: int
    """Sentences of the training set that choose the epoch."""
    block: int = 100
    """Consecutive sentences that stay together, so that documents mostly do."""
    run: TaskRunConfig
    """The task model and its training."""
    vectors: str = ""
    """What the static vectors of ``--vectors`` are, for the card; empty: none."""
    num_vectors: int = 0
    """The first so many vectors are read, and ship with the tagger; the most frequent words come
    first in a file of `elmokit vectors`."""
    vector_dim: int = 0
    """Dimensions that are left by a truncated SVD; 0: the vectors as they are."""
    further: str = ""
    """What the training file of ``--further`` is; it is trained on, too, and never held out."""
    card: dict[str, Any]
    """Facts for `run_card`: ``language``, ``license``, ``data``, ``limits``, …"""

    def __post_init__(self) -> None:
        if bool(self.vectors) != (self.num_vectors > 0):
            raise ValueError("`vectors` and `num_vectors` need each other")


def read_recipe(name: str) -> TaggerRecipe:
    """Read the recipe of a tagger."""
    path = RECIPES / f"{name}.toml"
    return from_dict(TaggerRecipe, tomllib.loads(path.read_text("utf-8")), source=str(path))


def divide(
    recipe: TaggerRecipe, source: Path, directory: Path, further: Path | None = None
) -> tuple[Path, Path]:
    """Write the training set in two parts; random blocks make the second, ``held_out`` long.

    What ``further`` has is added to the first.
    """
    task = find_task(recipe.run.task)
    data = task.divide(source)
    numbers = range(len(data.units))
    blocks = [numbers[start : start + recipe.block] for start in numbers[:: recipe.block]]
    random.Random(0).shuffle(blocks)
    order = [number for block in blocks for number in block]
    train, held_out = (directory / f"{name}.txt" for name in PART_NAMES)
    parts = {train: order[recipe.held_out :], held_out: order[: recipe.held_out]}
    for path, part in parts.items():
        units = [data.units[index] for index in sorted(part)]
        if further is not None and path == train:
            units += task.divide(further).units
        text = data.join(units)
        with atomic_file(path) as temp_path:
            temp_path.write_text(text, encoding="utf-8")
    return train, held_out


def first_vectors(recipe: TaggerRecipe, source: Path | None, directory: Path) -> Path | None:
    """Write the vectors that the tagger has, once; return their file.

    They are not made again, because the training knows the file by its hash.
    """
    if source is None:
        return None
    target, note = directory / "vectors.bin", directory / "vectors.json"
    made = {
        "source": file_sha256(source), "num_vectors": recipe.num_vectors,
        "vector_dim": recipe.vector_dim,
    }  # fmt: skip
    if note.exists():
        if read_json(note, advice=f"Remove {directory}.") != made:
            raise SystemExit(f"{target} is of other vectors than {source}: remove {directory}.")
        return target
    vectors = read_vectors(source).first(recipe.num_vectors)
    values = vectors.values[2:]
    if recipe.vector_dim:
        components = np.linalg.svd(values, full_matrices=False).Vh[: recipe.vector_dim]
        values = values @ components.T
    write_vectors(target, vectors.words, values)
    write_json(note, made)
    return target


def train(
    recipe: TaggerRecipe, source: Path, directory: Path, vectors: Path | None, further: Path | None
) -> TaskResult:
    """Train, or go on, in ``directory/run``."""
    parts, run_dir = divide(recipe, source, directory, further), directory / "run"
    return train_task(
        recipe.run, *parts, run_dir, model=recipe.model, vectors=vectors,
        cache_dir=directory / "layers",
        resume=True, save_on_signals=True,
        on_epoch=lambda report: print(
            f"epoch {report.epoch}: loss {report.loss:.4f}, held out {report.dev.value:.2f}",
            flush=True,
        ),
    )  # fmt: skip


def facts(
    name: str,
    recipe: TaggerRecipe,
    result: TaskResult,
    score: TaskScore,
    lower: TaskScore | None,
    dev: Path,
) -> dict[str, Any]:
    """Return the facts of the card; ``lower`` is the score of the dev set in lower case."""
    details = "".join(f", {key} {value:.2f}" for key, value in score.details.items())
    if lower is not None:
        details += f"; all of it in lower case {lower.value:.2f}"
    seen = ", except that its errors led to the training in lower case"
    except_for = seen if "lower case" in recipe.card else ""
    epochs = f"epoch {result.best.epoch} of {result.num_epochs}"
    chosen = "the epoch" if "settings" in recipe.card else "settings and epoch"
    return {
        "name": name,
        **recipe.card,
        **({"vectors": recipe.vectors} if recipe.vectors else {}),
        **({"further training data": recipe.further} if recipe.further else {}),
        "trained": f"{epochs}, {result.seconds / 60:.0f} minutes on one thread of a busy processor",
        "held out": f"{recipe.held_out:,} sentences of the training set, used to choose {chosen}: "
        f"{result.best.dev.metric} {result.best.dev.value:.2f}",
        "made by": f"`python recipes/package_tagger.py {name} --data {dev.parent.name}"
        f"{' --vectors FILE' if recipe.vectors else ''}"
        f"{' --further FILE' if recipe.further else ''} --work runs`",
        "score": score.value,
        "scored": f"The dev set ({dev.name}, {len(score.counts):,} sentences), not used to choose "
        f"settings or epoch{except_for}, with the weights in this directory: "
        f"**{score.metric} {score.value:.2f}**{details}. In percent.",
        "scores": {
            label: {key: getattr(found, key) for key in ("precision", "recall", "f1", "gold")}
            for label, found in score.by_label.items()
        },
    }


def package(
    name: str, recipe: TaggerRecipe, result: TaskResult, dev: Path, vectors: Path | None
) -> Path:
    """Round, score and write a trained tagger; return its directory."""
    cache_dir = result.run_dir.parent / "layers"
    run = TaskRun.load(result.run_dir, vectors=vectors, cache_dir=cache_dir)
    if vectors is not None:
        run.keep_vectors()
        run.metadata["vectors"] |= {"path": vectors.name}
    run.round_to("int8")
    score = run.evaluate(dev)
    lower = run.evaluate(dev, lowercase=True) if recipe.run.train.lowercase_share else None
    run.metadata["data"] |= dict(zip(("train", "dev"), PART_NAMES, strict=True))
    run.metadata["card"] = facts(name, recipe, result, score, lower, dev)
    made = result.run_dir.parent / "packaged"
    run.save(made, dtype="int8")
    size = size_of(made)
    if size > MAX_BYTES:
        raise SystemExit(f"{made} has {size:,} bytes, more than {MAX_BYTES:,}: too large to ship.")
    target = PACKAGED_RUNS / name
    target.parent.mkdir(exist_ok=True)
    run.save(target, dtype="int8")
    return target


def table(taggers: Path, language: str) -> str:
    """Return the scores and sizes of the packaged taggers as a table."""
    words = WORDS_OF_TABLE[language]
    rows = [f"| | {words['dev']} | MB |", "|---|---|---|"]
    for directory in sorted(path.parent for path in taggers.glob(f"*/{CONFIG_FILE}")):
        metadata, size = read_metadata(directory), size_of(directory)
        rows.append(
            f"| `{directory.name}` | {words[metadata['dev']['metric']]} "
            f"{metadata['card']['score']:.2f} | {size / 1e6:.1f} |"
        )
    return "\n".join(rows)


def size_of(directory: Path) -> int:
    """Return the bytes of all files of a tagger."""
    return sum(path.stat().st_size for path in directory.iterdir())


def publish(page: Path, taggers: Path, language: str) -> None:
    """Put the table into a page."""
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    with atomic_file(page) as temp_path:
        text = f"{before}{MARKS[0]}\n{table(taggers, language)}\n{MARKS[1]}{after}"
        temp_path.write_text(text, encoding="utf-8")


def main() -> None:
    """Parse, train, write, publish, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(path.stem for path in RECIPES.glob("*.toml")))
    parser.add_argument("--data", type=Path, required=True, help="one train… and one dev… file")
    parser.add_argument("--work", type=Path, required=True, help="where the training is kept")
    parser.add_argument("--vectors", type=Path, help="static word vectors, if the recipe has any")
    parser.add_argument("--further", type=Path, help="more training data, if the recipe has any")
    options = parser.parse_args()
    recipe = read_recipe(options.name)
    for option, wanted in (("vectors", recipe.vectors), ("further", recipe.further)):
        given = getattr(options, option) is not None
        if wanted and not given:
            parser.error(
                f"{options.name} needs --{option} FILE: {wanted}; "
                f"{RECIPES / options.name}.toml says how to make it"
            )
        if given and not wanted:
            parser.error(f"{options.name} has no `{option}` in its recipe: leave out --{option}")
    suffixes = find_task(recipe.run.task).suffixes
    sources = [find_split(options.data, split, suffixes) for split in ("train", "dev")]
    directory = options.work / options.name
    directory.mkdir(parents=True, exist_ok=True)
    vectors = first_vectors(recipe, options.vectors, directory)
    result = train(recipe, sources[0], directory, vectors, options.further)
    target = package(options.name, recipe, result, sources[1], vectors)
    for page, language in PAGES.items():
        publish(ROOT / page, PACKAGED_RUNS, language)
    card = (target / "README.md").read_text(encoding="utf-8")
    print(f"{target}: {size_of(target):,} bytes\n{card}")


if __name__ == "__main__":
    with exit_on_user_error():
        main()
