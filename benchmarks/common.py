"""What the benchmarks share: texts and models, turns, spread and ratios, the printed result."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

Sentence = list[str]
CACHE_DIR = Path.home() / ".cache" / "elmokit-bench"
SHAPES = ("tiny", "small", "original")
"""Presets whose network is measured; the last two are the released 2x1024_128 and 2x4096_512."""


def new_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of the script."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def comparison_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with what the comparisons with other programs share."""
    parser = new_parser(doc)
    parser.add_argument("--only", nargs="+", help="programs whose name has one of these parts")
    parser.add_argument("--text", type=Path, help="tokenized, a sentence a line")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def model_folder(shape: str) -> Path:
    """Return a folder with ``options.json``, ``weights.hdf5`` and our ``model``; made if absent."""
    from dataclasses import replace

    import torch

    from elmokit import CharVocabConfig, PretrainedBiLM, write_bilm_tf
    from elmokit.training.pretraining.presets import pretrain_config

    folder = CACHE_DIR / "weights" / f"{shape}-seed0"
    finished = folder / "finished"
    if not finished.exists():
        # text is processed as in the original, which peers share
        char_vocab = CharVocabConfig(normalization="none", truncation="byte")
        model = PretrainedBiLM(replace(pretrain_config(shape).model, char_vocab=char_vocab))
        model.reset_parameters(torch.Generator().manual_seed(0))
        folder.mkdir(parents=True, exist_ok=True)
        write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
        model.save(folder / "model")
        finished.touch()
    return folder


def read_text(path: Path | None) -> list[Sentence]:
    """Read tokenized sentences, one a line, words separated by spaces.

    Without a path it is the English text of `elmokit demo`: short sentences, few distinct words,
    good for a trial, not for figures to publish.
    """
    source = path or files("elmokit").joinpath("data/demo/en.txt")
    text = source.read_text(encoding="utf-8")
    return [words for line in text.split("\n") if (words := line.split())]


def text_metadata(sentences: Sequence[Sentence], path: Path | None) -> dict[str, object]:
    """Say what text was read."""
    num_words = sum(map(len, sentences))
    return {
        "text": "demo text of the package" if path is None else path.name,
        "sentences": len(sentences),
        "words": num_words,
        "distinct_words": len({word for sentence in sentences for word in sentence}),
        "words_per_sentence": round(num_words / len(sentences), 1),
    }


def alternate(
    names: Iterable[str], run: Callable[[str], float], *, repeats: int
) -> dict[str, list[float]]:
    """Run programs in turn, A B C A B C …, so that a slow minute of the machine hits all alike.

    ``run`` returns the seconds of a run. The first turn warms up and does not count.
    """
    turns = [{name: run(name) for name in names} for _ in range(1 + repeats)]
    return {name: [turn[name] for turn in turns[1:]] for name in names}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median and extremes."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def speed_ratio(seconds: Sequence[float], of_other: Sequence[float]) -> dict[str, float]:
    """Return how many times as fast as another program one is.

    The ratio is taken within each turn, where both met the same machine.
    """
    return spread([theirs / own for own, theirs in zip(seconds, of_other, strict=True)])


def compare_speeds(
    seconds: Mapping[str, Sequence[float]], *, tokens: int, ours: Sequence[str]
) -> dict[str, Any]:
    """Return every program's tokens a second, and how many times as fast as others each of ours is.

    ``seconds`` and ``tokens`` are those of each run, ``ours`` the programs of ours.
    """
    return {
        "tokens": tokens,
        "seconds": dict(seconds),
        "tokens_per_second": {
            name: spread([tokens / one for one in times]) for name, times in seconds.items()
        },
        "ratios": {
            name: {
                other: speed_ratio(seconds[name], seconds[other])
                for other in seconds if other != name
            }
            for name in seconds if name in ours
        },
    }  # fmt: skip


class Measured(NamedTuple):
    """A finished child process."""

    seconds: float
    peak_bytes: int
    """Largest resident set of the process itself (its children not included)."""
    stdout: str


def run_measured(command: Sequence[str | Path], **options: Any) -> Measured:
    """Run a command to its end and measure it; its errors go to our stderr."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", **options
    )
    assert process.stdout is not None
    with process.stdout:
        stdout = process.stdout.read()
    # wait4 knows the peak of this child alone; getrusage, only the largest of all
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(map(str, command))}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(time.perf_counter() - start, usage.ru_maxrss * unit, stdout)


@contextmanager
def listening(*words: str) -> Iterator[str]:
    """Start `elmokit serve` or `elmokit explore` on a free port; yield its address."""
    command = [sys.executable, "-m", "elmokit", *words, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(line for line in process.stderr if line.startswith("http")).split()[0]
            # a server whose messages nobody reads would stop when the pipe is full
            Thread(target=process.stderr.read, daemon=True).start()
            yield address
        finally:
            process.terminate()


def tracked_files(root: Path, *patterns: str) -> list[Path]:
    """Return the files that git tracks and that are there, all or those that match a pattern."""
    command = ["git", "ls-files", "-z", *patterns]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [path for name in names.split("\0")[:-1] if (path := root / name).is_file()]


def print_result(name: str, sizes: dict[str, Any], results: dict[str, Any]) -> None:
    """Print one JSON object: what ran, on what, and what came out."""
    # of folders outside the repository only the last name
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    described = {
        "benchmark": name,
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words]),
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip() or "unknown",
        "hardware": {"processor": _processor(), "cores": os.cpu_count()},
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("torch", "elmokit")},
        },
        "sizes": sizes,
        "results": results,
    }
    print(json.dumps(described, indent=2, ensure_ascii=False, default=str))


def _processor() -> str:
    """Return name and model number: virtual machines give one name to unlike processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    fields = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    name, number = fields.get("model name", ""), fields.get("model")
    return f"{name} (model {number})" if number else name
