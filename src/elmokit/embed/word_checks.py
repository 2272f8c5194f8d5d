"""Words that a model reads otherwise than in its training, told once with counts.

Their vectors look like any others: whole sentences in the place of words, words with punctuation
that was split off in the training text (``bank.``) or longer than its rows of characters, special
words, text of which the vocabulary has few words, and text in a script that the model has hardly
read, which even a few words show.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from elmokit.errors import MissingExtraError
from elmokit.inference.batching import NUM_BOUNDARIES, DistinctTokens
from elmokit.inference.word_cache import MAX_CHARACTERS
from elmokit.text.char_vocab import CharVocab
from elmokit.text.normalization import normalize
from elmokit.text.scripts import script_of
from elmokit.text.special_words import SpecialWordCount
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
MIN_SCRIPT_WORDS = 4
"""Words with letters from which their scripts say something."""
MAX_WORDS = 100_000
"""Words after which a text that passed is no longer checked."""
MAX_SAMPLE, MIN_SAMPLE, MIN_SCRIPT_SHARE = 5000, 20, 0.005
"""Words by which a model's scripts are known, and the share of them that makes a script its own."""
_GLUED = re.compile(r"[^\W\d_][.,!?;:…。！？、，；：]+[\"'”’)\]]*$")
_SPACES_INSIDE = re.compile(r"\S\s+\S+\s+\S")


class WordChecks:
    """Checks the words of one embedder. Cut words only matter ``by_characters``.

    ``vocab`` holds the frequent words of the model's training text; None where it is not known:
    ``sample`` are then words that it was trained on or is warmed with, for their scripts.
    """

    def __init__(
        self,
        tokenizer: TokenizerConfig,
        char_vocab: CharVocab,
        vocab: WordVocab | None,
        *,
        sample: Iterable[str] = (),
        by_characters: bool,
    ) -> None:
        self._tokenizer, self._char_vocab, self._vocab = tokenizer, char_vocab, vocab
        self._scripts = _scripts_of(sample if vocab is None else vocab.words[:MAX_SAMPLE])
        self._is_split_at_spaces = tokenizer.name == "whitespace"
        self._special = SpecialWordCount()
        self._unknown, self._foreign = _Share(MIN_WORDS), _Share(MIN_SCRIPT_WORDS)
        self._glued: Counter[str] = Counter()
        self._num_listed = 0
        self._has_told_spaces = False
        self._open = [self._tell_special, self._tell_foreign, self._tell_unknown]
        self._open.append(self._tell_glued)
        if by_characters:
            self._open.append(self._tell_cut)

    def add(self, words: Sequence[str]) -> None:
        """Look at the words of a sentence that was given as a list."""
        if words and not self._has_told_spaces and all(map(_SPACES_INSIDE.search, words)):
            log.warning(
                "every word of a sentence has spaces inside, such as %r: if these are sentences, "
                'give them as a list of strings, ["I sat .", …]', words[0][:60],
            )  # fmt: skip
            self._has_told_spaces = True
        if not self._is_split_at_spaces:
            self._count_glued(words)

    def add_split(self, words: Sequence[str]) -> None:
        """Look at the words of a sentence that was given as a string."""
        if self._is_split_at_spaces:
            self._count_glued(words)

    def _count_glued(self, words: Sequence[str]) -> None:
        if self._tell_glued not in self._open:
            return
        self._num_listed += len(words)
        for word in words:
            may_be_glued = not word[-1:].isalnum() and len(word) <= MAX_CHARACTERS
            if may_be_glued and _GLUED.search(word):
                self._glued[word] += 1

    def tell(self, tokens: DistinctTokens) -> None:
        """Warn, once for each kind, of the words added and of those of a batch."""
        if self._open and tokens.sentences:
            counts = np.bincount(np.concatenate(tokens.sentences), minlength=len(tokens.words))
            words = dict(zip(tokens.words, counts.tolist(), strict=True))
            # The boundaries are no words of the text.
            for boundary in tokens.words[:NUM_BOUNDARIES]:
                del words[boundary]
            self._open = [check for check in self._open if not check(words, tokens)]

    # Every check gets the words of a batch with their counts, warns if it must, and returns whether
    # it is over: it has warned, or enough words have passed. Other threads may run the same check.

    def _tell_special(self, words: dict[str, int], tokens: DistinctTokens) -> bool:
        for sentence in tokens.sentences:
            self._special.add(" ".join(tokens.words[number] for number in sentence[1:-1]))
        self._special.warn("sentences so far")
        return self._special.num_marked > 0

    def _tell_cut(self, words: dict[str, int], tokens: DistinctTokens) -> bool:
        shortest = self._char_vocab.max_bytes // 4  # no character has more bytes
        cut = [
            word for word in words if len(word) > shortest and self._char_vocab.is_truncated(word)
        ]
        if cut:
            log.warning(
                "words that are longer than the %d %s that the model reads are cut, such as %r (%d "
                "of %d so far)",
                self._char_vocab.max_bytes, self._char_vocab.unit, cut[0][:60],
                sum(map(words.__getitem__, cut)), sum(words.values()),
            )  # fmt: skip
        return bool(cut)

    def _tell_glued(self, words: dict[str, int], tokens: DistinctTokens) -> bool:
        """Warn of punctuation on words of lists, or of strings that are split at spaces alone."""
        # Splitting is slow, so the tokenizer is asked only if the form of the words is suspicious.
        limit = MAX_GLUED_SHARE * self._num_listed
        ends = self._glued.copy()
        if ends.total() > limit:
            pieces_of = {word: self._split(word) for word, _ in ends.most_common(1000)}
            glued = [word for word, pieces in pieces_of.items() if pieces != [word]]
            count = sum(map(ends.__getitem__, glued))
            if count > limit:
                splits = f"the model's tokenizer {self._tokenizer.name!r} splits off"
                advice = "Give whole sentences as strings, or text that is split as in its training"
                if self._is_split_at_spaces:
                    splits = "tokenizers split off, but that of the model only splits at spaces"
                    advice = "Give lists of words, or strings that are tokenized"
                log.warning(
                    "%d of %d words end in punctuation that %s, such as %r (%s): the model reads "
                    "them as words it does not know. %s",
                    count, self._num_listed, splits, glued[0], " ".join(pieces_of[glued[0]]),
                    advice,
                )  # fmt: skip
                return True
        return self._num_listed >= MAX_WORDS

    def _split(self, word: str) -> list[str]:
        """Return what the model's tokenizer makes of a word inside a sentence."""
        try:
            name = "simple:en" if self._is_split_at_spaces else self._tokenizer
            tokenizer = build_tokenizer(name)
        except MissingExtraError:
            return [word[:-1], word[-1]]
        form = self._char_vocab.config.normalization
        return NormalizingTokenizer(tokenizer, form).tokenize(f"{word} a")[:-1]

    def _tell_foreign(self, words: dict[str, int], tokens: DistinctTokens) -> bool:
        if not self._scripts:
            return True
        script = {word: script_of(word) for word in words}
        lettered = [word for word in words if script[word]]
        foreign = [word for word in lettered if script[word] not in self._scripts]
        if not self._foreign.add(foreign, lettered, words):
            return self._foreign.num_words >= MAX_WORDS
        example = self._foreign.example
        log.warning(
            "%d of %d words are in a script that the model hardly knows, such as %r (%s): it was "
            "trained on %s",
            self._foreign.num_marked, self._foreign.num_words, example[:60], script_of(example),
            ", ".join(sorted(self._scripts)),
        )  # fmt: skip
        self._vocab = None  # it would say the same
        return True

    def _tell_unknown(self, words: dict[str, int], tokens: DistinctTokens) -> bool:
        vocab, form = self._vocab, self._char_vocab.config.normalization
        if vocab is None:
            return True
        unknown = [word for word in words if normalize(word, form) not in vocab]
        if not self._unknown.add(unknown, words, words):
            return self._unknown.num_words >= MAX_WORDS
        log.warning(
            "%d of %d words are not in the model's vocabulary, such as %r: is the text in the "
            "model's language, and split as its training text was (tokenizer %r)?",
            self._unknown.num_marked, self._unknown.num_words, self._unknown.example[:60],
            self._tokenizer.name,
        )  # fmt: skip
        return True


class _Share:
    """How many of the words so far are of some kind; says nothing of fewer than ``min_words``."""

    def __init__(self, min_words: int) -> None:
        self._min_words = min_words
        self.num_marked = self.num_words = 0
        self.example = ""

    def add(self, marked: Sequence[str], among: Iterable[str], counts: dict[str, int]) -> bool:
        """Count the words of a batch; return whether too many are marked."""
        self.example = marked[0] if marked else self.example
        self.num_marked += sum(map(counts.__getitem__, marked))
        self.num_words += sum(map(counts.__getitem__, among))
        is_high = self.num_marked > MAX_UNKNOWN_SHARE * self.num_words
        return is_high and self.num_words >= self._min_words


def _scripts_of(words: Iterable[str]) -> frozenset[str]:
    """Return the scripts that a fair share of the words is in; none if there are few words."""
    counts = Counter(filter(None, map(script_of, words)))
    if counts.total() < MIN_SAMPLE:
        return frozenset()
    least = MIN_SCRIPT_SHARE * counts.total()
    return frozenset(script for script, count in counts.items() if count >= least)
