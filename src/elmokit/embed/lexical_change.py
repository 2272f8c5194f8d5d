"""Which words are used differently in two corpora, by the contexts that a biLM reads.

Each word has a sample of its occurrences from each corpus. Occurrences in one unit (a document
between blank lines, or a line) are not independent, so a unit gives at most one, and p-values are
those of independent draws. The corpora are read twice: to count, and to embed the sentences of the
samples only.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.corpus.readers import ReadReport, read_text_lines, split_lines
from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError, check_choice
from elmokit.files.sources import AnyFile, find_files, is_read_once
from elmokit.inference.layers_and_states import Layers, check_layers, check_one_layer
from elmokit.metrics.lexical_change import (
    MEASURES,
    ChangeFigures,
    false_discovery_rates,
    lexical_change,
    uses_of,
    within_word_whitening,
)
from elmokit.text.normalization import normalize

Unit = Literal["auto", "document", "line"]
OnProgress = Callable[[str, int, int | None], object]
"""(stage, what is done of it, the total if it is known)."""
ROUNDS_FOR_EACH_WORD = 40
"""Most permutations of a word are this times the words: a single changed word among any number can
have a false discovery rate of 1 / 40."""


@dataclass(frozen=True, kw_only=True)
class ChangedWord:
    """One word in both corpora."""

    word: str
    units: tuple[int, int]
    """In which it occurs, by corpus; the sample is at most as large."""
    excess: float
    """Mean distance between uses of different corpora, minus that of uses of one corpus."""
    values: dict[str, float]
    """``apd`` and ``prt``, as in `elmokit.metrics.lexical_change`."""
    p: dict[str, float]
    """Of each measure, by permutation."""
    q: dict[str, float]
    """Smallest false discovery rate at which the word counts as changed (Benjamini–Hochberg)."""
    examples: tuple[list[str], list[str]]
    """Sentences by corpus whose uses are the most unlike those of the other corpus."""


@dataclass(frozen=True, kw_only=True)
class LexicalChanges:
    """What `find_changes` finds."""

    words: list[ChangedWord]
    metadata: dict[str, Any]
    """What made it: `Embedder.metadata`, the unit and the settings of sampling."""


@dataclass
class _Corpus:
    """What is counted and sampled in one corpus."""

    name: str
    files: Sequence[Any]
    embedder: Embedder
    text_field: str | None
    units: Counter[str] = field(default_factory=Counter)
    """In which each word occurs: documents or lines."""
    vectors: dict[str, list[np.ndarray]] = field(default_factory=dict)
    sentences: dict[str, list[str]] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Yield the number of its document, from 1, and the sentences of every line."""
        report, form = ReadReport(), self.embedder.normalization
        lines = read_text_lines([*self.files], report, text_field=self.text_field)
        before: tuple[object, int] | None = None
        document = 0
        for line, sentences in split_lines(
            lines, self.embedder.tokenizer, normalization=form, report=report
        ):
            # blank lines, which end documents, are not yielded, but counted
            document += before != (line.path, line.number - 1)
            before = (line.path, line.number)
            yield document, sentences

    def count(self, on_progress: OnProgress) -> dict[str, tuple[Counter[str], int]]:
        """Return in how many lines and documents each word is, and the number of them."""
        counts: dict[str, Counter[str]] = {"line": Counter(), "document": Counter()}
        in_document: set[str] = set()
        num_lines = last = 0
        for num_lines, (document, sentences) in enumerate(self.lines(), 1):
            words = {word for sentence in sentences for word in sentence}
            if document != last:
                in_document, last = set(), document
            counts["line"].update(words)
            counts["document"].update(words - in_document)
            in_document |= words
            on_progress(f"counting {self.name}", num_lines, None)
        return {"line": (counts["line"], num_lines), "document": (counts["document"], last)}

    def sample(
        self, drawn: dict[str, set[int]], unit: str, layers: Layers, on_progress: OnProgress
    ) -> None:
        """Embed the sentences with the first occurrence of each word in its drawn units."""
        places: deque[list[tuple[str, int]]] = deque()

        def sentences() -> Iterator[list[str]]:
            seen: Counter[str] = Counter()
            in_unit: set[str] = set()
            last = 0
            for document, of_line in self.lines():
                if unit == "line" or document != last:
                    in_unit, last = set(), document
                for sentence in of_line:
                    wanted: list[tuple[str, int]] = []
                    for position, word in enumerate(sentence):
                        if word in drawn and word not in in_unit:
                            in_unit.add(word)
                            if seen[word] in drawn[word]:
                                wanted.append((word, position))
                            seen[word] += 1
                    if wanted:
                        places.append(wanted)
                        yield sentence

        num_done, total = 0, sum(map(len, drawn.values()))
        for embedded in self.embedder.stream(sentences(), layers=layers):
            for word, position in places.popleft():
                vector = embedded.vectors[position].astype(np.float16)
                self.vectors.setdefault(word, []).append(vector)
                self.sentences.setdefault(word, []).append(" ".join(embedded.words))
                num_done += 1
            on_progress(f"embedding {self.name}", num_done, total)


def find_changes(
    a: str | Path,
    b: str | Path,
    *,
    model: str | None = None,
    words: Sequence[str] | None = None,
    layers: Layers | str = "average",
    unit: Unit | str = "auto",
    min_count: int = 20,
    max_words: int = 1000,
    sample: int = 100,
    num_rounds: int = 999,
    num_examples: int = 2,
    seed: int = 0,
    text_field: str | None = None,
    precision: str = "fp32",
    on_progress: OnProgress = lambda stage, done, total: None,
) -> LexicalChanges:
    """Compare the uses of words in two corpora; the most changed word comes first.

    Args:
        a: File or directory of text.
        b: The other corpus.
        model: Directory or name of the biLM that reads both; default: the English one.
        words: Which; default: the ``max_words`` words with a letter that are the most frequent in
            the corpus where they are rarer, with ``min_count`` units in each.
        layers: As in `Embedder.embed`, except ``"all"``.
        unit: What gives at most one occurrence of a word: ``"line"``, ``"document"`` (lines up to a
            blank one), or ``"auto"``: documents, if both corpora have twice ``min_count`` of them.
        min_count: Units that a word must have in both corpora, at least 2.
        max_words: Most words without ``words``.
        sample: Most occurrences of a word from one corpus, at least 2, which are a pair.
        num_rounds: Permutations; of words with very small p-values up to 40 for each word compared.
        num_examples: Sentences for each word and corpus.
        seed: Of samples and permutations.
        text_field: As for `read_text_lines`.
        precision: As of `Embedder.load`.
        on_progress: As `OnProgress`.

    Raises:
        InputError: for an invalid option, one corpus given twice, and a word that is too rare.
    """
    check_choice(unit, Unit, name="unit")
    check_one_layer(layers)
    if min(min_count, sample) < 2 or min(max_words, num_rounds) < 1 or min(num_examples, seed) < 0:
        raise InputError(
            "`min_count` and `sample` must be at least 2, `max_words` and `num_rounds` 1, and "
            "`num_examples` and `seed` 0."
        )
    files = [find_files([path]) for path in (a, b)]
    if any(map(is_read_once, files[0] + files[1])):
        raise InputError(f"{a}, {b}: a corpus is read twice: give files, not a pipe.")
    if set(map(_place, files[0])) & set(map(_place, files[1])):
        raise InputError(f"{a} and {b} share a file: give two corpora.")
    embedder = Embedder.load(model, precision=precision)
    which = check_layers(layers, embedder.num_layers)
    corpora = [
        _Corpus(str(path), its_files, embedder, text_field)
        for path, its_files in zip((a, b), files, strict=True)
    ]
    counts = [corpus.count(on_progress) for corpus in corpora]
    if unit == "auto":
        num_documents = min(of_corpus["document"][1] for of_corpus in counts)
        unit = "document" if num_documents >= 2 * min_count else "line"
    for corpus, of_corpus in zip(corpora, counts, strict=True):
        corpus.units = of_corpus[unit][0]
    if words is not None:
        words = [normalize(word, embedder.normalization) for word in words]
    targets = _targets(words, corpora, min_count, max_words)
    generator = np.random.default_rng(seed)
    for corpus in corpora:
        drawn: dict[str, set[int]] = {}
        for word in targets:
            num_units = corpus.units[word]
            units = generator.choice(num_units, size=min(sample, num_units), replace=False)
            drawn[word] = set(units.tolist())
        corpus.sample(drawn, unit, which, on_progress)
    samples = {word: [np.stack(c.vectors.pop(word)) for c in corpora] for word in targets}
    whitening = within_word_whitening(
        np.concatenate(pair).astype(np.float64) for pair in samples.values()
    )
    results: list[ChangeFigures] = []
    examples: list[tuple[list[str], list[str]]] = []
    for number, word in enumerate(targets, 1):
        in_a, in_b = (vectors.astype(np.float64) for vectors in samples.pop(word))
        results.append(
            lexical_change(
                in_a, in_b, whitening, num_rounds=num_rounds,
                most_rounds=ROUNDS_FOR_EACH_WORD * len(targets), generator=generator,
            )
        )  # fmt: skip
        texts = [corpus.sentences[word] for corpus in corpora]
        examples.append(_examples((in_a, in_b), whitening, texts, num_examples))
        on_progress("comparing", number, len(targets))
    # of many words some have a small p by chance: Benjamini-Hochberg over all of them
    rates = {
        name: false_discovery_rates([figures.p[name] for figures in results]) for name in MEASURES
    }
    changed = [
        ChangedWord(
            word=word, units=(corpora[0].units[word], corpora[1].units[word]),
            excess=figures.excess, values=figures.values, p=figures.p,
            q={name: rates[name][row] for name in MEASURES}, examples=examples[row],
        )
        for row, (word, figures) in enumerate(zip(targets, results, strict=True))
    ]  # fmt: skip
    return LexicalChanges(
        words=sorted(changed, key=lambda result: (-result.excess, result.word)),
        metadata=embedder.metadata(layers=which) | {
            "unit": unit, "min_count": min_count, "sample": sample, "num_rounds": num_rounds,
            "seed": seed,
        },
    )  # fmt: skip


def _place(file: AnyFile) -> str:
    return str(file.resolve() if isinstance(file, Path) else file)


def _targets(
    words: Sequence[str] | None, corpora: list[_Corpus], min_count: int, max_words: int
) -> list[str]:
    """Return the words to compare: those given, or the most frequent with a letter."""
    a, b = corpora
    least = {word: min(count, b.units[word]) for word, count in a.units.items()}
    if words is None:
        frequent = [
            w for w, count in least.items() if count >= min_count and any(map(str.isalpha, w))
        ]
        if not frequent:
            raise InputError(
                f"No word occurs in {min_count} lines or documents of both {a.name} and {b.name}. "
                "Give more text or a smaller `min_count`."
            )
        return sorted(frequent, key=lambda word: (-least[word], word))[:max_words]
    for word in words:
        if least.get(word, 0) < min_count:
            raise InputError(
                f"{word!r} occurs in {a.units[word]} and {b.units[word]} lines or documents of "
                f"{a.name} and {b.name}, and {min_count} are needed. Leave it out, give more text "
                "or a smaller `min_count`; is it spelled as the tokenizer splits it?"
            )
    return list(dict.fromkeys(words))


def _examples(
    pair: Sequence[np.ndarray], whitening: np.ndarray, sentences: Sequence[list[str]], count: int
) -> tuple[list[str], list[str]]:
    """Return the sentences that are nearer to their own corpus than to the other."""
    uses = uses_of(np.concatenate(pair), whitening)
    halves = uses[: len(pair[0])], uses[len(pair[0]) :]
    towards_a = halves[0].mean(axis=0) - halves[1].mean(axis=0)
    best = []
    for vectors, texts, direction in zip(halves, sentences, (1, -1), strict=True):
        order = np.argsort(-direction * (vectors @ towards_a), kind="stable")
        best.append([texts[k] for k in order[:count]])
    return best[0], best[1]
