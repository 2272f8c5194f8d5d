"""Words that a model reads otherwise than in its training, told once with counts.

Their vectors look like any others: whole sentences in the place of words, words with punctuation
that was split off in the training text (``bank.``) or longer than its rows of characters, and text
of which the vocabulary has few words.
"""

import logging
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from elmokit.errors import MissingExtraError
from elmokit.inference.contexts import NUM_BOUNDARIES, DistinctTokens
from elmokit.text.char_vocab import CharVocab
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab

log = logging.getLogger(__name__)

MAX_GLUED_SHARE = 0.02
"""Share of words with glued punctuation above which the text was split by other rules."""
MAX_UNKNOWN_SHARE = 0.4
"""Share of words outside the vocabulary above which the text is of another kind."""
MIN_WORDS = 200
"""Words from which that share says something. The packaged English model does not know a fifth of
the words of tweets: 4 to 7 % of pieces of 30 words are above the limit, of 200 words less than 1 %.
"""
MAX_WORDS = 100_000
"""Words after which a text that passed is no longer checked."""
MAX_WORD_CHARACTERS = 256
"""Length of the longest word whose punctuation is looked at."""
_GLUED = re.compile(r"[^\W\d_][.,!?;:…。！？、，；：]+[\"'”’)\]]*$")
_SPACES_INSIDE = re.compile(r"\S\s+\S+\s+\S")


class WordChecks:
    """Checks the words of one embedder. Cut words only matter ``by_characters``.

    ``vocab`` holds the frequent words of the model's training text; None where it is not known.
    """

    def __init__(
        self,
        tokenizer: TokenizerConfig,
        char_vocab: CharVocab,
        vocab: WordVocab | None,
        *,
        by_characters: bool,
    ) -> None:
        self._tokenizer, self._char_vocab, self._vocab = tokenizer, char_vocab, vocab
        self._is_split_at_spaces = tokenizer.name == "whitespace"
        self._open = {"spaces", "glued"}
        self._open |= {"cut"} if by_characters else set()
        self._open |= {"unknown"} if vocab is not None else set()
        self._glued: Counter[str] = Counter()
        self._num_listed = self._num_words = self._num_unknown = 0

    def add(self, words: Sequence[str]) -> None:
        """Look at the words of a sentence that was given as a list."""
        if "spaces" in self._open and words and all(map(_SPACES_INSIDE.search, words)):
            self._warn(
                "spaces", "every word of a sentence has spaces inside, such as %r: if these are "
                'sentences, give them as a list of strings, ["I sat .", …]', words[0][:60],
            )  # fmt: skip
        if not self._is_split_at_spaces:
            self._count_glued(words)

    def add_split(self, words: Sequence[str]) -> None:
        """Look at the words of a sentence that was given as a string."""
        if self._is_split_at_spaces:
            self._count_glued(words)

    def _count_glued(self, words: Sequence[str]) -> None:
        if "glued" in self._open:
            self._num_listed += len(words)
            # most words end in a letter, which is quicker to ask than the pattern
            ends = [w for w in words if not w[-1:].isalnum() and len(w) <= MAX_WORD_CHARACTERS]
            self._glued.update(word for word in ends if _GLUED.search(word))

    def tell(self, tokens: DistinctTokens) -> None:
        """Warn, once for each kind, of the words added and of those of a batch."""
        if not self._open or not tokens.sentences:
            return
        counts = np.bincount(np.concatenate(tokens.sentences), minlength=len(tokens.words))
        words = dict(zip(tokens.words, counts.tolist(), strict=True))
        for boundary in tokens.words[:NUM_BOUNDARIES]:  # which are no words of the text
            del words[boundary]
        self._num_words += sum(words.values())
        if "cut" in self._open:
            self._tell_cut(words)
        if "glued" in self._open and self._glued.total() > MAX_GLUED_SHARE * self._num_listed:
            self._tell_glued()
        if "unknown" in self._open:
            self._tell_unknown(words)
        if self._num_words >= MAX_WORDS:
            self._open -= {"glued", "unknown"}

    def _warn(self, check: str, message: str, *values: object) -> None:
        self._open.discard(check)
        log.warning(message, *values)

    def _tell_cut(self, words: dict[str, int]) -> None:
        vocab = self._char_vocab
        shortest = vocab.max_bytes // 4  # no character has more bytes
        if cut := [word for word in words if len(word) > shortest and vocab.is_truncated(word)]:
            self._warn(
                "cut", "words that are longer than the %d %s that the model reads are cut, such as "
                "%r (%d of %d so far)", vocab.max_bytes, vocab.unit, cut[0][:60],
                sum(map(words.__getitem__, cut)), sum(words.values()),
            )  # fmt: skip

    def _tell_glued(self) -> None:
        # splitting is slow, so the tokenizer is asked only if the form of the words is suspicious
        pieces_of = {word: self._split(word) for word, _ in self._glued.most_common(1000)}
        glued = [word for word, pieces in pieces_of.items() if pieces != [word]]
        count = sum(map(self._glued.__getitem__, glued))
        if count > MAX_GLUED_SHARE * self._num_listed:
            splits = f"the model's tokenizer {self._tokenizer.name!r} splits off"
            advice = "Give whole sentences as strings, or text that is split as in its training"
            if self._is_split_at_spaces:
                splits = "tokenizers split off, but that of the model only splits at spaces"
                advice = "Give lists of words, or strings that are tokenized"
            self._warn(
                "glued", "%d of %d words end in punctuation that %s, such as %r (%s): the model "
                "reads them as words it does not know. %s", count, self._num_listed, splits,
                glued[0], " ".join(pieces_of[glued[0]]), advice,
            )  # fmt: skip

    def _split(self, word: str) -> list[str]:
        """Return what the model's tokenizer makes of a word inside a sentence."""
        try:
            tokenizer = build_tokenizer(
                "simple:en" if self._is_split_at_spaces else self._tokenizer
            )
        except MissingExtraError:
            return [word[:-1], word[-1]]
        form = self._char_vocab.config.normalization
        return NormalizingTokenizer(tokenizer, form).tokenize(f"{word} a")[:-1]

    def _tell_unknown(self, words: dict[str, int]) -> None:
        vocab, form = self._vocab, self._char_vocab.config.normalization
        unknown = [word for word in words if normalize(word, form) not in (vocab or ())]
        self._num_unknown += sum(map(words.__getitem__, unknown))
        is_high = self._num_unknown > MAX_UNKNOWN_SHARE * self._num_words
        if unknown and is_high and self._num_words >= MIN_WORDS:
            self._warn(
                "unknown", "%d of %d words are not in the model's vocabulary, such as %r: is the "
                "text in the model's language, and split as its training text was (tokenizer %r)?",
                self._num_unknown, self._num_words, unknown[0][:60], self._tokenizer.name,
            )  # fmt: skip
