"""Words that a model reads otherwise than in its training, told once with counts.

Their vectors look like any others: whole sentences in the place of words, words with punctuation
that the model's own tokenizer splits off (``bank.``) or longer than its rows of characters, special
words, text in another language or split otherwise, which the vocabulary shows, and text in a script
that the model has hardly read, which even a few words show.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from elmokit.errors import MissingExtraError
from elmokit.inference.batching import NUM_BOUNDARIES, DistinctTokens
from elmokit.inference.word_cache import MAX_CHARACTERS
from elmokit.text.char_vocab import CharVocab
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.scripts import script_of
from elmokit.text.special_words import SpecialWordCount
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
_SPACES_INSIDE = re.compile(r"\S\s+\S+\s+\S")
_GLUED = re.compile(r"[^\W\d_][.,!?;:…。！？、，；：]+[\"'”’)\]]*$")


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
        scripts = _scripts_of(sample if vocab is None else vocab.words[:MAX_SAMPLE])
        form = char_vocab.config.normalization
        self._has_told_spaces = False
        self._glued = _GluedPunctuation(tokenizer, form)
        self._open: list[Callable[[_Batch], bool]] = [
            self._glued.tell, partial(_tell_special_words, SpecialWordCount()),
        ]  # fmt: skip
        if by_characters:
            self._open.append(partial(_tell_cut_words, char_vocab))
        if scripts or vocab is not None:
            self._open.append(_OtherText(scripts, vocab, form, tokenizer.name).tell)

    def add(self, words: Sequence[str]) -> None:
        """Look at the words of a sentence that was given as a list."""
        if words and not self._has_told_spaces and all(map(_SPACES_INSIDE.search, words)):
            log.warning(
                "every word of a sentence has spaces inside, such as %r: if these are sentences, "
                'give them as a list of strings, ["I sat .", …]', words[0][:60],
            )  # fmt: skip
            self._has_told_spaces = True
        self._glued.add(words)

    def tell(self, tokens: DistinctTokens) -> None:
        """Warn, once for each kind, of the words added and of those of a batch."""
        if self._open and tokens.sentences:
            batch = _Batch(tokens)
            self._open = [check for check in self._open if not check(batch)]


class _Batch:
    """The words of a batch, by their numbers; 0 and 1 are the boundaries of sentences."""

    def __init__(self, tokens: DistinctTokens) -> None:
        self.texts, self.sentences = tokens.words, tokens.sentences
        self._numbers = np.concatenate(tokens.sentences)
        self.size = len(self._numbers) - NUM_BOUNDARIES * len(tokens.sentences)

    def count(self, numbers: list[int]) -> int:
        """Return how many words have one of these numbers."""
        return int(np.isin(self._numbers, numbers).sum())


class _GluedPunctuation:
    """Words with punctuation at their end that the model's tokenizer splits off."""

    def __init__(self, tokenizer: TokenizerConfig, form: Normalization) -> None:
        self._config = tokenizer
        self._form: Normalization = form
        self._is_over = tokenizer.name == "whitespace"
        self._counts: Counter[str] = Counter()
        self._num_words = 0

    def add(self, words: Sequence[str]) -> None:
        if self._is_over:
            return
        self._num_words += len(words)
        for word in words:
            is_short = 0 < len(word) <= MAX_CHARACTERS
            if is_short and word[-1] in _LAST and _GLUED.search(word):
                self._counts[word] += 1

    def tell(self, batch: _Batch) -> bool:
        if self._num_words and not self._is_over:
            self._is_over = self._tell() or self._num_words >= MAX_WORDS
        return self._is_over

    def _tell(self) -> bool:
        """Warn if there are many; return whether there were."""
        limit = MAX_GLUED_SHARE * self._num_words
        counts = Counter(self._counts)  # other threads may add words meanwhile
        if counts.total() <= limit:
            return False
        split = {word: self._split(word) for word, _ in counts.most_common(1000)}
        glued = {word: pieces for word, pieces in split.items() if pieces != [word]}
        count = sum(counts[word] for word in glued)
        if count <= limit:
            return False
        word, pieces = next(iter(glued.items()))
        log.warning(
            "%d of %d words end in punctuation that the model's tokenizer %r splits off, such as "
            "%r (%s): the model reads them as words it does not know. Give whole sentences as "
            "strings, or text that is split as in its training",
            count, self._num_words, self._config.name, word, " ".join(pieces),
        )  # fmt: skip
        return True

    def _split(self, word: str) -> list[str]:
        """Return what the model's tokenizer makes of a word inside a sentence."""
        try:
            tokenizer = NormalizingTokenizer(build_tokenizer(self._config), self._form)
        except MissingExtraError:
            return [word[:-1], word[-1]]
        return tokenizer.tokenize(f"{word} a")[:-1]


def _tell_cut_words(vocab: CharVocab, batch: _Batch) -> bool:
    """Warn of words that are longer than the model's rows of characters; return whether."""
    shortest = vocab.max_bytes // 4  # no character has more bytes
    cut = [
        number
        for number, word in enumerate(batch.texts)
        if len(word) > shortest and vocab.is_truncated(word)
    ]
    if cut:
        log.warning(
            "words that are longer than the %d %s that the model reads are cut, such as %r (%d of "
            "%d so far)",
            vocab.max_bytes, vocab.unit, batch.texts[cut[0]][:60], batch.count(cut), batch.size,
        )  # fmt: skip
    return bool(cut)


def _tell_special_words(special: SpecialWordCount, batch: _Batch) -> bool:
    """Warn of marks of sentences and unknown words that are typed into the text; return whether."""
    for sentence in batch.sentences:
        special.add(" ".join(batch.texts[number] for number in sentence[1:-1]))
    special.warn("sentences so far")
    return special.num_marked > 0


class _OtherText:
    """Text in scripts that the model hardly knows, or with few words of its vocabulary."""

    def __init__(
        self,
        scripts: frozenset[str],
        vocab: WordVocab | None,
        form: Normalization,
        tokenizer_name: str,
    ) -> None:
        self._scripts, self._vocab = scripts, vocab  # until enough words are looked up
        self._form: Normalization = form
        self._tokenizer_name = tokenizer_name
        self._num_foreign = self._num_lettered = 0
        self._num_unknown = self._num_looked_up = 0
        self._example = ""

    def tell(self, batch: _Batch) -> bool:
        if (scripts := self._scripts) and self._tell_scripts(batch, scripts):
            self._scripts = frozenset()
        # read once: another thread may be done with it
        if (vocab := self._vocab) is not None and self._tell_unknown(batch, vocab):
            self._vocab = None
        return not self._scripts and self._vocab is None

    def _tell_scripts(self, batch: _Batch, known: frozenset[str]) -> bool:
        scripts = [None, None, *map(script_of, batch.texts[2:])]
        lettered = [number for number, script in enumerate(scripts) if script]
        foreign = [number for number in lettered if scripts[number] not in known]
        self._num_foreign += batch.count(foreign)
        self._num_lettered += batch.count(lettered)
        if self._num_lettered < MIN_SCRIPT_WORDS:
            return False
        if self._num_foreign <= MAX_UNKNOWN_SHARE * self._num_lettered or not foreign:
            return self._num_lettered >= MAX_WORDS
        log.warning(
            "%d of %d words are in a script that the model hardly knows, such as %r (%s): it was "
            "trained on %s",
            self._num_foreign, self._num_lettered, batch.texts[foreign[0]][:60],
            scripts[foreign[0]], ", ".join(sorted(known)),
        )  # fmt: skip
        self._vocab = None  # it would say the same
        return True

    def _tell_unknown(self, batch: _Batch, vocab: WordVocab) -> bool:
        unknown = [
            number
            for number, word in enumerate(batch.texts)
            if number > 1 and normalize(word, self._form) not in vocab
        ]
        if unknown:
            self._example = batch.texts[unknown[0]]
        self._num_unknown += batch.count(unknown)
        self._num_looked_up += batch.size
        if self._num_looked_up < MIN_WORDS:
            return False
        if self._num_unknown <= MAX_UNKNOWN_SHARE * self._num_looked_up:
            return self._num_looked_up >= MAX_WORDS
        log.warning(
            "%d of %d words are not in the model's vocabulary, such as %r: is the text in the "
            "model's language, and split as its training text was (tokenizer %r)?",
            self._num_unknown, self._num_looked_up, self._example[:60], self._tokenizer_name,
        )  # fmt: skip
        return True


def _scripts_of(words: Iterable[str]) -> frozenset[str]:
    """Return the scripts that a fair share of the words is in; none if there are few words."""
    counts = Counter(filter(None, map(script_of, words)))
    if counts.total() < MIN_SAMPLE:
        return frozenset()
    least = MIN_SCRIPT_SHARE * counts.total()
    return frozenset(script for script, count in counts.items() if count >= least)
