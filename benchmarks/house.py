"""The size and the shape of the code: lines, files, functions, errors and comments, room by room.

    python benchmarks/house.py                     # this checkout
    python benchmarks/house.py ../another-checkout

Counts tracked Python files only. The density of the style is the median length of a line with
code and the 95th percentile of the lines of a function: a smaller house must not be a denser one.
"""

import argparse
import ast
import re
import subprocess
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from common import print_result


def tracked(root: Path, *patterns: str) -> list[Path]:
    """Return the tracked files of a checkout that match a pattern and still exist."""
    listing = subprocess.run(
        ["git", "ls-files", *patterns], cwd=root, check=True, capture_output=True, text=True
    )
    return [path for name in listing.stdout.splitlines() if (path := root / name).is_file()]


def function_lengths(tree: ast.Module) -> list[int]:
    """Return the lines of every function, those inside other functions too."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, functions)]
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]


def figures(root: Path) -> dict[str, object]:
    """Return the figures of one checkout."""
    package = root / "src" / "elmokit"
    sources = {path: path.read_text("utf-8") for path in tracked(root, "src/*.py")}
    lines = [line for text in sources.values() for line in text.splitlines()]
    trees = [ast.parse(text) for text in sources.values()]
    lengths = [length for tree in trees for length in function_lengths(tree)]
    raises = sum(isinstance(node, ast.Raise) for tree in trees for node in ast.walk(tree))
    comments = sum(bool(re.match(r"\s*#", line)) for line in lines)
    rooms: Counter[str] = Counter()
    for path, text in sources.items():
        parts = path.relative_to(package).parts
        rooms[parts[0] if len(parts) > 1 else "(root)"] += len(text.splitlines())

    def num_lines(*patterns: str) -> int:
        return sum(len(path.read_text("utf-8").splitlines()) for path in tracked(root, *patterns))

    return {
        "src_lines": len(lines),
        "src_files": len(sources),
        "files_over_400_lines": sum(len(text.splitlines()) > 400 for text in sources.values()),
        "files_under_60_lines": sum(len(text.splitlines()) < 60 for text in sources.values()),
        "tests_lines": num_lines("tests/*.py", "conftest.py"),
        "benchmarks_recipes_examples_lines": num_lines(
            "benchmarks/*.py", "recipes/*.py", "examples/*.py"
        ),
        "median_line_length": median(len(line) for line in lines if line.strip()),
        "p95_function_lines": round(quantiles(lengths, n=20)[-1], 1),
        "raise_per_1000_lines": round(1000 * raises / len(lines), 1),
        "comments_per_1000_lines": round(1000 * comments / len(lines), 1),
        "rooms": dict(rooms.most_common()),
    }


def main() -> None:
    """Print the figures of a checkout as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    root = parser.parse_args().root.resolve()
    print_result("house", {"root": root.name}, figures(root))


if __name__ == "__main__":
    main()
