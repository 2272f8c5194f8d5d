"""Words and their vectors, a sentence at a time."""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Float

from elmokit.embed.embedder import Embedder
from elmokit.inference.results import Layers
from elmokit.text.given_sentences import GivenSentence, split_sentences


def words_and_vectors(
    embedder: Embedder, sentences: Iterable[GivenSentence], *, layers: Layers | str = "average"
) -> Iterator[tuple[list[str], Float[np.ndarray, "W E"]]]:
    """Yield the words of every sentence and their vectors; memory does not grow with the text."""
    waiting: deque[list[str]] = deque()  # the embedder reads ahead

    def words() -> Iterator[list[str]]:
        for split in split_sentences(sentences, embedder.tokenizer.tokenize):
            waiting.append(split)
            yield split

    for vectors in embedder.embed_stream(words(), layers=layers):
        yield waiting.popleft(), vectors
