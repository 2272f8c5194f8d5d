"""`elmokit demo`: pre-train a toy model on packaged text and show nearest neighbors."""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli.output import Result, watch_training
from elmokit.errors import InputError, quoted

if TYPE_CHECKING:
    from elmokit.probes.neighbors import Occurrence

LANGUAGES = {"en": "English", "ko": "Korean"}
SETTINGS = (
    "model.lstm.cell_dim=128", "model.dropout=0.2", "optimizer.learning_rate=1e-2",
    "train.log_steps=50", "train.checkpoint_seconds=60", "validation.num_times=1",
)  # fmt: skip
EPOCHS = 10.0
LAYERS = "average"


def demo(
    *,
    language: list[str] | None = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR")] = None,
) -> Result:
    """Pre-train a toy model on packaged text and show neighbors of ambiguous words (offline).

    Args:
        language: en, ko; default: both.
        output: Keep the models in DIR.
    """
    chosen = list(dict.fromkeys(language or LANGUAGES))
    if unknown := [name for name in chosen if name not in LANGUAGES]:
        raise InputError(f"There is no demo in {unknown[0]!r}; choose en or ko.")
    if output is not None:
        from elmokit.web.page.export import check_empty

        check_empty(output)
    import torch

    torch.set_num_threads(1)  # with matrices this small, threads only wait for each other
    results, lines = [], []
    with ExitStack() as stack:
        folder = output or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in chosen:
            figures, neighbors = _show_language(name, folder / name)
            results.append({**figures, "model_dir": output and folder / name})
            lines += neighbors
    lines.append("\nA page that looks inside the packaged models: elmokit explore --open")
    lines.append("How to do this on your own text, and more: docs/quickstart.md")
    if output is not None:
        model = quoted(output / chosen[0])
        lines.append(
            f"The models are in {output}; try: elmokit embed TEXT -o OUT.h5 --model {model}"
        )
    return Result({"languages": results}, lines)


def _show_language(name: str, run_dir: Path) -> tuple[dict[str, Any], list[str]]:
    """Train a model; return figures, and lines that show neighbors of ambiguous words."""
    from elmokit.embed.embedder import Embedder
    from elmokit.probes.neighbors import neighborhoods, share_of_same_sense
    from elmokit.training.pretraining.presets import pretrain_config
    from elmokit.training.pretraining.run import RunOptions, pretrain
    from elmokit.training.schedules import Limits

    config = pretrain_config("toy", overrides=['text.tokenizer.name="whitespace"', *SETTINGS])
    options = RunOptions(limits=Limits(epochs=EPOCHS), device="cpu")
    with (
        as_file(files("elmokit").joinpath(f"data/demo/{name}.txt")) as corpus,
        watch_training(f"pre-training, {LANGUAGES[name]}", options) as watched,
    ):
        result = pretrain(config, [corpus], run_dir, replace(watched, save_on_signals=False))
    perplexity = result.perplexity.mean if result.perplexity is not None else float("nan")
    lines = [
        f"\n{LANGUAGES[name]}: {result.progress.tokens:,} words and sentence ends read in "
        f"{result.progress.seconds:.0f} s, held-out perplexity {perplexity:.1f}"
    ]
    embedder = Embedder.load(run_dir, device="cpu")
    shares = {}
    for word, occurrences in _read_probes(name).items():
        near = neighborhoods(embedder, occurrences, layers=LAYERS, num_neighbors=3)
        shares[word] = share_of_same_sense(near)
        first_of_sense = {part.occurrence.sense: part for part in reversed(near)}
        for first in sorted(first_of_sense.values(), key=near.index):
            lines.append(f"\n  {first.occurrence.marked()}   ({first.occurrence.sense})")
            lines += [
                f"    {similarity:5.2f}  {other.marked()}   ({other.sense})"
                for other, similarity in zip(first.neighbors, first.similarities, strict=True)
            ]
    summary = ", ".join(f"{word} {share:.0%}" for word, share in shares.items())
    lines.append(f"\n  nearest neighbor has the same sense: {summary}")
    figures = {
        "language": LANGUAGES[name], "seconds": result.progress.seconds, "perplexity": perplexity,
        "words": shares,
    }  # fmt: skip
    return figures, lines


def _read_probes(name: str) -> "dict[str, list[Occurrence]]":
    from elmokit.probes.neighbors import Occurrence

    text = files("elmokit").joinpath(f"data/demo/{name}.probe.tsv").read_text(encoding="utf-8")
    probes: dict[str, list[Occurrence]] = {}
    for line in text.splitlines():
        sentence, index, word, sense = line.split("\t")
        probes.setdefault(word, []).append(Occurrence(tuple(sentence.split()), int(index), sense))
    return probes
