"""`elmokit reading`: surprisal against reading times."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import check_output, emit_json, write_table
from elmokit.errors import InputError, counted

if TYPE_CHECKING:
    import numpy as np

    from elmokit.evaluation.reading import Gain, Observations
    from elmokit.weights.stored_bilm import StoredBiLM

FIGURES = ("forward", "backward", "forward_entropy")
_BOTH = "both directions"
_CURVE = ("forward", "backward", _BOTH)


def reading(
    model: options.ModelArgument,
    table: Annotated[Path, typer.Argument(metavar="TABLE")],
    *,
    kept: options.KeptOption = False,
    measure: Annotated[list[str], typer.Option(metavar="COLUMN")],
    word: str = "word",
    position: str = "position",
    first_position: Annotated[int, typer.Option(min=0, max=1)] = 1,
    sentence: str | None = None,
    item: str = "item",
    frequency: str | None = None,
    against: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    spill: Annotated[int, typer.Option(min=0, max=5)] = 1,
    punctuation: Literal["with-word", "drop"] = "with-word",
    final: bool = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    state: Literal["warm", "reset", "carry"] = "warm",
    unknown: str = "auto",
    precision: str = "auto",
    overwrite: bool = False,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Print how much a model's surprisal says about reading times, word by word.

    TABLE (.csv, or separated by tabs, with a header) has a row per word. Surprisal is that of the
    whole word between spaces. The gain is that of a linear regression over its baseline (length,
    frequency and position, also of the words before), on items that were held out (on sentences, if
    there are fewer than 20 items): nats of log-likelihood a word, and points of R². Last words of
    sentences are left out.

    Args:
        measure: Column with reading times or amplitudes; repeatable.
        word: Column with the word.
        position: Column with the place of the word in its sentence or item.
        first_position: Whether places count from 0 or 1.
        sentence: Column with the whole sentence; default: the words of an item are its text, in
            the order of their places, cut after full stops, question and exclamation marks.
        item: Column that says which words belong together, if there is no --sentence.
        frequency: Column with log frequencies; default: the logarithm of the rank in the model's
            vocabulary.
        against: Column with another predictor for the same regression; repeatable.
        spill: Words before each whose predictors count, too.
        punctuation: Whether surprisals of punctuation marks count with their word.
        final: Keep the last words of sentences.
        output: Write the words with all predictors, separated by tabs, for R.
        state: LSTM state before each sentence: warm (as in training), reset (zeros), or carry
            (forward, from the sentence before it in its item, the first from warm; backward, warm).
        precision: fp32, bf16 or auto, as for `elmokit perplexity`.
    """
    import numpy as np

    from elmokit.evaluation import reading as times
    from elmokit.evaluation.surprisal import typed_words
    from elmokit.evaluation.surprisal_files import Table, sentences_of_items
    from elmokit.weights.model_files import models_over_training
    from elmokit.weights.stored_bilm import open_bilm

    check_output(output, inputs=[table], overwrite=overwrite)
    if state == "carry" and sentence is not None:
        raise InputError("--state carry needs items: give --item instead of --sentence.")
    rows = Table(table)
    order = rows.places(position, first=first_position)
    if sentence is not None:
        texts, located = _by_sentence(rows[sentence], order)
    else:
        texts, located = sentences_of_items(rows[item], rows[word], order.tolist())
    items_of_texts = None
    if state == "carry":
        names = {number: name for (number, _), name in zip(located, rows[item], strict=True)}
        items_of_texts = [names[number] for number in range(len(texts))]
    curve = models_over_training(model) if kept else {model: 0}

    def observed(loaded: "StoredBiLM") -> "Observations":
        typed = typed_words(
            loaded, texts, items=items_of_texts, punctuation=punctuation,
            state="warm" if state == "carry" else state, precision=precision, unknown=unknown,
        )  # fmt: skip
        return times.observe(typed, located, rows[word], spill=spill)

    loaded = open_bilm(model)
    words = observed(loaded)
    values = {name: rows.numbers(name) for name in measure}
    others = {name: rows.numbers(name) for name in against or ()}
    if frequency is not None:
        frequencies = rows.numbers(frequency)
    else:
        vocab = loaded.word_vocab
        assert vocab is not None
        frequencies = np.log10(vocab.encode([_plain(one) for one in rows[word]]) + 1.0)
    needed = np.stack([*values.values(), *others.values(), frequencies])
    is_kept = np.array([final or not word.is_last for word in words.words])
    usable = np.logical_and(~np.isnan(needed).any(axis=0), is_kept)
    if not usable.any():
        raise InputError(f"{table}: no row has all of the columns.")
    lengths = np.array([float(len(_plain(one))) for one in rows[word]])
    base = {
        name: _with_spill(column, words, spill)
        for name, column in (("length", lengths), ("frequency", frequencies))
    }
    place = words.position[:, None].astype(float)
    baseline = np.concatenate([*base.values(), place], axis=1)[usable]
    own = words.keep(usable)
    predictors = _predictors(own, spill) | {
        name: _with_spill(column, words, spill)[usable] for name, column in others.items()
    }

    items = None if sentence is not None else np.array(rows[item])[usable].tolist()
    groups, group_name = times.groups_of(own.sentence, items)

    def gains_of(predictors: "dict[str, np.ndarray]") -> "dict[str, dict[str, Gain]]":
        return {
            name: {
                predictor: times.gain(values[name][usable], baseline, columns, groups)
                for predictor, columns in predictors.items()
            }
            for name in measure
        }

    gains = gains_of(predictors)
    over_training = {
        earlier: gains_of(_predictors(observed(open_bilm(earlier)).keep(usable), spill))
        for earlier in curve
        if earlier != model
    } | {model: gains}
    if output is not None:
        columns = {name: column[usable] for name, column in {**values, **others}.items()}
        spilled = {name: column[usable] for name, column in base.items()} | {
            name: predictors[name] for name in FIGURES
        }
        _write(output, columns, own, spilled)
    if json:
        emit_json({
            "words": int(usable.sum()), "left_out": int((~usable).sum()), "sentences": len(texts),
            "held_out_by": group_name,
            "unknown": float(np.mean([one.is_unknown for one in own.words])),
            "spelled": any(one.spelling is not None for one in own.words),
            "gains": gains,
            **({} if not kept else {"over_training": [
                {"model": name, "words_read": curve[name], "gains": part}
                for name, part in over_training.items()
            ]}),
            "metadata": loaded.metadata(),
        })  # fmt: skip
        return
    for name in measure if kept else ():
        typer.echo(f"{name} over the training of {model}: nats a word, by words read")
        typer.echo(f"{'':<16}" + "".join(f"{key:>18}" for key in _CURVE))
        for earlier, part in over_training.items():
            cells = "".join(f"{part[name][key].nats:>+18.4f}" for key in _CURVE)
            typer.echo(f"{curve[earlier]:<16,}{cells}")
    for name, parts in gains.items():
        typer.echo(
            f"{name}: {counted(int(usable.sum()), 'word')}, {int((~usable).sum())} left out, "
            f"held out by {group_name} ({len(set(groups.tolist()))})"
        )
        typer.echo(f"{'':<24}{'nats a word':>30}{'R² points':>12}{'slope':>10}")
        for key, part in parts.items():
            interval = f"{part.nats:+.4f} [{part.low:+.4f}, {part.high:+.4f}]"
            typer.echo(f"{key:<24}{interval:>30}{part.r2_points:>+12.2f}{part.slope:>+10.3f}")


def _predictors(words: "Observations", spill: int) -> "dict[str, np.ndarray]":
    """Return the columns that come from the model."""
    import numpy as np

    from elmokit.evaluation import reading as times

    columns = {name: times.columns_of(words, [name], spill=spill) for name in FIGURES}
    both = np.concatenate([columns["forward"], columns["backward"]], axis=1)
    return {**columns, _BOTH: both}


def _plain(word: str) -> str:
    """Return a word without punctuation around it, as the vocabulary has it."""
    return re.sub(r"^\W+|\W+$", "", word) or word


def _by_sentence(sentences: list[str], places: "np.ndarray") -> tuple[list[str], list[Any]]:
    numbers: dict[str, int] = {}
    located = [
        (numbers.setdefault(text, len(numbers)), place)
        for text, place in zip(sentences, places.tolist(), strict=True)
    ]
    return list(numbers), located


def _with_spill(column: "np.ndarray", words: "Observations", spill: int) -> "np.ndarray":
    """Return a column of the table and those of the words before; its mean where there is none."""
    import numpy as np

    places = list(zip(words.sentence.tolist(), words.position.tolist(), strict=True))
    at = dict(zip(places, column.tolist(), strict=True))
    mean = float(np.nanmean(column))
    columns = [column]
    for back in range(1, spill + 1):
        before = [at.get((number, place - back), mean) for number, place in places]
        columns.append(np.nan_to_num(np.array(before, dtype=float), nan=mean))
    return np.stack(columns, axis=1)


def _write(
    output: Path, columns: "dict[str, np.ndarray]", words: "Observations",
    spilled: "dict[str, np.ndarray]",
) -> None:  # fmt: skip
    numbers = columns | {
        f"{name}_{back}" if back else name: column
        for name, both in spilled.items()
        for back, column in enumerate(both.T)
    }
    rows = []
    places = zip(words.sentence.tolist(), words.position.tolist(), words.words, strict=True)
    for row, (sentence, place, word) in enumerate(places):
        cells = [f"{column[row]:.6g}" for column in numbers.values()]
        spelling = "" if word.spelling is None else f"{word.spelling:.6g}"
        rows.append([sentence, place, word.word, int(word.is_unknown), spelling, *cells])
    write_table(output, ["sentence", "position", "word", "is_unknown", "spelling", *numbers], rows)
