"""`elmokit pretrain` from raw text to model: kill, resume, many processes, bad input."""

import json
import os
import shutil
import signal
import subprocess
from importlib.resources import files

import pytest

from elmokit import load_model

from ..builders.command_line import elmokit, free_port, start_elmokit, start_python

pytestmark = pytest.mark.e2e

TOY = ["--preset", "toy", "--tokenizer", "whitespace", "--set", "train.log_steps=1"]
OFTEN = ["--set", "train.checkpoint_steps=7"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """About 6,000 words of the demonstration text."""
    return demo_text("en", 600, tmp_path_factory.mktemp("corpus") / "en.txt")


def demo_text(language, num_lines, path):
    text = files("elmokit").joinpath(f"data/demo/{language}.txt").read_text(encoding="utf-8")
    path.write_text("".join(text.splitlines(keepends=True)[:num_lines]), encoding="utf-8")
    return path


def losses(run_dir):
    """Every logged loss by step."""
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: (row["loss"], row["gradient_norm"]) for row in rows if "loss" in row}


def start_ranks(*arguments, before):
    """Start the command once for each rank, with code that runs in its process before."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    place |= {"WORLD_SIZE": str(len(before)), "LOCAL_RANK": "0"}
    return [
        start_elmokit(
            *arguments, before=code, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, **place, "RANK": str(rank)},
        )
        for rank, code in enumerate(before)
    ]  # fmt: skip


def messages_of(ranks, *, codes):
    """What the processes wrote to stderr, when they have ended with their codes."""
    messages = [process.communicate(timeout=120)[1] for process in ranks]
    assert [process.returncode for process in ranks] == codes, messages
    return "".join(messages)


@pytest.fixture(scope="module")
def whole_run(corpus, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    done = elmokit("pretrain", corpus, "-o", run_dir, *TOY, *OFTEN, "--epochs", 2, "--json")
    return run_dir, json.loads(done.stdout)


def test_the_run_directory_is_a_model_directory_that_has_learned(whole_run):
    run_dir, result = whole_run
    logged = losses(run_dir)
    assert result["progress"]["step"] == max(logged)
    values = [loss for loss, _ in logged.values()]
    assert values[-1] < values[0] - 1
    perplexity = result["perplexity"]["mean"]
    assert perplexity < 300
    model = load_model(run_dir)
    assert model.tokenizer.name == "whitespace"
    assert model.training_metadata["perplexity"]["mean"] == pytest.approx(perplexity)
    files = {"config.json", "model.safetensors", "vocab.txt", "README.md", "run.json"}
    assert files <= {path.name for path in run_dir.iterdir()}


AFTER_ROWS = """
import os
from elmokit.jobs.job import MetricsLog
write, left = MetricsLog.write, {rows}
def counted(log, row):
    global left
    write(log, row)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), {signal})
MetricsLog.write = counted
"""
"""Sends the process a signal when it has logged so many rows."""


def test_a_run_killed_and_stopped_twice_resumes_bit_for_bit(corpus, whole_run, tmp_path):
    """Killed, it goes on from the last checkpoint; stopped, from one of the step it had reached."""
    run_dir = tmp_path / "run"
    arguments = ["pretrain", corpus, "-o", run_dir, *TOY, *OFTEN, "--epochs", 2]
    killed = start_elmokit(
        *arguments, before=AFTER_ROWS.format(rows=9, signal=9), stderr=subprocess.DEVNULL
    )
    assert killed.wait(120) == -signal.SIGKILL
    arguments = [*arguments, "--resume"]
    for stop, expected in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        before = AFTER_ROWS.format(rows=8, signal=int(stop))
        process = start_elmokit(
            *arguments, before=before, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, message = process.communicate(timeout=120)
        assert process.returncode == expected, message
        step = max(losses(run_dir))
        assert f"stopped by {stop.name} after step {step}." in message
        assert f"step-{step:09d}" in message
        assert (run_dir / "checkpoints" / f"step-{step:09d}").is_dir()
        assert "--resume" in message
        assert "Traceback" not in message
    elmokit(*arguments)
    assert losses(run_dir) == losses(whole_run[0])
    weights, whole = (one / "model.safetensors" for one in (run_dir, whole_run[0]))
    assert weights.read_bytes() == whole.read_bytes()


def test_two_nodes_train_like_one_process_and_resume(corpus, tmp_path):
    """As on two machines with a shared folder: one dies, a `torchrun` each goes on.

    Where rows begin at the zero state and are averaged, too.
    """
    settings = (
        "model.dropout=0.1", "train.zero_state_share=0.2",
        "train.ema_decay=0.9", "train.checkpoint_steps=5", "train.precision=fp32",
    )  # fmt: skip
    options = [*TOY, "--tokens", "8000", *(part for one in settings for part in ("--set", one))]
    elmokit("pretrain", corpus, "-o", tmp_path / "one", *options)
    command = ["pretrain", corpus, "-o", tmp_path / "two", *options]
    ranks = start_ranks(*command, before=(AFTER_ROWS.format(rows=8, signal=9), ""))
    messages_of(ranks, codes=[-signal.SIGKILL, 1])
    torchrun = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1"]
    torchrun += ["--master-port", free_port()]
    nodes = [
        start_python(
            "from torch.distributed.run import main; main()", *torchrun, "--node-rank", node,
            "-m", "elmokit", *command, "--resume", stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for node in (0, 1)
    ]  # fmt: skip
    messages_of(nodes, codes=[0, 0])
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert one.keys() == two.keys()
    for step, (loss, _) in one.items():
        assert two[step][0] == pytest.approx(loss, abs=1e-5)


def test_three_processes_resume_bit_for_bit(corpus, tmp_path):
    """The sums of two processes have one order only; those of three must keep theirs."""
    options = [*TOY, "--set", "train.batch_size=18", "--set", "train.checkpoint_steps=6"]

    def run(directory, *more):
        command = ("pretrain", corpus, "-o", directory, *options, "--tokens", 1440, *more)
        said = messages_of(start_ranks(*command, before=[""] * 3), codes=[0] * 3)
        assert "find_unused_parameters" not in said

    run(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    *_, last = sorted((tmp_path / "resumed/checkpoints").iterdir())
    shutil.rmtree(last)
    run(tmp_path / "resumed", "--resume")
    assert losses(tmp_path / "resumed") == losses(tmp_path / "whole")
    whole, resumed = (tmp_path / name / "model.safetensors" for name in ("whole", "resumed"))
    assert resumed.read_bytes() == whole.read_bytes()


def test_finetuning_on_a_domain_lowers_its_perplexity(corpus, whole_run, tmp_path):
    domain = demo_text("ko", 400, tmp_path / "domain.txt")
    done = elmokit(
        "finetune", whole_run[0], domain, "-o", tmp_path / "tuned", "--vocab", "corpus",
        "--general", corpus, "--epochs", 3, "--set", "vocab.min_count=1", "--json",
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["after"]["in_domain"]["mean"] < 0.5 * result["before"]["in_domain"]["mean"]
    assert result["after"]["in_domain"]["oov_rate"] < 0.2
    assert set(result["after"]) == {"in_domain", "out_of_domain"}


def test_finetuning_on_the_text_of_a_task(whole_run, tmp_path):
    """Its train file is the corpus, its dev file the validation text."""
    data, tuned = tmp_path / "data", tmp_path / "tuned"
    data.mkdir()
    for split, words in (("train", "the river"), ("dev", "a boat")):
        row = {"premise": words, "hypothesis": f"{words} .", "label": "yes"}
        (data / f"{split}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    small = ("--set", "train.batch_size=1", "--set", "train.unroll_steps=5")
    options = ("-o", tuned, "--task", "nli", "--tokens", 10, "--threads", 1, *small)
    elmokit("finetune", whole_run[0], data, "--valid", data, *options)
    for name, split in (("shards", "train"), ("valid", "dev")):
        metadata = json.loads((tuned / name / "manifest.json").read_text("utf-8"))["metadata"]
        assert metadata["sources"][0]["path"].endswith(f"{split}.jsonl")
    elmokit("finetune", whole_run[0], data, "--valid", data, *options, "--resume")
    as_text = ("finetune", whole_run[0], data / "train.jsonl", "-o", tuned, "--resume")
    assert "reader was 'nli" in elmokit(*as_text, *options[4:], expect=2).stderr
