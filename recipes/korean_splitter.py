r"""Count what Kiwi makes of Korean text, for the splitter of the explorer's page.

    python recipes/korean_splitter.py reviews/train.txt.xz=6000000/1 \
        ko-wiki/train-00.txt.xz=2500000/3 ko-wiki/train-01.txt.xz=2500000/3 ko-wiki/train-02.txt.xz

Kiwi itself runs in a browser, too (``kiwi-nlp`` of npm), but its model has 105 MB. This writes
``packs/korean.json.gz``: morphemes with their counts, rules for contracted syllables, and counts of
pairs; ``engine/korean_tokenizer.js`` explains them and finds the likeliest division.
``FILE=6000000/3`` is read as running text up to so many characters, every third line of it; other
words of the files, from `MIN_COUNT` on, are analyzed one by one, and give morphemes, not pairs.
`tests/browser/test_engine.py` compares the page's words with Kiwi's.
"""

import argparse
import gzip
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
from kiwipiepy import Kiwi

STATIC = Path(__file__).parents[1] / "src/elmokit/web/page/static"
PACK = STATIC / "packs/korean.json.gz"
MIN_COUNT = 3
WORD_WEIGHT, MAX_WORD_COUNT = 0.2, 20
"""What an occurrence of a word that was analyzed alone counts, and how many count."""
MIN_LEXICAL, MIN_PAIRS, MIN_CLASS_PAIRS, MIN_RULE = 600, 4, 2, 2
MIN_MORPHEME, MIN_NAME = 0.6, 5.0
"""From which counts on a morpheme is a state of its own, and the rest is kept."""
_NAMES = ("NNP", "SL", "SN", "SH", "IC", "Z_CODA")
_KEPT = re.compile(r"[가-힣ㄱ-ㅎㅏ-ㅣ]+|[^\w\s]")
_BOUNDARY = ("", "")

Morpheme = tuple[str, str]
"""Form and tag."""
Piece = tuple[str, tuple[Morpheme, ...]]
"""Letters of a text, and the morphemes whose places overlap there."""
Rule = tuple[str, str, str, tuple[Morpheme, ...]]
"""Letters; the end of the first morpheme that they stand for, its tag; the morphemes after it."""


@dataclass
class Counts:
    """What Kiwi made of texts."""

    morphemes: dict[Morpheme, float] = field(default_factory=lambda: defaultdict(float))
    in_text: dict[Morpheme, float] = field(default_factory=dict)
    """The same without words that were analyzed alone."""
    rules: dict[Rule, float] = field(default_factory=lambda: defaultdict(float))
    apart: Counter[tuple[str, str, Morpheme]] = field(default_factory=Counter)
    """Ends of morphemes with their tags before another one that is written apart from them."""
    texts: list[list[list[Morpheme]]] = field(default_factory=list)
    """The morphemes of each word."""

    def add(self, pieces: list[Piece], weight: float, rule_weight: float) -> None:
        """Count a word."""
        for letters, morphemes in pieces:
            for morpheme in morphemes:
                self.morphemes[morpheme] += weight
            form, tag = morphemes[0]
            if len(morphemes) > 1 or letters != form:
                # the common beginning is no part of the rule, but a letter stays on each side
                both = zip(letters[:-1], form[:-1], strict=False)
                k = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], both)))
                self.rules[letters[k:], form[k:], tag, morphemes[1:]] += rule_weight


def words_of(text: str, tokens: Iterable[Any]) -> Iterator[list[Piece] | None]:
    """Yield the pieces of each word; None for one whose pieces do not cover it."""
    remaining = list(tokens)
    for match in re.finditer(r"\S+", text):
        own = [
            token for token in remaining if token.start < match.end() or token.end == match.end()
        ]
        remaining = remaining[len(own) :]
        at, pieces, whole = match.start(), list[tuple[int, int, list[Morpheme]]](), True
        for token in own:
            overlaps = token.start < at or token.start == token.end
            whole = whole and token.end <= match.end() and " " not in token.form
            if pieces and overlaps:
                first, _, morphemes = pieces[-1]
                at = max(at, token.end)
                pieces[-1] = (first, at, [*morphemes, (token.form, token.tag)])
            else:
                whole = whole and token.start == at
                at = token.end
                pieces.append((token.start, at, [(token.form, token.tag)]))
        is_covered = whole and at == match.end() and bool(pieces)
        yield [(text[a:b], tuple(ms)) for a, b, ms in pieces] if is_covered else None


def count(files: list[str]) -> Counts:
    """Analyze running text of each file, then its other words."""
    kiwi, counts, words = Kiwi(num_workers=1), Counts(), Counter[str]()
    lines, seen = list[str](), set[str]()
    for name in files:
        path, _, part = name.partition("=")
        size, step = map(int, part.split("/")) if part else (0, 1)
        with fsspec.open(path, "rt", compression="infer", encoding="utf-8") as file:
            num_characters = 0
            for i, line in enumerate(file):
                words.update(re.findall("[가-힣]+", line))
                if num_characters < size and i % step == 0 and line.strip():
                    num_characters += len(line)
                    lines.append(line.strip())
    for line, tokens in zip(lines, kiwi.tokenize(lines, compatible_jamo=True), strict=True):
        seen.update(re.findall("[가-힣]+", line))
        text: list[list[Morpheme]] = []
        for pieces in words_of(line, tokens):
            if pieces is None:
                continue
            counts.add(pieces, 1, 1)
            text.append([morpheme for _, morphemes in pieces for morpheme in morphemes])
            for (_, left), (_, right) in itertools.pairwise(pieces):
                for end in _ends(left[-1][0]):
                    counts.apart[end, left[-1][1], right[0]] += 1
        counts.texts.append(text)
    counts.in_text = dict(counts.morphemes)
    others = [word for word, n in words.items() if n >= MIN_COUNT and word not in seen]
    for word, tokens in zip(others, kiwi.tokenize(others, compatible_jamo=True), strict=True):
        for pieces in words_of(word, tokens):
            if pieces is not None:
                weight = WORD_WEIGHT * min(words[word], MAX_WORD_COUNT)
                counts.add(pieces, weight, WORD_WEIGHT)
    return counts


def pack(counts: Counts) -> dict[str, Any]:
    """Return what the page reads, without what is rare."""
    kept = {m: n for m, n in counts.morphemes.items() if n >= _least(m) and _KEPT.fullmatch(m[0])}
    lexical = sorted(m for m, n in counts.in_text.items() if n >= MIN_LEXICAL and m in kept)
    classes = sorted({_class(m) for m in counts.morphemes})
    tags = sorted({tag for _, tag in counts.morphemes})
    state = {m: i for i, m in enumerate(lexical, start=1)}
    numbers = {name: i for i, name in enumerate(classes, start=1)}

    def state_of(m: Morpheme) -> int:
        return 0 if m == _BOUNDARY else state.get(m) or len(lexical) + numbers[_class(m)]

    def class_of(m: Morpheme) -> int:
        return 0 if m == _BOUNDARY else numbers[_class(m)]

    pairs: Counter[tuple[int, int]] = Counter()
    class_pairs: Counter[tuple[int, int]] = Counter()
    for text in counts.texts:
        last = _BOUNDARY
        for word in [*text, [_BOUNDARY]]:
            for i, morpheme in enumerate(word):
                pairs[state_of(last), 2 * state_of(morpheme) + (i == 0)] += 1
                class_pairs[class_of(last), 2 * class_of(morpheme) + (i == 0)] += 1
                last = morpheme
    by_tag: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (form, tag), n in sorted(kept.items()):
        by_tag[tag][_level(n)].append(form)
    morphemes = {
        tag: {level: " ".join(forms) for level, forms in sorted(levels.items())}
        for tag, levels in by_tag.items()
    }
    rules = [
        [letters, end, tags.index(tag), cost, *([form, tags.index(t)] for form, t in rest)]
        for (letters, end, tag, rest), cost in _rules(counts)
    ]
    return {
        "tags": tags, "classes": classes, "morphemes": morphemes, "rules": rules,
        "lexical": [[form, tags.index(tag)] for form, tag in lexical],
        "pairs": _rows(pairs, len(lexical) + len(classes) + 1, MIN_PAIRS),
        "class_pairs": _rows(class_pairs, len(classes) + 1, MIN_CLASS_PAIRS),
    }  # fmt: skip


def _rules(counts: Counts) -> Iterator[tuple[Rule, int]]:
    """Yield rules with ten times their costs: of writing the morphemes so, and not otherwise."""
    ends: dict[tuple[str, str], float] = defaultdict(float)
    for (form, tag), n in counts.morphemes.items():
        for end in _ends(form):
            ends[end, tag] += n
    totals: dict[tuple[str, str, tuple[Morpheme, ...]], float] = defaultdict(float)
    for (_, end, tag, rest), n in counts.rules.items():
        totals[end, tag, rest] += n
    for (letters, end, tag, rest), n in sorted(counts.rules.items()):
        if n >= MIN_RULE:
            others = counts.apart[end, tag, rest[0]] if rest else ends[end, tag]
            share = min(1.0, n / (totals[end, tag, rest] + others))
            yield (letters, end, tag, rest), round(-10 * math.log(share))


def _rows(pairs: Counter[tuple[int, int]], num_rows: int, least: int) -> list[list[int]]:
    """Return of each state how often it occurs, then keys by their distances, and levels."""
    totals: Counter[int] = Counter()
    following: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (left, right), n in sorted(pairs.items()):
        totals[left] += n
        if n >= least:
            following[left].append((right, n))
    rows: list[list[int]] = []
    for number in range(num_rows):
        row, at = [max(totals[number], 1)], 0
        for key, n in following[number]:
            row += [key - at, _level(n)]
            at = key
        rows.append(row)
    return rows


def _level(n: float) -> int:
    return round(2 * math.log2(n))


def _least(morpheme: Morpheme) -> float:
    return MIN_NAME if morpheme[1] in _NAMES else MIN_MORPHEME


def _ends(form: str) -> list[str]:
    return [form[-length:] for length in range(1, min(3, len(form)) + 1)]


def _class(morpheme: Morpheme) -> str:
    """The tag, and how the form ends: a vowel, ㄹ, another consonant, no syllable."""
    form, tag = morpheme
    code = ord(form[-1]) - ord("가")
    if not 0 <= code < 11172:
        return f"{tag}X"
    return tag + {0: "V", 8: "L"}.get(code % 28, "C")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE[=CHARACTERS/STEP]")
    content = json.dumps(
        pack(count(parser.parse_args().files)), ensure_ascii=False, separators=(",", ":")
    )
    PACK.write_bytes(gzip.compress(content.encode(), mtime=0))
    print(f"{PACK}: {PACK.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
