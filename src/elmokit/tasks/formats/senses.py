"""Words and their senses: annotated text with keys (Raganato et al. 2017), and an inventory.

Annotated text is ``<corpus><text><sentence><wf>…</wf><instance id lemma pos>…</instance>``; a
second file has the gold keys, ``instance-id key [key …]`` per line. Semicolons may join keys of one
lemma, as in SemCor: ``play%1:10:03::;1:10:01::`` is two.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import existing_file, read_pieces
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import read_records
from elmokit.wording import Location, shown

_INVENTORY_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}


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


def read_sense_inventory(path: StrPath) -> SenseInventory:
    """Read a table with the columns lemma, pos, rank, sense_key, synset and gloss."""
    senses: dict[tuple[str, str], list[Sense]] = {}
    for record in read_examples(path, lambda path, _: read_records(path)):
        sense: Sense = record.as_model(Sense)
        senses.setdefault((_lemma_key(sense.lemma), record.text("pos")), []).append(sense)
    return SenseInventory(senses)


def _lemma_key(lemma: str) -> str:
    return lemma.replace("_", " ").lower()


def _read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for number, line in numbered_lines(path):
        name, *joined = line.split() or [""]
        senses = tuple(key for several in joined for key in _separate(several))
        if name and (not senses or name in keys):
            what = "occurs twice" if senses else "has no sense key"
            raise Location(path=path, line=number).error(
                f"the instance {shown(name)} {what}. Give one line for each: id key [key …]."
            )
        if name:
            keys[name] = senses
    return keys


def _separate(keys: str) -> Iterator[str]:
    """Yield the keys that semicolons join: only the first names the lemma."""
    first, *others = [key for key in keys.split(";") if key] or [""]
    lemma = first.partition("%")[0]
    for key in filter(None, (first, *others)):
        yield key if "%" in key or key is first else f"{lemma}%{key}"


def _sentence_elements(path: Path) -> Iterator[tuple[str, Element]]:
    """Yield the ``<sentence>`` elements with the name of their text; each is cleared after use."""
    parser = XMLPullParser(("start", "end"))
    document, num_documents = "", 0
    try:
        for piece in chain(read_pieces(path), [None]):
            parser.close() if piece is None else parser.feed(piece)
            for event in parser.read_events():
                kind, element = cast("tuple[str, Element]", event)
                if kind == "start" and element.tag == "text":
                    num_documents += 1
                    document = element.get("id") or str(num_documents)
                elif kind == "end" and element.tag == "sentence":
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
        start, words = len(tokens), "".join(word.itertext()).split()
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
        occurrence = SenseOccurrence(
            name=name, start=start, end=len(tokens), lemma=lemma, pos=pos, sense_keys=keys.pop(name)
        )  # fmt: skip
        occurrences.append(occurrence)
    return tokens, occurrences
