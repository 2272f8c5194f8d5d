"""`elmokit predict` and `evaluate`: a trained task model; `predict-word`: a word of a sentence."""

from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.errors import InputError, as_input_error, counted

if TYPE_CHECKING:
    from elmokit.evaluation.word_prediction import PredictedWords


def predict(
    run: options.TaskRunArgument,
    text: options.TextArgument,
    *,
    text_field: options.TextFieldOption = None,
    tokenizer: str | None = None,
    model: options.RunModelOption = None,
    precision: str | None = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    by_document: bool = False,
    json: bool = False,
) -> None:
    """Predict with a trained task model on raw text.

    Prints one answer per line or record of TEXT: tagged words, brackets or labels. With --json, an
    answer has the text as written, tokens with character offsets, and probabilities: softmax of
    labels and tags; for spans, the share of the legal tag sequences with the span (ner: by its
    CRF).

    Args:
        precision: Arithmetic of the biLM: fp32, bf16 or int8; default: as in training.
        by_document: Give a name one type throughout a document, and find it wherever it is (ner).
            A document ends with its file, and at an empty line of a text file.
        json: Print one JSON object per line, with probabilities.
    """
    from elmokit.embed.numbered_lines import NumberedLines
    from elmokit.files.text_records import WHOLE_LINES
    from elmokit.tasks.runs.task_run import TaskRun

    trained = TaskRun.load(run, model=model, precision=precision, device=device)
    if text_field is None and trained.task.num_texts > 1:
        text_field = WHOLE_LINES  # with tabs between the texts
    is_empty = True
    for files in [[path] for path in text] if by_document else [text]:
        places, texts = tee(NumberedLines(files, text_field=text_field).located())
        names, lines = (str(place) for place, _ in places), (line for _, line in texts)
        how = {"tokenizer": tokenizer, "names": names, "by_document": by_document}
        for answer in trained.predict_json(lines, **how) if json else trained.predict(lines, **how):
            is_empty = False
            if json:
                emit_json(answer)
            else:
                typer.echo(trained.task.show(*answer))
    if is_empty:
        raise InputError(f"Nothing to predict: no line in {', '.join(map(str, text))}.")


def evaluate(
    run: options.TaskRunArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA")],
    *,
    columns: options.ColumnsOption = None,
    model: options.RunModelOption = None,
    precision: str | None = None,
    device: str = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Score a trained task model on labeled data, in total and by tag, type of span or label.

    Args:
        data: File with gold labels, in the task's format.
        precision: Arithmetic of the biLM: fp32, bf16 or int8; default: as in training.
    """
    from elmokit.tasks.runs.run_dir import run_hash
    from elmokit.tasks.runs.task_run import TaskRun
    from elmokit.weights.locate import TASK_RUNS

    in_columns = options.columns_of(columns)
    trained = TaskRun.load(
        run, model=model, precision=precision, device=device, cache_dir=layer_cache
    )
    run_sha256 = run_hash(TASK_RUNS.find(run)) if json else None
    score = trained.evaluate(data, columns=in_columns)
    if json:
        given = {"metric": score.metric, "value": score.value, **score.details}
        by_label = {"by_label": score.by_label} if score.by_label else {}
        metadata = {"run_sha256": run_sha256, **trained.result_metadata()}
        emit_json({**given, "examples": len(score.counts), **by_label, "metadata": metadata})
        return
    typer.echo(f"{score.metric:<12}{score.value:8.2f}   ({counted(len(score.counts), 'example')})")
    for name, value in score.details.items():
        typer.echo(f"{name:<12}{value:8.2f}")
    if score.by_label:
        width = max(12, 2 + max(map(len, score.by_label)))
        typer.echo(f"\n{'':<{width}}{'precision':>10}{'recall':>8}{'F1':>8}{'gold':>8}")
        for label, found in score.by_label.items():
            typer.echo(
                f"{label:<{width}}{found.precision:10.2f}{found.recall:8.2f}{found.f1:8.2f}"
                f"{found.gold:8,}"
            )


def predict_word(
    model: options.ModelArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE")],
    *,
    word: Annotated[int | None, typer.Option(metavar="N")] = None,
    insert: bool = False,
    top: Annotated[int, typer.Option(metavar="K", min=0)] = 10,
    state: str = "warm",
    json: bool = False,
) -> None:
    """Show which words a model expects after a sentence, before it, or inside it.

    The forward direction reads the words before the position, the backward direction those after
    it, and neither reads the word itself. "both" is proportional to p(word | before)
    p(word | after) / p(word), with p(word) estimated from its rank in the vocabulary. For the next
    word only "forward" is meaningful: the other two take the sentence to end after it.

    Args:
        sentence: A raw sentence.
        word: Number of the token to predict, from 0; default: the next.
        insert: Predict a word before token N; 0: before the sentence.
        top: Show the K likeliest words.
        state: LSTM state before the sentence: warm (as in training) or reset.
    """
    if insert and word is None:
        raise InputError("--insert needs --word N: the word before which to predict one.")
    from elmokit.evaluation.text_scorer import TextScorer
    from elmokit.evaluation.word_prediction import predict_of_words
    from elmokit.text.given_sentences import split_sentence
    from elmokit.weights.stored_bilm import read_bilm

    loaded = read_bilm(model)
    with as_input_error():
        scorer = TextScorer(loaded, state=state, precision="fp32", hashed=json)
        words = split_sentence(sentence, loaded.tokenize, where="`sentence`")
        found = predict_of_words(scorer, words, index=word, insert=insert, top=top)
    if json:
        emit_json({**asdict(found), "metadata": scorer.metadata()})
        return
    gap = found.words[: found.index], found.words[found.index + (not found.insert) :]
    hidden = "" if found.word is None else f"   hidden: {found.word}"
    unknown = " (unknown: scored as <UNK>)" if found.is_unknown else ""
    typer.echo(f"{' '.join((*gap[0], '[?]', *gap[1]))}{hidden}{unknown}")
    for name, one in (
        ("forward", found.forward),
        ("backward", found.backward),
        ("both", found.both),
    ):
        typer.echo(f"{name:9}{_line(one)}")


def _line(found: "PredictedWords") -> str:
    figures = f"entropy {found.entropy:.2f} bits"
    if found.rank is not None and found.probability is not None:
        figures += f", hidden word: rank {found.rank:,}, p {found.probability:.4f}"
    if not found.top:
        return figures
    return f"{figures}: {', '.join(f'{one.word} {one.probability:.3f}' for one in found.top)}"
