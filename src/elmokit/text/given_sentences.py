"""Sentences as users give them: strings, or lists of words.

The same rule everywhere: the model's own tokenizer splits a string; in a list every string is one
word; one string where a list of sentences belongs is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from elmokit.errors import InputError

GivenSentence = str | Sequence[str]
Tokenize = Callable[[str], list[str]]


def check_text(text: str, *, where: str) -> None:
    if "\0" in text:
        raise InputError(f"{where} holds a NUL character at position {text.index(chr(0))}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where} holds {text[error.start]!r} at position {error.start}, a lone surrogate."
        ) from error


def split_sentences(
    sentences: Iterable[GivenSentence], tokenize: Tokenize | None
) -> Iterator[list[str]]:
    """Yield the words of every sentence; without ``tokenize`` strings are refused."""
    check_is_list(sentences)
    return (
        split_sentence(sentence, tokenize, where=f"sentence {i}")
        for i, sentence in enumerate(sentences)
    )


def check_is_list(sentences: object, *, name: str = "sentences") -> None:
    if isinstance(sentences, str | bytes):
        raise TypeError(
            f"`{name}` must be a list, got one string: {sentences!r:.60}. Put it in a list: "
            '["I sat by the bank ."].'
        )


def split_sentence(sentence: object, tokenize: Tokenize | None, *, where: str) -> list[str]:
    if isinstance(sentence, str):
        if tokenize is None:
            raise TypeError(
                f"{where} is the string {sentence[:40]!r}: give a list of words. `Embedder.embed` "
                "splits strings."
            )
        check_text(sentence, where=where)
        return tokenize(sentence)
    parts = list(sentence) if isinstance(sentence, Iterable) else [sentence]
    words = [part for part in parts if isinstance(part, str)]
    if len(words) < len(parts):
        wrong = next(part for part in parts if not isinstance(part, str))
        raise TypeError(
            f"{where} must be a string or a list of words, got {sentence!r:.60} with {wrong!r:.60} "
            f"of type {type(wrong).__name__}."
        )
    return words
