"""The page of an experiment."""

from collections.abc import Mapping, Sequence
from typing import Any

from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.tables import Table

MAX_MISSING_SHOWN = 60


def to_markdown(
    title: str, tables: Sequence[Table], findings: Findings, metadata: Mapping[str, Any]
) -> str:
    """Return a page with the tables, the missing runs and the metadata."""
    parts = [f"# {title}\n"]
    for table in tables:
        if not table.rows:
            continue
        parts.append(f"## {table.title}\n\n{_grid(table.header, table.rows)}")
        parts += table.notes
    if findings.missing:
        shown = findings.missing[:MAX_MISSING_SHOWN]
        lines = [f"- {run.describe()}: {reason}" for run, reason in shown]
        if len(shown) < len(findings.missing):
            lines.append(f"- and {len(findings.missing) - len(shown)} more")
        parts.append(f"## Not run: {len(findings.missing)} of {len(findings.runs)}\n")
        parts.append("\n".join(lines))
    parts.append("## How it was made\n")
    parts.append("\n".join(f"- {name}: {value}" for name, value in metadata.items()))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
