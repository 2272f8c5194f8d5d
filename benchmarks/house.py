"""The size and the shape of the code: lines, files, functions, errors and comments, room by room.

    python benchmarks/house.py                     # this checkout
    python benchmarks/house.py ../another-checkout

Counts tracked Python files only. The density of the style is the median length of a line with
code and the 95th percentile of the lines of a function: a smaller house must not be a denser one.
"""

import ast
import re
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from common import new_parser, print_result, tracked_files


def read_tracked(root: Path, *patterns: str) -> dict[Path, list[str]]:
    """Return the lines of the tracked files that match a pattern."""
    files = tracked_files(root, *patterns)
    return {path: path.read_text("utf-8").splitlines() for path in files}


def figures(root: Path) -> dict[str, object]:
    """Return the figures of one checkout."""
    sources = read_tracked(root, "src/*.py")
    lines = [line for of_file in sources.values() for line in of_file]
    nodes = [
        node for of_file in sources.values() for node in ast.walk(ast.parse("\n".join(of_file)))
    ]
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    rooms: Counter[str] = Counter()
    for path, of_file in sources.items():
        parts = path.relative_to(root / "src" / "elmokit").parts
        rooms[parts[0] if len(parts) > 1 else "(root)"] += len(of_file)

    def num_lines(*patterns: str) -> int:
        return sum(map(len, read_tracked(root, *patterns).values()))

    def per_1000(count: int) -> float:
        return round(1000 * count / len(lines), 1)

    return {
        "src_lines": len(lines),
        "src_files": len(sources),
        "files_over_400_lines": sum(len(of_file) > 400 for of_file in sources.values()),
        "files_under_60_lines": sum(len(of_file) < 60 for of_file in sources.values()),
        "tests_lines": num_lines("tests/*.py", "conftest.py"),
        "benchmarks_recipes_examples_lines": num_lines(
            "benchmarks/*.py", "recipes/*.py", "examples/*.py"
        ),
        "median_line_length": median(len(line) for line in lines if line.strip()),
        "p95_function_lines": round(quantiles(lengths, n=20)[-1], 1),
        "raise_per_1000_lines": per_1000(sum(isinstance(node, ast.Raise) for node in nodes)),
        "comments_per_1000_lines": per_1000(sum(bool(re.match(r"\s*#", line)) for line in lines)),
        "rooms": dict(rooms.most_common()),
    }


def main() -> None:
    """Print the figures of a checkout as one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    root = parser.parse_args().root.resolve()
    print_result("house", {"root": root.name}, figures(root))


if __name__ == "__main__":
    main()
