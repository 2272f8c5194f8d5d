"""A table with a row for every occurrence of a word, to search in: Parquet.

    python recipes/word_index.py text.txt -o words.parquet
    python recipes/word_index.py text.txt -o words.parquet --model ko --words 배 눈

Every line of the text is one sentence; blank lines are left out. Needs the extra `arrow`.
docs/guides/integrations.md searches in the table with FAISS, LanceDB and Qdrant.
"""

import argparse
from pathlib import Path

import elmokit
from elmokit.cli.output import exit_on_user_error
from elmokit.corpus.readers import read_text_lines
from elmokit.errors import InputError, counted
from elmokit.files.atomic import check_target
from elmokit.files.sources import find_files
from elmokit.files.text_reader import ReadReport

SUFFIX = ".parquet"


def main() -> None:
    """Parse, check, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="+", type=Path, help="text, gzip, JSON lines or Parquet")
    parser.add_argument("-o", "--output", required=True, type=Path, help=f"ends in {SUFFIX}")
    parser.add_argument("--model", help="directory or name; default: en")
    parser.add_argument("--layers", default="average", choices=["average", "top"])
    parser.add_argument("--words", nargs="+", help="only these, as the tokenizer writes them")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing table")
    given = parser.parse_args()
    from elmokit.integrations.arrow_table import write_occurrences  # may be missing

    if given.output.suffix.lower() != SUFFIX:
        raise InputError(f"The output must end in {SUFFIX}, got {given.output.name!r}.")
    files = find_files(given.texts)
    check_target(given.output, inputs=files, overwrite=given.overwrite)
    report = ReadReport()
    rows = write_occurrences(
        elmokit.Embedder.load(given.model),
        (line.text for line in read_text_lines(files, report)),
        given.output,
        layers=given.layers,
        words=given.words,
    )
    print(f"{given.output}: {counted(rows, 'row')} of {counted(report.lines, 'line')}")


if __name__ == "__main__":
    with exit_on_user_error():
        main()
