"""Words that a model reads otherwise than in its training, told once with counts.

Their vectors look like any others: whole sentences in the place of words, words with punctuation
that was split off in the training text (``bank.``) or longer than its rows of characters, and text
of which the vocabulary has few words.
"""

import logging
import re

import numpy as np

from elmokit.inference.contexts import NUM_BOUNDARIES, DistinctTokens
from elmokit.text.char_vocab import CharVocab
from elmokit.text.normalization import normalize
from elmokit.text.word_vocab import WordVocab

log = logging.getLogger(__name__)

MAX_GLUED_SHARE = 0.04
"""Share of words with glued punctuation above which the text was split by other rules: text that is
not split has about 10 %, and of abbreviations that the vocabulary lacks there are less than 1 %."""
MAX_UNKNOWN_SHARE = 0.4
"""Share of words outside the vocabulary above which the text is of another kind."""
MIN_WORDS = 200
"""Words from which these shares say something. The packaged English model does not know a fifth of
the words of tweets: 4 to 7 % of pieces of 30 words are above the limit, of 200 words less than 1 %.
"""
MAX_WORDS = 100_000
"""Words after which a text that passed is no longer checked."""
_GLUED = re.compile(r"[^\W\d_]{2,256}[.,!?;:…。！？、，；：؟،؛۔]+[\"'”’)\]]*")
_SPACES_INSIDE = re.compile(r"\S\s+\S+\s+\S")


class WordChecks:
    """Checks the words of one embedder. Cut words only matter ``by_characters``.

    ``vocab`` holds the frequent words of the model's training text; None where it is not known.
    ``tokenizer`` is the name of what split that text.
    """

    def __init__(
        self, tokenizer: str, char_vocab: CharVocab, vocab: WordVocab | None, *, by_characters: bool
    ) -> None:
        self._tokenizer, self._char_vocab, self._vocab = tokenizer, char_vocab, vocab
        self._open = {"spaces", "glued"}
        self._open |= {"cut"} if by_characters else set()
        self._open |= {"unknown"} if vocab is not None else set()
        self._num_words = self._num_unknown = self._num_glued = 0

    def tell(self, tokens: DistinctTokens) -> None:
        """Warn, once for each kind, of the words of a batch and those before."""
        if not self._open or not tokens.sentences:
            return
        counts = np.bincount(np.concatenate(tokens.sentences), minlength=len(tokens.words))
        words = dict(zip(tokens.words, counts.tolist(), strict=True))
        for boundary in tokens.words[:NUM_BOUNDARIES]:  # which are no words of the text
            del words[boundary]
        self._num_words += sum(words.values())
        if "spaces" in self._open:
            self._tell_spaces(tokens)
        if "cut" in self._open:
            self._tell_cut(words)
        if self._open & {"glued", "unknown"}:
            form = self._char_vocab.config.normalization
            self._tell_unknown({
                word: count for word, count in words.items()
                if self._vocab is None or normalize(word, form) not in self._vocab
            })  # fmt: skip
        if self._num_words >= MAX_WORDS:
            self._open -= {"glued", "unknown"}

    def _warn(self, check: str, message: str, *values: object) -> None:
        self._open.discard(check)
        log.warning(message, *values)

    def _tell_spaces(self, tokens: DistinctTokens) -> None:
        spaced = {
            row for row, word in enumerate(tokens.words)
            if _SPACES_INSIDE.search(word)
        }  # fmt: skip
        for sentence in tokens.sentences if spaced else ():
            _, *rows, _ = sentence.tolist()
            if rows and spaced.issuperset(rows):
                self._warn(
                    "spaces", "every word of a sentence has spaces inside, such as %r: if these "
                    'are sentences, give them as a list of strings, ["I sat .", …]',
                    tokens.words[rows[0]][:60],
                )  # fmt: skip
                return

    def _tell_cut(self, words: dict[str, int]) -> None:
        vocab = self._char_vocab
        shortest = vocab.max_bytes // 4  # no character has more bytes
        if cut := [word for word in words if len(word) > shortest and vocab.is_truncated(word)]:
            self._warn(
                "cut", "words that are longer than the %d %s that the model reads are cut, such as "
                "%r (%d of %d so far)", vocab.max_bytes, vocab.unit, cut[0][:60],
                sum(map(words.__getitem__, cut)), self._num_words,
            )  # fmt: skip

    def _tell_unknown(self, unknown: dict[str, int]) -> None:
        glued = [word for word in unknown if _GLUED.fullmatch(word)]
        self._num_glued += sum(map(unknown.__getitem__, glued))
        self._num_unknown += sum(unknown.values())
        if self._num_words < MIN_WORDS:
            return
        if "glued" in self._open and glued and self._num_glued > MAX_GLUED_SHARE * self._num_words:
            self._warn(
                "glued", "%d of %d words end in punctuation that tokenizers split off, such as %r: "
                "the model reads them as words it does not know. Give text that is split as in its "
                "training (tokenizer %r)", self._num_glued, self._num_words, glued[0],
                self._tokenizer,
            )  # fmt: skip
        is_high = self._num_unknown > MAX_UNKNOWN_SHARE * self._num_words
        if "unknown" in self._open and unknown and is_high:
            self._warn(
                "unknown", "%d of %d words are not in the model's vocabulary, such as %r: is the "
                "text in the model's language, and split as its training text was (tokenizer %r)?",
                self._num_unknown, self._num_words, next(iter(unknown))[:60], self._tokenizer,
            )  # fmt: skip
