"""How many planted faults the tests find: the mutation score of the rooms that compute.

    pip install mutmut==3.8.1
    python benchmarks/mutation.py                        # this checkout, 1,000 mutants
    python benchmarks/mutation.py ../before --sample 300 --rooms bilm text

Works on a copy of the tracked files below --work. mutmut makes the mutants and runs, for each one
of a random sample, the quick tests that reach its function; nothing checks annotations at run time,
because mutmut imports the package first. A mutant is found if a test fails or takes far too long.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from common import new_parser, print_result, tracked_files

ROOMS: dict[str, tuple[list[str], list[str]]] = {
    "bilm": (["bilm/*"], ["unit/bilm", "parity"]),
    "inference": (["inference/*"], ["unit/inference", "parity"]),
    "text": (["text/*"], ["unit/text", "properties"]),
    "metrics": (["metrics/*"], ["unit/metrics"]),
    "jobs": (
        ["jobs/*", "files/temporary.py", "training/checkpoints.py", "embed/job.py",
         "embed/part_store.py"],
        ["unit/jobs", "unit/files", "unit/training", "unit/embed", "contracts"],
    ),
    "corpus": (["corpus/order_and_packing.py", "corpus/stream.py"], ["unit/corpus", "properties"]),
}  # fmt: skip
"""Room -> its files and its tests; those that a checkout does not have do not count."""
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {sources}
# tests that depend on the clock are left out
pytest_add_cli_args = ["-x", "-k", "not ctrl_c_at_any_line and not removed_meanwhile"]
pytest_add_cli_args_test_selection = {tests}
also_copy = {others}
use_git_change_detection = false
"""
FORGET = """
import functools, gc

def pytest_sessionstart(session):
    for cached in gc.get_objects():
        if isinstance(cached, functools._lru_cache_wrapper):
            cached.cache_clear()  # what was computed before the mutant was chosen
"""
FOUND, MISSED, SLOW = "found", "missed", "found by time"
OUTCOMES = {0: MISSED, 33: MISSED, 1: FOUND, 3: FOUND}
"""Exit codes of mutmut: 33 is a mutant that no test reaches."""


def prepare(root: Path, work: Path, rooms: list[str]) -> None:
    """Copy the tracked files of a checkout and set mutmut up in the copy."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for path in tracked_files(root):
        copy = work / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    sources = [f"src/elmokit/{part}" for room in rooms for part in ROOMS[room][0]]
    tests = {f"tests/{part}" for room in rooms for part in ROOMS[room][1]}
    settings = SETTINGS.format(
        sources=json.dumps(sources),
        tests=json.dumps(sorted(test for test in tests if (work / test).exists())),
        others=json.dumps(sorted({one.name for one in work.iterdir()} - {"src", "tests"})),
    )
    project = (work / "pyproject.toml").read_text("utf-8")
    project = re.sub(r'^ *"--jaxtyping-packages.*\n', "", project, flags=re.M)
    project = project.replace('  "error",\n', '  "error", "ignore::pytest.PytestConfigWarning",\n')
    (work / "pyproject.toml").write_text(project + settings, encoding="utf-8")
    with (work / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(FORGET)


def mutate(work: Path, *names: str) -> dict[str, int | None]:
    """Run some mutants, none if none is named; return the exit codes of all that there are."""
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *(names or ("none",))]
    # processes that tests start must import the mutants, too
    paths = (str((work / "mutants" / "src").resolve()), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    with (work / "mutmut.log").open("w") as log:
        subprocess.run(command, cwd=work, env=environment, stdout=log, stderr=log, check=False)
    codes: dict[str, int | None] = {}
    for path in sorted((work / "mutants").rglob("*.meta")):
        codes |= json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    return codes


def main() -> None:
    """Plant, sample, test, and print the score of every room."""
    parser = new_parser(__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--work", type=Path, default=Path("mutation-work"))
    options = parser.parse_args()
    prepare(options.root.resolve(), options.work, options.rooms)
    mutants = sorted(mutate(options.work))
    sample = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    codes = mutate(options.work, *sample)
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in sample:  # it is named elmokit.FOLDER.FILE.FUNCTION
        folder = mutant.split(".")[1]
        code = codes[mutant]
        outcome = "not run" if code is None else OUTCOMES.get(code, SLOW)
        for room in (folder if folder in ROOMS else "jobs", "all"):
            rooms[room][outcome] += 1
    results: dict[str, Any] = {}
    for room, counts in sorted(rooms.items()):
        missing = counts[MISSED] + counts["not run"]
        results[room] = {**counts, "score": round(1 - missing / counts.total(), 3)}
    missed = [mutant for mutant in sample if OUTCOMES.get(codes[mutant] or 0) == MISSED]
    (options.work / "missed.txt").write_text("\n".join(missed) + "\n", encoding="utf-8")
    sizes = {"mutants": len(mutants), "sample": len(sample), "seed": options.seed}
    print_result("mutation", sizes, results)


if __name__ == "__main__":
    main()
