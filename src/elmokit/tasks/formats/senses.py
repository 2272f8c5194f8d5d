"""Words and their senses: annotated text with keys (Raganato et al. 2017), and an inventory.

Annotated text is ``<corpus><text><sentence><wf>…</wf><instance id lemma pos>…</instance>``; a
second file has the gold keys, ``instance-id key [key …]`` per line. Semicolons may join keys of one
lemma, as in SemCor: ``play%1:10:03::;1:10:01::`` is two.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import existing_file, read_pieces
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import read_records
from elmokit.wording import Location, shown

_INVENTORY_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_PARENTS = {
    "corpus": "", "text": "corpus", "sentence": "text", "wf": "sentence", "instance": "sentence",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseOccurrence:
    """An annotated word or expression."""

    name: str
    start: int
    """Index of its first token in the sentence."""
    end: int
    """Exclusive."""
    lemma: str
    pos: str
    sense_keys: tuple[str, ...]
    """At least one; any of them is correct."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseSentence:
    """A sentence with at least one annotated word."""

    tokens: tuple[str, ...]
    """A multiword expression (``New York``) is several tokens."""
    occurrences: tuple[SenseOccurrence, ...]
    location: Location
    document: str
    """Id of its text; without one, the number of the text in the file, from 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sense:
    """One meaning of a lemma."""

    lemma: str
    sense_key: str
    rank: int
    """1 is the most frequent sense."""
    synset: str
    gloss: str


class SenseInventory:
    """The senses of each lemma, as `read_sense_inventory` reads them.

    Lookup ignores case and takes ``_`` for a space; senses of the exact spelling come before those
    of others (``march``, ``March``).
    """

    def __init__(self, senses: Mapping[tuple[str, str], list[Sense]]) -> None:
        self._senses = senses

    def __len__(self) -> int:
        return sum(map(len, self._senses.values()))

    def senses(self, lemma: str, pos: str) -> list[Sense]:
        """Return the senses of a lemma, most frequent first; empty if it is unknown.

        ``pos`` is ``NOUN``, ``VERB``, ``ADJ`` or ``ADV``, or ``n``, ``v``, ``a`` or ``r``.
        """
        senses = self._senses.get((_lemma_key(lemma), _INVENTORY_POS.get(pos, pos)), [])
        written = lemma.replace("_", " ")
        return sorted(senses, key=lambda sense: (sense.lemma != written, sense.rank))

    def first_sense(self, lemma: str, pos: str) -> str | None:
        """Return the key of the most frequent sense, None if the lemma is unknown."""
        senses = self.senses(lemma, pos)
        return senses[0].sense_key if senses else None


def read_senses(
    path: StrPath, keys_path: StrPath, *, report: ExampleReport | None = None
) -> Iterator[SenseSentence]:
    """Yield the sentences with annotated words from XML and a file of gold keys.

    The report counts annotated words; a sentence with an empty word is skipped and counts as one.
    """
    keys_path = existing_file(keys_path, what="sense keys")

    def sentences(path: Path, report: ExampleReport) -> Iterator[SenseSentence]:
        parser = _SentenceParser(path, _read_keys(keys_path), report)
        for piece in read_pieces(path):
            yield from parser.parse(piece)
        yield from parser.parse(b"", is_last=True)  # what expat put off until it knew the end

    return read_examples(
        path, sentences, report, size=lambda sentence: len(sentence.occurrences)
    )  # fmt: skip


def read_sense_inventory(path: StrPath) -> SenseInventory:
    """Read a table with the columns lemma, pos, rank, sense_key, synset and gloss."""
    senses: dict[tuple[str, str], list[Sense]] = {}
    for record in read_examples(path, lambda path, _: read_records(path), None):
        sense = Sense(
            lemma=record.text("lemma"),
            sense_key=record.text("sense_key"),
            rank=record.integer("rank"),
            synset=record.text("synset"),
            gloss=record.text("gloss"),
        )
        senses.setdefault((_lemma_key(sense.lemma), record.text("pos")), []).append(sense)
    return SenseInventory(senses)


def _lemma_key(lemma: str) -> str:
    return lemma.replace("_", " ").lower()


def _read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for number, line in numbered_lines(path):
        name, *joined = line.split() or [""]
        if not name:
            continue
        senses = tuple(key for one in joined for key in _separate(one))
        if not senses or name in keys:
            what = "occurs twice" if senses else "has no sense key"
            raise Location(path=path, line=number).error(
                f"the instance {shown(name)} {what}. Give one line for each: id key [key …]."
            )
        keys[name] = senses
    return keys


def _separate(keys: str) -> Iterator[str]:
    """Yield the keys that semicolons join: only the first names the lemma."""
    first, *others = [key for key in keys.split(";") if key] or [""]
    lemma = first.partition("%")[0]
    for key in filter(None, (first, *others)):
        yield key if "%" in key or key is first else f"{lemma}%{key}"


class _SentenceParser:
    """Reads the XML in pieces. Locations need expat: other parsers hide the line of an element."""

    def __init__(
        self, path: Path, keys: Mapping[str, tuple[str, ...]], report: ExampleReport
    ) -> None:
        self._path, self._keys, self._report = path, keys, report
        self._expat = expat.ParserCreate()
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.EntityDeclHandler = self._entity
        self._open: list[str] = []
        self._document, self._num_documents = "", 0
        self._names: set[str] = set()
        self._finished: list[SenseSentence] = []

    def parse(self, piece: bytes, *, is_last: bool = False) -> list[SenseSentence]:
        """Return the sentences that end in this piece."""
        self._finished = []
        try:
            self._expat.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise Location(path=self._path, line=error.lineno).error(
                f"invalid XML at column {error.offset}: {expat.ErrorString(error.code)}. Is the "
                f"file truncated or empty? Copy it again."
            ) from error
        return self._finished

    def _here(self) -> Location:
        return Location(path=self._path, line=self._expat.CurrentLineNumber)

    def _entity(self, *_: object) -> None:
        # entities that name each other can make gigabytes of a small file
        raise self._here().error("entity declarations are not allowed in task data.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else ""
        if _PARENTS.get(name) != parent:
            where = f"in <{parent}>" if parent else "at the top"
            raise self._here().error(
                f"<{name}> {where} is not allowed. Expected: <corpus> with <text> with <sentence> "
                f"with <wf> and <instance>."
            )
        self._open.append(name)
        if name == "text":
            self._num_documents += 1
            self._document = attributes.get("id") or str(self._num_documents)
        elif name == "sentence":
            self._sentence_location, self._has_empty = self._here(), False
            self._tokens: list[str] = []
            self._occurrences: list[SenseOccurrence] = []
        elif parent == "sentence":
            self._word_location, self._text = self._here(), ""
            self._instance = self._checked(attributes) if name == "instance" else None

    def _checked(self, attributes: dict[str, str]) -> dict[str, str]:
        missing = [name for name in ("id", "lemma", "pos") if not attributes.get(name)]
        if missing or attributes["id"] in self._names:
            fault = f"lacks {', '.join(missing)}" if missing else "occurs twice"
            raise self._here().error(f"the <instance> {shown(attributes.get('id'))} {fault}.")
        self._names.add(attributes["id"])
        return attributes

    def _end(self, name: str) -> None:
        self._open.pop()
        if name in ("wf", "instance"):
            self._end_word()
        elif name == "sentence" and self._has_empty:
            self._report.skip("empty_token", self._sentence_location)
        elif name == "sentence" and self._occurrences:
            sentence = SenseSentence(
                tokens=tuple(self._tokens), occurrences=tuple(self._occurrences),
                location=self._sentence_location, document=self._document,
            )  # fmt: skip
            self._finished.append(sentence)

    def _end_word(self) -> None:
        start, word = len(self._tokens), self._instance
        self._tokens += self._text.split()
        self._has_empty |= len(self._tokens) == start
        if word is None:
            return
        if word["id"] not in self._keys:
            self._report.skip("no_gold_key", self._word_location)
            return
        occurrence = SenseOccurrence(
            name=word["id"], start=start, end=len(self._tokens), lemma=word["lemma"],
            pos=word["pos"], sense_keys=self._keys[word["id"]],
        )  # fmt: skip
        self._occurrences.append(occurrence)

    def _characters(self, text: str) -> None:
        if self._open[-1] in ("wf", "instance"):
            self._text += text
        elif text.strip():
            raise self._here().error(f"text outside <wf> and <instance>: {shown(text)}.")
