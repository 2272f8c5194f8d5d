"""The built-in tokenizer and sentence splitter: raw text of any script, in the style of UD and PTB.

English follows the Universal Dependencies treebank EWT, whose words are those of the Penn Treebank
with hyphens and slashes split off: ``do n't``, ``Mary 's``, ``15 - year``, but ``anti-war``,
``U.S.``, ``Dr.``, ``11:30``, ``200,000``. Abbreviations, ordinals and clitics of a few languages
are in `elmokit.text.tokenizers.languages`. Without a language, text of any script is split at
white space and punctuation: a Korean eojeol is one token, and so are a Han character and a run of
kana.

Chunks (text between white space) are analyzed once and cached, so that a word usually costs one
dictionary look-up, and a possible sentence end a look at the next chunk.
"""

import functools
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from elmokit.text.normalization import combining_marks
from elmokit.text.tokenizers import languages

_MAX_CACHED_CHUNKS = 200_000  # 55 MB; 90 % hits on English Wikipedia
_MAX_CACHED_CHARACTERS = 40  # longer chunks rarely recur
_MAX_QUOTED_TOKENS = 200  # how far back to look for an opening quote


class _Chunk(NamedTuple):
    tokens: tuple[str, ...]
    """Its tokens inside a sentence."""
    end: int
    """Possible kind of sentence end, an ``_END_`` value; 0 = none."""
    final_tokens: tuple[str, ...]
    """Its tokens at the end of a sentence, where the full stop of an abbreviation is split off."""


_END_STRONG = 1  # ! ? ... and their like
_END_STOP = 2  # a full stop after an ordinary word
_END_NUMBER = 3  # a full stop after a number: a sentence, a list item or a date
_END_ABBREVIATION = 4  # U.S. Inc. etc. J.: only before a word that starts sentences
_END_REFERENCE = 5  # No. pp. Fig.: not before a number
_END_CLOSER = 6  # a quote or bracket by itself: the end if the text before it has ended
_GLUED = 7  # sentences without white space between them; the tokens are the pieces


class SimpleTokenizer:
    """Split raw text into sentences and tokens by rules.

    The tokens joined are the text without its white space (including zero-width spaces). A line
    break ends a sentence. Text that is already tokenized like this is left alone by ``tokenize``.

    Args:
        language: One of `elmokit.text.tokenizers.languages.LANGUAGES`; it is part of the version:
            ``3, de``. Versions 1 and 2 took every language for English; version 1 also ended
            sentences between Han or kana at full-width marks only, which normalization may have
            made ASCII.
    """

    name = "simple"

    def __init__(self, language: str = "") -> None:
        self.version = languages.version_of(language)
        self._rules = rules_of(self.version)
        self._cache: dict[str, _Chunk] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}, "_rules": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _rules=rules_of(state["version"]))

    @classmethod
    def of_version(cls, version: str) -> "SimpleTokenizer | None":
        if version not in ("1", "2", *map(languages.version_of, filter(None, languages.LANGUAGES))):
            return None
        tokenizer = cls()
        tokenizer.version, tokenizer._rules = version, rules_of(version)
        return tokenizer

    def tokenize(self, sentence: str) -> list[str]:
        return next(iter(self._split(sentence, is_sentence=True)), [])

    def sentences(self, text: str) -> list[list[str]]:
        return [words for line in text.splitlines() for words in self._split(line)]

    def _split(self, line: str, *, is_sentence: bool = False) -> list[list[str]]:
        """Return the sentences of a line, or the only one that it is."""
        chunks, cached = _without_zero_width(line).split(), self._cache.get
        found: list[list[str]] = []
        current: list[str] = []
        for i, chunk in enumerate(chunks):
            tokens, end, final_tokens = cached(chunk) or self._analyze(chunk)
            if not end:
                current += tokens
            elif end == _GLUED:
                # The pieces become the next chunks of this loop, so their ends are judged, too.
                chunks[i + 1 :] = self._pieces(chunks[i:])
            elif i + 1 < len(chunks) and (
                is_sentence or not self._rules.ends_sentence(current, chunk, end, chunks[i + 1])
            ):
                current += tokens
            else:
                current += final_tokens
                found.append(current)
                current = []
        if current:
            found.append(current)
        return found

    def _pieces(self, chunks: list[str]) -> list[str]:
        """Return chunks with those of glued sentences in pieces, in linear time for a line."""
        found: list[str] = []
        for chunk in chunks:
            analyzed = self._analyze(chunk)
            found += analyzed.tokens if analyzed.end == _GLUED else (chunk,)
        return found

    def _analyze(self, chunk: str) -> _Chunk:
        analyzed = self._cache.get(chunk)
        if analyzed is None:
            analyzed = self._rules.take_apart(chunk)
            if len(chunk) <= _MAX_CACHED_CHARACTERS:
                # Frequent chunks are back soon; what to evict would cost more to decide.
                if len(self._cache) >= _MAX_CACHED_CHUNKS:
                    self._cache.clear()
                self._cache[chunk] = analyzed
        return analyzed


def _without_zero_width(text: str) -> str:
    return text if text.isascii() else text.replace("\u200b", " ").replace("\ufeff", " ")


class Patterns(NamedTuple):
    """Word characters include combining marks, which `re` does not count."""

    token: re.Pattern[str]
    stem: re.Pattern[str]
    glue: re.Pattern[str]
    han_or_kana: re.Pattern[str]
    han_kana_pieces: re.Pattern[str]
    elision: re.Pattern[str]
    clitic: re.Pattern[str]
    unit: re.Pattern[str]
    acronym: re.Pattern[str]
    ordinal: re.Pattern[str]
    lower_end: re.Pattern[str]


@dataclass(frozen=True)
class Rules:
    version: str
    language: languages.Language

    @functools.cached_property
    def patterns(self) -> Patterns:
        return _patterns_of(self.version, self.language)

    def take_apart(self, chunk: str) -> _Chunk:
        if _is_ascii_word(chunk) and chunk.lower() not in self.language.contractions:
            return _Chunk((chunk,), 0, (chunk,))
        # A mark, and letters before it, are no two sentences. Short texts of such chunks need none
        # of the patterns, which take longer to compile than everything else does.
        has_glue = len(chunk) > 1 and not _is_ascii_word(chunk[:-1])
        if has_glue and "://" not in chunk and "@" not in chunk:
            pieces = self.patterns.glue.split(chunk)
            if len(pieces) > 1:
                return _Chunk(tuple(pieces), _GLUED, ())
        # Whether a full stop belongs to an abbreviation is known only from the next chunk.
        end = self._kind_of_end(chunk)
        tokens = self._tokens_of(chunk)
        if end != _END_ABBREVIATION and end != _END_REFERENCE:
            return _Chunk(tokens, end, tokens)
        final_tokens: list[str] = []
        for token in tokens:
            if token.endswith(".") and len(token) > 1 and not token.endswith(".."):
                final_tokens += (token[:-1], ".")
            else:
                final_tokens.append(token)
        return _Chunk(tokens, end, tuple(final_tokens))

    def _tokens_of(self, chunk: str) -> tuple[str, ...]:
        word, mark = chunk[:-1], chunk[-1]
        if not word:
            return (chunk,)
        is_part = mark == "." and (self.language.has_ordinals or word in self.language.dotted)
        if mark in _MARKS and len(word) > 1 and _is_ascii_word(word) and not is_part:
            return (*self._split_word(word), mark)
        tokens: list[str] = []
        for match in self.patterns.token.finditer(chunk):
            token = match.group()
            if match.lastgroup == "word":
                tokens += self._split_word(token)
            elif match.lastgroup == "number":
                tokens += self._split_number(token)
            else:
                tokens.append(token)
        return tuple(tokens)

    def _split_word(self, word: str) -> list[str]:
        """Split clitics from a word, Han and kana from each other."""
        pieces = self.language.contractions.get(word.lower())
        if pieces is not None:
            return [word[:pieces], word[pieces:]]
        if not word.isascii() and self.patterns.han_or_kana.search(word):
            return self.patterns.han_kana_pieces.findall(word)
        elision = self.patterns.elision.match(word)
        if elision is not None:
            return [elision.group(), word[elision.end() :]]
        clitic = self.patterns.clitic.search(word)
        if clitic is not None and clitic.start():
            return [word[: clitic.start()], clitic.group()]
        return [word]

    def _split_number(self, number: str) -> list[str]:
        unit = self.patterns.unit.search(number)
        if unit is not None:
            return [number[: unit.start()], unit.group()]
        clitic = self.patterns.clitic.search(number)
        return [number[: clitic.start()], clitic.group()] if clitic is not None else [number]

    def _kind_of_end(self, chunk: str) -> int:
        core = chunk.rstrip(languages.CLOSERS)
        if not core:
            return _END_CLOSER
        last = core[-1]
        if last in languages.STRONG_ENDS:
            return _END_STRONG
        if last != ".":
            return 0
        if core.endswith(".."):
            return _END_STRONG
        word = core[-_MAX_CACHED_CHARACTERS:-1]
        if not _is_ascii_word(word):
            stem = self.patterns.stem.search(word) if word else None
            if stem is None:
                return _END_STOP
            word = stem.group()
        if word in self.language.titles:
            return 0
        if word in self.language.references:
            return _END_REFERENCE
        if word in self.language.abbreviations or self.patterns.acronym.fullmatch(word):
            return _END_ABBREVIATION
        if self.language.has_ordinals and self.patterns.ordinal.fullmatch(word):
            return _END_ABBREVIATION
        return _END_NUMBER if word[-1].isdigit() else _END_STOP

    def ends_sentence(self, current: list[str], chunk: str, end: int, following: str) -> bool:
        """Return whether a sentence, ``current`` so far, ends after ``chunk``."""
        # a closing quote by itself belongs to this sentence
        if not following.strip(languages.CLOSERS):
            return (
                following == '"'
                and end != _END_ABBREVIATION
                and (current[-_MAX_QUOTED_TOKENS:].count('"') + chunk.count('"')) % 2 == 0
            )
        word = following.lstrip(languages.OPENERS)
        first = word[:1]
        if end == _END_ABBREVIATION:
            return bool(current) and _letters(word) in self.language.starters
        if end == _END_NUMBER:
            return bool(current) and not first.islower() and not first.isdigit()
        if end == _END_REFERENCE:
            return not first.isdigit() and not first.islower()
        if end == _END_CLOSER:
            return bool(current) and current[-1][-1] in _SENTENCE_ENDS and not first.islower()
        if first.islower():  # an unknown abbreviation, a title with a mark, or lower-case writing
            return self.patterns.lower_end.search(chunk[-_MAX_CACHED_CHARACTERS:]) is not None
        return first not in languages.NEVER_FIRST


def _letters(word: str) -> str:
    return word[: next((i for i, char in enumerate(word) if not char.isalpha()), None)]


_NEVER = "(?!)"
_CLITIC = re.compile(r"(?:(?<=\w)n['’]t|['’](?:s|m|d|ll|re|ve))$", re.IGNORECASE)
_UNIT = re.compile(rf"(?<=\d)(?:{'|'.join(sorted(languages.UNITS))})$")
_CASED = "A-Za-zÀ-ɏΑ-ωА-я"
_ACRONYM = re.compile(rf"[{_CASED}](?:\.[{_CASED}]{{1,2}})*")
_ORDINAL = re.compile(r"\d{1,2}|[IVXL]+")
_SENTENCE_ENDS = frozenset([*languages.STRONG_ENDS, "."])


_MARKS = frozenset('.,;:?!")]')
"""Tokens of their own after any word that has no full stop as a part of it."""


@functools.cache
def rules_of(version: str) -> Rules:
    number, _, code = version.partition(", ")
    return Rules(version, languages.language_of("en" if number in ("1", "2") else code))


def _is_ascii_word(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _patterns_of(version: str, language: languages.Language) -> Patterns:
    is_english, has_ordinals = language == languages.language_of("en"), language.has_ordinals
    number_suffix = r"['’]s(?!\w)" if is_english else r"['’][^\W\d_]\w*"
    clitic_alone = r"(?i:['’](?:s|m|d|ll|re|ve|em|n)|(?<!\w)n['’]t)(?!\w)" if is_english else _NEVER
    elision_alone = rf"(?<!\w)(?i:{language.elisions})(?!\w)" if language.elisions else _NEVER
    ordinal = r"(?<![\w.,])(?:\d{1,2}|[IVXL]+)\.(?![\w.])" if has_ordinals else _NEVER
    marks = combining_marks()
    word = rf"[\w{marks}\u200c\u200d\u00ad]"  # with joiners and soft hyphens
    modifiers = rf"[{marks}\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
    han = r"\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    hiragana = r"\u3041-\u309f"
    katakana = r"\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    token = rf"""
        (?:https?|ftp|file)://[^\s<>"“”]*[^\s<>"“”.,;:!?'’)\]}}…] | www\.[\w-]+[^\s<>"“”]*[\w/]
      | [\w.+%-]{{0,63}}[\w%]@\w[\w-]*(?:\.[\w-]+)*                  # addresses
      | (?<!\w)[@#](?=\w*[^\W\d_])\w+                              # mentions, hashtags
      | (?<!\w)(?:[:;=]['’]?-?[()\[\]DPpOo|/\\]+|\(:|<3|\^_+\^)(?![\w.])        # emoticons
      | (?<![\w.])(?:[^\W\d_]\.){{2,}}(?!\w)                       # U.S. e.g.
      | (?<![\w.])(?:{_any_of(language.dotted)})\.(?![\w.])                 # Dr. Inc.
      | {ordinal}                                                  # 3. Mai
      | (?<![\w.])[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]\.(?![\w.'’"])                  # J.
      | (?:\d{{1,4}}-)?\d{{3}}-(?:\d{{3,4}}-)?\d{{4}}(?!\w)        # telephone numbers
      | (?P<number>(?<![\w.])\.\d+(?!\w) | \d+(?:[.,:/]\d+)*{word}*(?:{number_suffix})?)
      | (?<![\w-])(?i:{_any_of(language.prefixes)})-{word}+            # anti-war
      | [A-Za-z\d_]+(?:\.[A-Za-z\d_]+)+(?!\w)                      # names of files and sites
      | (?<!\w)[A-Z]+&[A-Z]+(?!\w) | (?<!\w)[A-Za-z]/[A-Za-z](?![\w/])          # AT&T c/o
      | (?<!\w)[A-Z]{{1,3}}\$ | (?<!\w)[A-Z](?:\+\+|\#)(?![A-Za-z\d_])      # US$ C++
      | {clitic_alone} | {elision_alone}                           # in tokenized text
      | (?P<word>{word}+(?:['’]{word}+)*)
      | ([!?]|\.(?=[.!?]))[.!?]+ | (?P<run>[-–—=_*~\#$+<>'`’‘|^])(?P=run)+
      | [\U0001f1e6-\U0001f1ff]{{2}}                               # flags
      | \S{modifiers}*(?:\u200d\S{modifiers}*)*
    """
    glue = (
        rf"(?<=[。｡！？])(?![。｡！？…{re.escape(languages.CLOSERS)}])(?=.)"
        rf"|(?<=[가-힣]{{2}}[.?!])(?=[가-힣])"
        rf"|(?<=[a-z]{{2}}[.?!])(?=(?:{_any_of(language.starters)})(?!\w))"
    )
    han_or_kana = f"{han}{hiragana}{katakana}"
    if version != "1":
        glue += rf"|(?<=[?!])(?=[{han_or_kana}])(?<=[{han_or_kana}].)"
    return Patterns(
        token=re.compile(token, re.VERBOSE),
        stem=re.compile(rf"{word}+(?:[.'’]{word}+)*$"),
        glue=re.compile(glue),
        han_or_kana=re.compile(rf"^(?!.*[가-힣]).*[{han_or_kana}]"),
        han_kana_pieces=re.compile(
            rf"[{han}]{modifiers}*|[{hiragana}]+|[{katakana}]+|[^{han_or_kana}]+"
        ),
        elision=re.compile(rf"^(?i:{language.elisions})(?=\w)" if language.elisions else _NEVER),
        clitic=_CLITIC if is_english else re.compile(_NEVER),
        unit=_UNIT,
        acronym=_ACRONYM,
        ordinal=_ORDINAL,
        lower_end=re.compile(
            # of other languages, an unknown abbreviation more often than lower-case writing
            r"(?:^|\W)[a-z'’]{3,}(?:\.|[?!]+)$" if is_english else r"[^\W\d_][?!]+$"
        ),
    )


def _any_of(words: frozenset[str]) -> str:
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(map(re.escape, longest_first)) or _NEVER
