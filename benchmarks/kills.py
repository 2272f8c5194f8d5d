"""Kill commands at random moments, go on, and compare with what was never killed.

    python benchmarks/kills.py --kills 500 --seed 0 [--only NAME …]

Each command runs to its end once. Then it is started again and again in new directories and ended
by SIGKILL after a random time, up to six times in a row, until one run ends by itself. What is
there at the end must be bit for bit what the first run left, and nothing else may lie beside it;
whatever has its final name after a kill must be whole, too. The time is counted from when PyTorch
has been imported, so that the kills fall into the work; checkpoints and parts are more frequent
than usual (`PROGRAM`). Exit code 1 if anything differs.
"""

import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from common import new_parser, print_result, read_text

ROOT = Path(__file__).resolve().parents[1]
MAX_KILLS_IN_A_ROW = 6
PROGRAM = """
import sys
import torch
from elmokit.cli import app
from elmokit.embed import job
from elmokit.tasks.runs import train_task
assert job.PART_SENTENCES and train_task.CHECKPOINT_SECONDS  # they still have these names
job.PART_SENTENCES, train_task.CHECKPOINT_SECONDS = 40, 0.0
torch.set_num_threads(1)
sys.argv[0] = "elmokit"
print("ready", flush=True)
app()
"""
Signature = dict[str, object]


@dataclass
class Job:
    """A command, how it goes on, and what its result is."""

    name: str
    arguments: Sequence[object]
    output: str
    """Added with ``-o``."""
    result: Callable[[Path], Signature]
    whole_with: str = ""
    """Below the output: if this file is there, the result must be whole."""
    again: str = "--resume"
    """Option of a second start."""
    grows: bool = False
    """Whether that file grows: of a killed command, what it has must be right."""


@dataclass
class Outcome:
    """What came of a command's kills; seconds are those of the run that was not killed."""

    name: str
    seconds: float
    kills: int = 0
    trials: int = 0
    findings: list[str] = field(default_factory=list)


def digests(*paths: Path) -> Signature:
    """Hash files."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def pretrained(run: Path) -> Signature:
    """Weights, vocabulary, and the losses of every step."""
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    losses = {row["step"]: row["loss"] for row in rows if "loss" in row}
    return {"losses": losses, **digests(run / "model.safetensors", run / "vocab.txt")}


def trained(run: Path) -> Signature:
    return digests(run / "model.safetensors", run / "task.json")


def embedded(path: Path) -> Signature:
    """Words and vectors, read back."""
    from elmokit import open_vectors

    content = hashlib.sha256()
    with open_vectors(path) as sentences:
        for words, vectors in sentences:
            content.update(f"{words} {vectors.shape}".encode() + vectors.tobytes())
        return {"sentences": len(sentences), "content": content.hexdigest()}


def results(directory: Path) -> Signature:
    """The score, epochs and best epoch of every run of an experiment, so far."""
    report = json.loads((directory / "results.json").read_text())
    return {run["id"]: [run[key] for key in ("value", "epochs", "best_epoch")]
            for run in report["runs"]}  # fmt: skip


def word_vectors(path: Path) -> Signature:
    """The file of vectors, and its metadata without the time."""
    metadata = json.loads(path.with_name(f"{path.name}.json").read_text())
    del metadata["seconds"]
    return {"metadata": metadata, **digests(path)}


def jobs(folder: Path) -> list[Job]:
    """Write data and a model, and return the commands."""
    sys.path.insert(0, str(ROOT))
    from tests.builders.experiment_data import write_data, write_vectors
    from tests.builders.task_models import toy_model

    lines = [" ".join(words) for words in read_text(None)]
    text, other = folder / "text.txt", folder / "other.txt"
    text.write_text("\n".join(lines[:300]) + "\n", encoding="utf-8")
    other.write_text("\n".join(lines[300:500]) + "\n", encoding="utf-8")
    rows = "".join(f"{line}\t{number % 2}\n" for number, line in enumerate(lines[:40]))
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    toy_model().save(folder / "toy")
    data, static = write_data(folder / "data"), write_vectors(folder / "static.txt")
    base = folder / "base"
    often = ("--set", "train.checkpoint_steps=3", "--set", "train.log_steps=1")
    toy = ("--preset", "toy", "--tokenizer", "whitespace", "--epochs", 1, *often)
    if run(["pretrain", other, "-o", base, *toy], folder / "log")[0] != 0:
        raise SystemExit((folder / "log").read_text())
    model = ("--model", folder / "toy")
    learn = (*model, "--layer-cache", folder / "layers", "--set", "train.epochs=3")
    small = ("--set", "hidden_dims=[4]", "--set", "inputs.characters=false")
    tables = ("experiment", "figure1", "--tasks", "ner", "--seeds", 1, "--data", data,
              "--vectors", static, *learn, *small)  # fmt: skip
    vectors = ("vectors", text, "--dim", 8, "--min-count", 2)
    return [
        Job("pretrain", ("pretrain", text, *toy), "run", pretrained, "model.safetensors"),
        Job("finetune", ("finetune", base, text, "--epochs", 1, *often), "run", pretrained,
            "model.safetensors"),
        *(Job(f"embed{suffix}", ("embed", text, *model), f"out{suffix}", embedded)
          for suffix in (".h5", ".parquet", ".npz")),
        Job("train", ("train", "sentiment", "--data", folder, *learn), "run", trained),
        Job("experiment", tables, "figure1", results, "results.json", grows=True),
        Job("vectors", vectors, "v.bin", word_vectors, again="--overwrite"),
        Job("vocab", ("vocab", text), "vocab.txt", digests, again="--overwrite"),
    ]  # fmt: skip


def run(arguments: Sequence[object], log: Path, *, after: float | None = None) -> tuple[int, float]:
    """Run a command, or kill it ``after`` some seconds of work; return its code and seconds."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        process.stdout.readline()
        started = time.monotonic()
        try:
            process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    return process.returncode, time.monotonic() - started


def names_below(folder: Path) -> set[str]:
    """Return what lies in a directory, in `runs` only trainings; runs have names of their own."""
    paths = (f"/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*"))
    return {
        path for path in paths
        if "checkpoints/" not in path and ("/runs/" not in path or "/runs/training/" in path)
    }  # fmt: skip


def differences(job: Job, output: Path, expected: Signature, *, part: bool) -> list[str]:
    """Compare with what is expected, or only the ``part`` that is there."""
    try:
        result = job.result(output)
    except Exception as error:
        return [repr(error)]
    keys = result if part else expected | result
    return [key for key in keys if result.get(key) != expected.get(key)]


def attack(job: Job, folder: Path, rng: random.Random, num_kills: int) -> Outcome:
    """Kill the command so often."""
    log = folder / "log"

    def start(output: Path, *more: str, after: float | None = None) -> tuple[int, float]:
        return run([*job.arguments, "-o", output, *more], log, after=after)

    def check(when: str, *, part: bool = False) -> None:
        if different := differences(job, output, expected, part=part):
            outcome.findings.append(f"trial {outcome.trials} {when}: other {different}")

    output = folder / "whole" / job.output
    output.parent.mkdir()
    code, seconds = start(output)
    if code != 0:
        raise SystemExit(f"{job.name}: {log.read_text()}")
    outcome = Outcome(job.name, round(seconds, 2))
    expected, expected_names = job.result(output), names_below(output.parent)
    while outcome.kills < num_kills:
        outcome.trials += 1
        output = folder / f"trial-{outcome.trials}" / job.output
        output.parent.mkdir()
        code, in_a_row = -signal.SIGKILL, 0
        while code == -signal.SIGKILL:
            spared = in_a_row >= MAX_KILLS_IN_A_ROW
            after = None if spared else rng.uniform(0, 1.1 * outcome.seconds)
            code, _ = start(output, *[job.again] * bool(in_a_row), after=after)
            if code == -signal.SIGKILL:
                outcome.kills, in_a_row = outcome.kills + 1, in_a_row + 1
                if (output / job.whole_with).is_file() and job.name != "vectors":
                    check("after a kill", part=job.grows)
        if code != 0:
            outcome.findings.append(f"trial {outcome.trials}: {code}: {log.read_text()[-300:]}")
        else:
            check(f"after {in_a_row} kills")
            if others := sorted(names_below(output.parent) ^ expected_names):
                outcome.findings.append(f"trial {outcome.trials} left or lacks {others}")
    return outcome


def main() -> None:
    """Parse, kill, print."""
    parser = new_parser(__doc__)
    parser.add_argument("--kills", type=int, default=45, help="over all commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    options = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="elmokit-kills-") as name:
        attacked = [job for job in jobs(Path(name)) if job.name in (options.only or job.name)]
        for job in attacked:
            folder = Path(name) / f"kills-{job.name}"
            folder.mkdir()
            rng = random.Random(f"{job.name} {options.seed}")
            outcome = attack(job, folder, rng, -(-options.kills // len(attacked)))
            outcomes.append(outcome)
            print(json.dumps(asdict(outcome)), file=sys.stderr, flush=True)
    results = {
        "kills": sum(one.kills for one in outcomes),
        "findings": sum(len(one.findings) for one in outcomes),
        "commands": [asdict(one) for one in outcomes],
    }
    print_result("kills", {"kills": options.kills, "seed": options.seed}, results)
    sys.exit(1 if results["findings"] else 0)


if __name__ == "__main__":
    main()
