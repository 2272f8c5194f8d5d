"""Words that a model reads otherwise than it was trained to, told once with counts.

Their vectors look like any others: words with spaces inside, which are whole sentences in the place
of words, words with punctuation that the model's own tokenizer splits off
(``bank.``), words that are longer than the model's rows of characters, text of which the model's
vocabulary has few words, since it is in another language or split otherwise, and text in a script
that the model has hardly read, which even a few words show.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from elmokit.errors import MissingExtraError
from elmokit.inference.batching import NUM_BOUNDARIES
from elmokit.inference.distinct_words import DistinctTokens
from elmokit.text.char_vocab import CharVocab
from elmokit.text.normalization import normalize
from elmokit.text.scripts import script_of
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab

log = logging.getLogger(__name__)

MAX_GLUED_SHARE = 0.02
"""Share of words with glued punctuation above which the text was split by other rules."""
MAX_WORDS = 100_000
"""Words that are looked at for glued punctuation, or in the vocabulary."""
MAX_UNKNOWN_SHARE = 0.4
"""Share of words outside the vocabulary above which the text is of another kind."""
MIN_WORDS = 200
"""Words from which that share says something. The packaged English model does not know a fifth of
the words of tweets: 4 to 7 % of pieces of 30 words are above the limit, of 200 words less than 1 %.
"""
MIN_SCRIPT_WORDS = 4
"""Words in scripts that the model does not know, from which they say something."""
MAX_SAMPLE, MIN_SAMPLE, MIN_SCRIPT_SHARE = 5000, 20, 0.005
"""Words by which a model's scripts are known, and the share of them that makes a script its own."""
_LAST = frozenset(".,!?;:…。！？、，；：\"'”’)]")
_GLUED = re.compile(r"[^\W\d_][.,!?;:…。！？、，；：]+[\"'”’)\]]*$")


class WordChecks:
    """Counts such words of one embedder. Cut words only matter ``by_characters``.

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
        self._config, self._char_vocab = tokenizer, char_vocab
        self._glued: Counter[str] = Counter()
        self._num_words = 0
        self._looks_for_glued = tokenizer.name != "whitespace"
        self._looks_for_cut = by_characters
        self._looks_for_spaces = True
        self._vocab = vocab  # until enough words are looked up
        self._num_unknown = self._num_looked_up = 0
        self._example = ""
        self._scripts = _scripts_of(sample if vocab is None else vocab.words[:MAX_SAMPLE])
        self._num_foreign = self._num_lettered = 0

    def add(self, words: Sequence[str]) -> None:
        """Count the words of a sentence that was given as a list."""
        if self._looks_for_spaces and words:
            self._tell_spaces(words)
        if not self._looks_for_glued:
            return
        self._num_words += len(words)
        for word in words:
            if word and word[-1] in _LAST and _GLUED.search(word):
                self._glued[word] += 1

    def tell(self, tokens: DistinctTokens) -> None:
        """Warn, once for each kind, of the words counted and of those of a batch."""
        if not tokens.sentences:
            return
        if self._looks_for_glued and self._num_words:
            self._tell_glued()
        if self._looks_for_cut:
            self._tell_cut(tokens)
        if self._scripts:
            self._tell_scripts(tokens)
        if self._vocab is not None:
            self._tell_unknown(tokens, self._vocab)

    def _tell_spaces(self, words: Sequence[str]) -> None:
        """Warn if all words of a sentence have spaces inside: it is rather a list of sentences."""
        if all(len(word.split(maxsplit=2)) > 2 for word in words):
            log.warning(
                "every word of a sentence has spaces inside, such as %r: if these are sentences, "
                "give them as a list of strings, [\"I sat .\", …]",
                words[0][:60],
            )  # fmt: skip
            self._looks_for_spaces = False

    def _tell_glued(self) -> None:
        self._looks_for_glued = self._num_words < MAX_WORDS
        limit = MAX_GLUED_SHARE * self._num_words
        if self._glued.total() <= limit:
            return
        split = {word: self._split(word) for word, _ in self._glued.most_common(1000)}
        glued = {word: pieces for word, pieces in split.items() if pieces != [word]}
        count = sum(self._glued[word] for word in glued)
        if count <= limit:
            return
        word, pieces = next(iter(glued.items()))
        log.warning(
            "%d of %d words end in punctuation that the model's tokenizer %r splits off, such as "
            "%r (%s): the model reads them as words it does not know. Give whole sentences as "
            "strings, or text that is split as in its training",
            count, self._num_words, self._config.name, word, " ".join(pieces),
        )  # fmt: skip
        self._looks_for_glued = False

    def _split(self, word: str) -> list[str]:
        """Return what the model's tokenizer makes of a word inside a sentence."""
        form = self._char_vocab.config.normalization
        try:
            tokenizer = NormalizingTokenizer(build_tokenizer(self._config), form)
        except MissingExtraError:
            return [word[:-1], word[-1]]
        return tokenizer.tokenize(f"{word} a")[:-1]

    def _tell_cut(self, tokens: DistinctTokens) -> None:
        vocab = self._char_vocab
        shortest = vocab.max_bytes // 4  # no character has more bytes
        cut = [
            index
            for index, word in enumerate(tokens.words)
            if len(word) > shortest and vocab.is_truncated(word)
        ]
        if not cut:
            return
        words = np.concatenate(tokens.sentences)
        count, total = (
            int(np.isin(words, cut).sum()),
            len(words) - NUM_BOUNDARIES * len(tokens.sentences),
        )
        log.warning(
            "words that are longer than the %d %s that the model reads are cut, such as %r "
            "(%d of %d so far)",
            vocab.max_bytes, vocab.unit, tokens.words[cut[0]][:60], count, total,
        )  # fmt: skip
        self._looks_for_cut = False

    def _tell_scripts(self, tokens: DistinctTokens) -> None:
        words = np.concatenate(tokens.sentences)
        found = [None, None] + [script_of(word) for word in tokens.words[2:]]  # boundaries first
        foreign = [index for index, one in enumerate(found) if one and one not in self._scripts]
        lettered = [index for index, one in enumerate(found) if one]
        self._num_foreign += int(np.isin(words, foreign).sum())
        self._num_lettered += int(np.isin(words, lettered).sum())
        if self._num_lettered < MIN_SCRIPT_WORDS:
            return
        if self._num_foreign > MAX_UNKNOWN_SHARE * self._num_lettered and foreign:
            log.warning(
                "%d of %d words are in a script that the model hardly knows, such as %r (%s): it "
                "was trained on %s",
                self._num_foreign, self._num_lettered, tokens.words[foreign[0]][:60],
                found[foreign[0]], ", ".join(sorted(self._scripts)),
            )  # fmt: skip
            self._vocab = None  # it would say the same
        elif self._num_lettered < MAX_WORDS:
            return
        self._scripts = frozenset()

    def _tell_unknown(self, tokens: DistinctTokens, vocab: WordVocab) -> None:
        form = self._char_vocab.config.normalization
        unknown = [
            index
            for index, word in enumerate(tokens.words)
            if index > 1 and normalize(word, form) not in vocab
        ]
        if unknown:
            self._example = tokens.words[unknown[0]]
        words = np.concatenate(tokens.sentences)
        self._num_unknown += int(np.isin(words, unknown).sum())
        self._num_looked_up += len(words) - NUM_BOUNDARIES * len(tokens.sentences)
        if self._num_looked_up < MIN_WORDS:
            return
        if self._num_unknown > MAX_UNKNOWN_SHARE * self._num_looked_up:
            log.warning(
                "%d of %d words are not in the model's vocabulary, such as %r: is the text in the "
                "model's language, and split as its training text was (tokenizer %r)?",
                self._num_unknown, self._num_looked_up, self._example[:60], self._config.name,
            )  # fmt: skip
        elif self._num_looked_up < MAX_WORDS:
            return
        self._vocab = None


def _scripts_of(words: Iterable[str]) -> frozenset[str]:
    """Return the scripts that a fair share of the words is in; none if there are few words."""
    counts = Counter(filter(None, map(script_of, words)))
    if counts.total() < MIN_SAMPLE:
        return frozenset()
    least = MIN_SCRIPT_SHARE * counts.total()
    return frozenset(script for script, count in counts.items() if count >= least)
