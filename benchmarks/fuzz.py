"""Damage every kind of file that elmokit reads, and run the C kernels over odd shapes and values.

    python benchmarks/fuzz.py --inputs 1000000 --seed 0 [--only NAME …] [--json FILE]

The kinds are those of `tests/builders/fuzz_targets.py`, each in a process of its own, so that a
crash, a hang and memory out of proportion are found, too. Every input follows from kind and seed:
`--only KIND --seed SEED --inputs 1` repeats one. What must not be: an exception that is neither of
`elmokit.errors` nor a system error that names a file, more than 5 seconds, more than 500 MB above
twice the input, the end of the process. Exit code 1 if there is any.

Kinds that take long (models, tasks) get a tenth of the inputs of the others. The kernels run
without sanitizers here; `tests/unit/kernels/test_sanitizers.py` runs the same cases with them.
"""

import argparse
import json
import logging
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from common import print_result

ROOT = Path(__file__).resolve().parents[1]
SLOW = {"model", "model-older", "original", "task", "kernels"}
SLOW_SHARE = 0.1
HANG_SECONDS, BUSY_FACTOR = 30.0, 20
"""After so many seconds of the processor, or this times as many of the clock, a process without an
answer is ended."""
MEMORY_BYTES = 500 << 20
_STATE = struct.Struct("<qq")
"""Input in work, inputs done."""


@dataclass
class Outcome:
    """What came of the inputs of one kind."""

    kind: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    findings: dict[str, list[int]] = field(default_factory=dict)
    """What should not be -> seeds, at most five each."""
    seconds: float = 0.0

    def find(self, what: str, seed: int) -> None:
        """Note something that should not be."""
        seeds = self.findings.setdefault(re.sub(r"/\S+/|0x\w+", "", what)[:300], [])
        if len(seeds) < 5:
            seeds.append(seed)


def child(kind: str, first: int, count: int, folder: Path) -> None:
    """Damage and read; the seed in work stands in `state`, the outcomes in `outcomes.jsonl`."""
    from tests.builders.fuzz_targets import TARGETS

    warnings.simplefilter("error")  # what NumPy warns of, we have not checked
    logging.disable(logging.CRITICAL)
    (folder / "files").mkdir()
    target = TARGETS[kind](folder / "files")
    target.read()
    largest = max(map(len, target.files.values()))
    allowed = _peak_bytes() + MEMORY_BYTES + 2 * largest
    outcomes: Counter[str] = Counter()
    state = mmap.mmap(os.open(folder / "state", os.O_RDWR), _STATE.size)
    for seed in range(first, first + count):
        state[:] = _STATE.pack(seed, seed - first)
        outcome = target.attempt(seed)
        if _peak_bytes() > allowed:
            outcome, allowed = f"memory: {_peak_bytes() >> 20} MB", _peak_bytes() + MEMORY_BYTES
        outcomes[outcome] += 1
        is_new = outcome not in ("read", "refused") and outcomes[outcome] <= 5
        if is_new or (seed - first) % 200 == 199:
            found = [[outcome, seed]] if is_new else []
            _report(folder, seed - first + 1, outcomes, found)
    _report(folder, count, outcomes, [])
    state[:] = _STATE.pack(first + count, count)


def _report(folder: Path, done: int, outcomes: Counter[str], found: list) -> None:
    row = {"done": done, "read": outcomes["read"], "refused": outcomes["refused"], "found": found}
    with (folder / "outcomes.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def attack(kind: str, *, first: int, count: int) -> Outcome:
    """Run the inputs of a kind; go on behind one that ended or held up its process."""
    outcome, started, last = Outcome(kind), time.monotonic(), first + count
    while first < last:
        with tempfile.TemporaryDirectory(prefix="elmokit-fuzz-") as name:
            folder = Path(name)
            (folder / "state").write_bytes(_STATE.pack(-1, 0))
            if (pid := os.fork()) == 0:
                _become_child(kind, first, last - first, folder)
            code, is_hung = _wait(pid, folder / "state")
            seed, done = _STATE.unpack((folder / "state").read_bytes())
            rows = [json.loads(row) for row in _rows(folder / "outcomes.jsonl")]
            for row in rows:
                for what, at in row["found"]:
                    outcome.find(what, at)
            if rows:
                outcome.read += rows[-1]["read"]
                outcome.refused += rows[-1]["refused"]
            if seed < 0:
                raise SystemExit(f"{kind} does not start: {(folder / 'log').read_text()[-2000:]}")
            outcome.inputs += done
            first += done
            if code != 0:
                how = f"no answer for {HANG_SECONDS} s" if is_hung else f"exit {code}"
                outcome.find(f"{how}: {(folder / 'log').read_text()[-200:]}", seed)
                outcome.inputs += 1
                first = seed + 1
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def _rows(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _become_child(kind: str, first: int, count: int, folder: Path) -> None:
    """Run the inputs in this process, and end it."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        child(kind, first, count, folder)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, state: Path) -> tuple[int, bool]:
    """Wait for the end; return its code, and whether an input was in work for too long."""
    watched, before, begun = psutil.Process(pid), b"", (0.0, 0.0)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), False
        time.sleep(0.1)
        used = sum(watched.cpu_times()[:2])
        if (now := state.read_bytes()) != before:
            before, begun = now, (used, time.monotonic())
        seconds = used - begun[0], time.monotonic() - begun[1]
        if seconds[0] > HANG_SECONDS or seconds[1] > BUSY_FACTOR * HANG_SECONDS:
            os.kill(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), True


def attack_kernels(*, seed: int, count: int) -> Outcome:
    """Run every kernel over odd shapes and values, 400 in a process."""
    outcome, started = Outcome("kernels"), time.monotonic()
    program = ROOT / "tests/builders/odd_shapes.py"
    for start in range(0, count, 400):
        cases = min(400, count - start)
        command = [sys.executable, "-W", "ignore", program, "none", str(cases), f"{seed + start}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=1800
            )
            code, error = done.returncode, done.stderr[-300:]
        except subprocess.TimeoutExpired:
            code, error = 1, "no end after 1800 s"
        outcome.inputs += cases
        outcome.read += cases
        if code != 0:
            outcome.find(f"exit {code}: {error}", seed + start)
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def main() -> None:
    """Parse, attack, print."""
    sys.path.insert(0, str(ROOT))
    from tests.builders.fuzz_targets import TARGETS

    kinds = [*TARGETS, "kernels"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=20_000, help="over all kinds")
    parser.add_argument("--seed", type=int, default=0, help="of the first input of each kind")
    parser.add_argument("--only", nargs="+", choices=kinds, metavar="KIND")
    parser.add_argument("--json", type=Path, help="also write every kind here when it is done")
    options = parser.parse_args()
    chosen = options.only or kinds
    shares = {kind: SLOW_SHARE if kind in SLOW else 1.0 for kind in chosen}
    outcomes: list[Outcome] = []
    for kind in chosen:
        count = max(1, round(options.inputs * shares[kind] / sum(shares.values())))
        if kind == "kernels":
            outcome = attack_kernels(seed=options.seed, count=count)
        else:
            outcome = attack(kind, first=options.seed, count=count)
        outcomes.append(outcome)
        print(json.dumps(asdict(outcome)), file=sys.stderr, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1))
    results = {
        "inputs": sum(one.inputs for one in outcomes),
        "findings": sum(len(one.findings) for one in outcomes),
        "hours": round(sum(one.seconds for one in outcomes) / 3600, 2),
        "kinds": [asdict(one) for one in outcomes],
    }
    print_result("fuzz", {"inputs": options.inputs, "seed": options.seed}, results)
    sys.exit(1 if results["findings"] else 0)


if __name__ == "__main__":
    main()
