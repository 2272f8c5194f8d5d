"""Words and their senses: annotated text with keys, an inventory, words in context (WiC).

Annotated text is ``<corpus><text><sentence><wf>…</wf><instance id lemma pos>…</instance>``; a
second file has the gold keys, ``instance-id key [key …]`` per line. Semicolons may join keys of one
lemma, as in SemCor: ``play%1:10:03::;1:10:01::`` is two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, iterparse

from elmokit.errors import Location, shown
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines, read_text
from elmokit.files.sources import existing_file, open_stream
from elmokit.tasks.formats.reading import (
    ExampleReport,
    Record,
    first_named,
    parse_json,
    read_examples,
    read_records,
)

_INVENTORY_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
LABELS_APART = ".data"  # suffix of files of WiC whose labels are in a file of their own


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseOccurrence:
    """An annotated word or expression: tokens ``[start, end)`` of its sentence."""

    name: str
    start: int
    end: int
    lemma: str
    pos: str
    sense_keys: tuple[str, ...]  # at least one; any of them is correct


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseSentence:
    """A sentence with at least one annotated word; ``New York`` is several tokens."""

    tokens: tuple[str, ...]
    occurrences: tuple[SenseOccurrence, ...]
    location: Location
    document: str  # id of its text; without one, the number of the text in the file, from 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Sense:
    """One meaning of a lemma; rank 1 is the most frequent."""

    lemma: str
    sense_key: str
    rank: int
    synset: str
    gloss: str


class SenseInventory:
    """The senses of each lemma and part of speech.

    Lookup ignores case and takes ``_`` for a space; senses of the exact spelling come before those
    of others (``march``, ``March``).
    """

    def __init__(self, senses: Mapping[tuple[str, str], list[Sense]]) -> None:
        self._senses = senses

    def __len__(self) -> int:
        return sum(map(len, self._senses.values()))

    def senses(self, lemma: str, pos: str) -> list[Sense]:
        """Return the senses of a lemma, most frequent first; empty if it is unknown."""
        senses = self._senses.get((_lemma_key(lemma), _INVENTORY_POS.get(pos, pos)), [])
        written = lemma.replace("_", " ")
        return sorted(senses, key=lambda sense: (sense.lemma != written, sense.rank))

    def first_sense(self, lemma: str, pos: str) -> str | None:
        """Return the key of the most frequent sense, None if the lemma is unknown."""
        senses = self.senses(lemma, pos)
        return senses[0].sense_key if senses else None


def read_sense_inventory(path: StrPath) -> SenseInventory:
    """Read a table with the columns lemma, pos, rank, sense_key, synset and gloss."""
    senses: dict[tuple[str, str], list[Sense]] = {}
    for record in read_examples(path, lambda path, _: read_records(path)):
        sense: Sense = record.as_model(Sense)
        senses.setdefault((_lemma_key(sense.lemma), record.text("pos")), []).append(sense)
    return SenseInventory(senses)


def _lemma_key(lemma: str) -> str:
    return lemma.replace("_", " ").lower()


def read_senses(path: StrPath, keys_path: StrPath) -> Iterator[SenseSentence]:
    """Yield the sentences with annotated words from XML and a file of gold keys."""
    keys_path = existing_file(keys_path, what="sense keys")

    def sentences(path: Path, report: ExampleReport) -> Iterator[SenseSentence]:
        keys = _read_keys(keys_path)
        for document, element in _sentence_elements(path):
            location = Location(path=path, part=f"sentence {element.get('id', '?')}")
            tokens, occurrences = _read_sentence(element, location, keys, report)
            if occurrences:
                report.examples += len(occurrences) - 1
                yield SenseSentence(
                    tokens=tuple(tokens), occurrences=tuple(occurrences), location=location,
                    document=document,
                )  # fmt: skip

    return read_examples(path, sentences)


def _read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        name, *joined = line.split()
        senses = tuple(key for several in joined for key in _separate(several))
        if not senses or name in keys:
            what = "occurs twice" if senses else "has no sense key"
            raise Location(path=path, line=number).error(
                f"the instance {shown(name)} {what}. Give one line for each: id key [key …]."
            )
        keys[name] = senses
    return keys


def _separate(keys: str) -> Iterator[str]:
    """Yield the keys that semicolons join: only the first names the lemma."""
    lemma = keys.strip(";").partition(";")[0].partition("%")[0]
    for number, key in enumerate(filter(None, keys.split(";"))):
        yield key if "%" in key or number == 0 else f"{lemma}%{key}"


def _sentence_elements(path: Path) -> Iterator[tuple[str, Element]]:
    """Yield the ``<sentence>`` elements with the name of their text; each is cleared after use."""
    document, num_documents = "", 0
    try:
        for event, element in iterparse(open_stream(path), ("start", "end")):
            if event == "start" and element.tag == "text":
                num_documents += 1
                document = element.get("id") or str(num_documents)
            elif event == "end" and element.tag == "sentence":
                yield document, element
                element.clear()
    except ParseError as error:
        line, column = error.position
        raise Location(path=path, line=line).error(
            f"invalid XML at column {column}: {error.msg}. Is the file truncated or empty? Copy it "
            "again."
        ) from error


def _read_sentence(
    sentence: Element, location: Location, keys: dict[str, tuple[str, ...]], report: ExampleReport
) -> tuple[list[str], list[SenseOccurrence]]:
    """Return the tokens and the annotated words, whose keys are taken out."""
    tokens: list[str] = []
    occurrences: list[SenseOccurrence] = []
    outside = [sentence.text, *(word.tail for word in sentence)]
    if any(text.strip() for text in outside if text):
        raise location.error("text outside <wf> and <instance>.")
    for word in sentence:
        words = "".join(word.itertext()).split()
        tokens += words
        if not words:
            report.skip("empty_token", location)
            return tokens, []
        if word.tag != "instance":
            continue
        name, lemma, pos = (word.get(attribute, "") for attribute in ("id", "lemma", "pos"))
        if not (name and lemma and pos):
            raise location.error(f"the <instance> {shown(name)} lacks id, lemma or pos.")
        if name not in keys:
            report.skip("no_gold_key", location)
            continue
        occurrences.append(SenseOccurrence(
            name=name, start=len(tokens) - len(words), end=len(tokens), lemma=lemma, pos=pos,
            sense_keys=keys.pop(name),
        ))  # fmt: skip
    return tokens, occurrences


@dataclass(frozen=True, kw_only=True, slots=True)
class WordInContext:
    """A text and the position of the target word, in characters, end-exclusive."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextPair:
    """The same word in two texts: does it mean the same?"""

    lemma: str
    first: WordInContext
    second: WordInContext
    same_sense: bool
    location: Location


_WordOf = Callable[[Record, int, ExampleReport], WordInContext | None]


def read_wic(path: StrPath) -> Iterator[ContextPair]:
    """Yield pairs of ``lemma`` (or ``word``), ``sentence1, start1, end1, sentence2, …, label``.

    They are records, as in SuperGLUE, or the files of MCL-WiC and of WiC as they are distributed:
    ``NAME.data…`` with the labels in ``NAME.gold…`` beside it. Pairs with a span that is empty or
    outside its text are skipped.
    """
    return _read_pairs(path, _by_offsets, ("word", "lemma"), "label")


def read_kobest_wic(path: StrPath) -> Iterator[ContextPair]:
    """Yield pairs of KoBEST, where ``[ ]`` marks the word; the first of several marks counts."""
    return _read_pairs(path, _by_marks, ("Target",), "ANSWER")


def _read_pairs(
    path: StrPath, word_of: _WordOf, lemma_names: Sequence[str], label_name: str
) -> Iterator[ContextPair]:
    def pairs(path: Path, report: ExampleReport) -> Iterator[ContextPair]:
        for record in _labeled_apart(path) if LABELS_APART in path.suffixes else read_records(path):
            first, second = word_of(record, 1, report), word_of(record, 2, report)
            lemma = record.text(first_named(iter([record]), lemma_names))
            same_sense = record.value(label_name, bool)
            if first is None or second is None:
                report.skip("target_not_in_text", record.location)
            else:
                yield ContextPair(
                    lemma=lemma, first=first, second=second, same_sense=same_sense,
                    location=record.location,
                )  # fmt: skip

    return read_examples(path, pairs)


def _by_offsets(record: Record, side: int, report: ExampleReport) -> WordInContext | None:
    text = record.text(f"sentence{side}")
    start, end = record.value(f"start{side}", int), record.value(f"end{side}", int)
    return WordInContext(text=text, start=start, end=end) if 0 <= start < end <= len(text) else None


def _by_marks(record: Record, side: int, report: ExampleReport) -> WordInContext | None:
    before, _, rest = record.text(f"SENTENCE{side}").partition("[")
    word, closed, after = rest.partition("]")
    if not closed or not word.strip():
        return None
    report.repaired["several_targets"] += "[" in after
    text = before + word + after.replace("[", "").replace("]", "")
    return WordInContext(text=text, start=len(before), end=len(before) + len(word))


def _labeled_apart(path: Path) -> Iterator[Record]:
    """Yield the records of ``NAME.data…`` with the labels of ``NAME.gold…``."""
    name = path.name.replace(LABELS_APART, ".gold")
    gold_path = existing_file(path.with_name(name), what="labels")
    text, gold = read_text(path), read_text(gold_path)
    if text.lstrip().startswith("["):  # MCL-WiC
        pairs = _json_list(text, path)
        tags = {label.text("id"): label.text("tag") for label in _json_list(gold, gold_path)}
        labels = [tags.get(pair.text("id"), "") for pair in pairs]
    else:
        pairs = [_from_row(path, *line) for line in numbered_lines(path) if line[1].strip()]
        labels = gold.split()
    if len(labels) != len(pairs) or "" in labels:
        raise Location(path=gold_path).error(
            f"not one label for each of the {len(pairs):,} pairs in {path}. Are both files whole?"
        )
    for pair, label in zip(pairs, labels, strict=True):
        yield Record(fields={**pair.fields, "label": label}, location=pair.location)


def _json_list(text: str, path: Path) -> list[Record]:
    rows = parse_json(text, list[dict[str, Any]], Location(path=path))
    return [
        Record(fields=fields, location=Location(path=path, part=f"[{number}]"))
        for number, fields in enumerate(rows)
    ]


def _from_row(path: Path, number: int, line: str) -> Record:
    """Return the record of a row of WiC: word, part of speech, places of words, two sentences."""
    location, row = Location(path=path, line=number), line.split("\t")
    places = row[2].split("-") if len(row) == 5 else []
    if len(places) != 2 or not all(place.isdecimal() for place in places):
        raise location.error(
            "expected word, part of speech, places such as 2-1, and two sentences, with tabs."
        )
    fields: dict[str, Any] = {"word": row[0]}
    for side, place, sentence in zip("12", map(int, places), row[3:], strict=True):
        words = sentence.split(" ")
        start = sum(len(word) + 1 for word in words[:place])
        end = start + len(words[place]) if place < len(words) else start
        fields |= {f"sentence{side}": sentence, f"start{side}": start, f"end{side}": end}
    return Record(fields=fields, location=location)
