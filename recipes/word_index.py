"""A table with a row for every occurrence of a word, to search in: Parquet.

    python recipes/word_index.py text.txt -o words.parquet
    python recipes/word_index.py text.txt -o words.parquet --model ko --words 배 눈

Every line of the text is one sentence; blank lines are left out. Needs the extra `arrow`.
docs/guides/integrations.md searches in the table with FAISS, LanceDB and Qdrant.
"""

import argparse
import sys
from pathlib import Path

import elmokit
from elmokit.corpus.readers import read_text_lines
from elmokit.errors import ElmokitError
from elmokit.files.text_reader import ReadReport
from elmokit.integrations.occurrences import write_occurrences


def main(arguments: list[str]) -> str:
    """Write the table; return what to print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("texts", nargs="+", type=Path, help="text, gzip, JSON lines or Parquet")
    parser.add_argument("-o", "--output", required=True, type=Path)
    parser.add_argument("--model", help="directory or name; default: en")
    parser.add_argument("--layers", default="average", choices=["average", "top"])
    parser.add_argument("--words", nargs="+", help="only these, as the tokenizer writes them")
    given = parser.parse_args(arguments)
    report = ReadReport()
    try:
        rows = write_occurrences(
            elmokit.Embedder.load(given.model),
            (line.text for line in read_text_lines(given.texts, report)),
            given.output,
            layers=given.layers,
            words=given.words,
        )
    except (ElmokitError, OSError) as error:
        sys.exit(f"Error: {error}")
    return f"{given.output}: {rows:,} rows of {report.lines:,} lines"


if __name__ == "__main__":
    print(main(sys.argv[1:]))
