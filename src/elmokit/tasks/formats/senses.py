"""Words and their senses: annotated text with keys, and an inventory.

Annotated text is ``<corpus><text><sentence><wf>…</wf><instance id lemma pos>…</instance>``; a
second file has the gold keys, ``instance-id key [key …]`` per line. Semicolons may join keys of one
lemma, as in SemCor: ``play%1:10:03::;1:10:01::`` is two.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, iterparse

from elmokit.errors import Location, shown
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import existing_file, open_stream
from elmokit.tasks.formats.data_files import ExampleReport, read_examples, read_records

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
    document: str  # id of its text; without one, the number of the text in the file, from 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Sense:
    """One meaning of a lemma; rank 1 is the most frequent."""

    lemma: str
    pos: str
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

    def senses(self, lemma: str, pos: str) -> list[Sense]:
        """Return the senses of a lemma, most frequent first; empty if it is unknown."""
        senses = self._senses.get((lemma_key(lemma), _INVENTORY_POS.get(pos, pos)), [])
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
        senses.setdefault((lemma_key(sense.lemma), sense.pos), []).append(sense)
    return SenseInventory(senses)


def lemma_key(lemma: str) -> str:
    """Return a lemma in lower case, with spaces between the words of an expression."""
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
                    tokens=tuple(tokens), occurrences=tuple(occurrences), document=document
                )

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
