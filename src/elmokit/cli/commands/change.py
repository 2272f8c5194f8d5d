"""`elmokit change`: words that are used differently in two corpora."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, check_output, progress_bar, write_table
from elmokit.errors import counted
from elmokit.files.sources import find_files

if TYPE_CHECKING:
    from elmokit.embed.lexical_change import ChangedWord


def change(
    a: Annotated[Path, typer.Argument(metavar="A", help="One corpus: a file or folder of text.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other corpus.")],
    *,
    model: options.ModelOption = None,
    word: Annotated[list[str] | None, typer.Option("--word", "-w", metavar="WORD")] = None,
    layers: str = "average",
    unit: str = "auto",
    min_count: Annotated[int, typer.Option(min=2)] = 20,
    max_words: Annotated[int, typer.Option(min=1)] = 1000,
    sample: Annotated[int, typer.Option(min=2)] = 100,
    rounds: Annotated[int, typer.Option(min=1)] = 999,
    top: Annotated[int, typer.Option(min=1)] = 20,
    examples: Annotated[int, typer.Option(min=0)] = 2,
    seed: Annotated[int, options.seed_option("of samples and permutations")] = 0,
    text_field: options.TextFieldOption = None,
    precision: str = "fp32",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    overwrite: bool = False,
    threads: options.ThreadsOption = None,
) -> Result:
    """Print which words are used differently in two corpora, and sentences that show it.

    One model reads both. A word has a sample of occurrences from each corpus, at most one of a
    line or document. Words are in the order of `excess`: how much farther apart uses of different
    corpora are than uses of one. apd is the mean cosine distance of uses of different corpora, prt
    that of the mean vectors; p and q are those of apd: by permutation, and the smallest false
    discovery rate.

    Args:
        word: A word to compare; repeatable; default: the most frequent words of both.
        unit: What gives at most one occurrence of a word: line, document (lines up to a blank one)
            or auto (documents, if both corpora have at least twice --min-count of them).
        min_count: Units that a word must occur in, in each corpus.
        max_words: Most words without --word.
        sample: Most occurrences of a word from each corpus.
        rounds: Permutations; of words with very small p-values up to 40 for each word compared.
        top: Words to print.
        examples: Sentences to print for each word and corpus.
        output: Write all words as a table, separated by tabs.
    """
    from elmokit.embed.lexical_change import find_changes

    check_output(output, inputs=find_files([a, b]), overwrite=overwrite)
    with progress_bar("counting") as update:
        changes = find_changes(
            a, b, model=model, words=word, layers=options.layers_of(layers), unit=unit,
            min_count=min_count, max_words=max_words, sample=sample, num_rounds=rounds,
            num_examples=examples, seed=seed, text_field=text_field,
            precision=precision,
            on_progress=lambda stage, done, total: update(done, total=total, description=stage),
        )  # fmt: skip
    words = changes.words
    if output is not None:
        _write(output, words)
    changed = sum(row.q["apd"] < 0.05 for row in words)
    lines = [
        f"{counted(len(words), 'word')}, {changed} changed at a false discovery rate of 5 %",
        f"{'':<18}{'A':>7}{'B':>7}{'excess':>8}{'apd':>7}{'prt':>7}{'p':>8}{'q':>8}",
    ]
    for row in words[:top]:
        numbers = "".join(f"{value:>7.3f}" for value in row.values.values())
        lines.append(
            f"{row.word[:17]:<18}{row.units[0]:>7,}{row.units[1]:>7,}{row.excess:>8.3f}{numbers}"
            f"{row.p['apd']:>8.3f}{row.q['apd']:>8.3f}"
        )
        for name, sentences in zip("AB", row.examples, strict=True):
            lines += [f"    {name}: {sentence}" for sentence in sentences]
    return Result({"metadata": changes.metadata, "a": a, "b": b, "words": words}, lines)


def _write(path: Path, words: "Sequence[ChangedWord]") -> None:
    measures = [f"{kind}{name}" for name in words[0].values for kind in ("", "p_", "q_")]
    count = max(len(examples) for row in words for examples in row.examples)
    sentences = [f"{name}_{k}" for name in "ab" for k in range(1, count + 1)]
    rows = []
    for row in words:
        numbers = [part[m] for m in row.values for part in (row.values, row.p, row.q)]
        cells = [f"{number:.6g}" for number in (row.excess, *numbers)]
        texts = [text for part in row.examples for text in [*part, *[""] * (count - len(part))]]
        rows.append([row.word, *row.units, *cells, *texts])
    write_table(path, ["word", "units_a", "units_b", "excess", *measures, *sentences], rows)
