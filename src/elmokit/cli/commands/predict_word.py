"""`elmokit predict-word`: the words that a model expects at a position of a sentence."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.errors import InputError, as_input_error

if TYPE_CHECKING:
    from elmokit.evaluation.word_prediction import PredictedWords


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
