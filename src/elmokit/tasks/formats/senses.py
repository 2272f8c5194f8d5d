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
from elmokit.files.location import Location, shown
from elmokit.files.sources import existing_file, read_pieces
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import read_records

_INVENTORY_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_WORD_ELEMENTS = ("wf", "instance")
_ELEMENTS = {"corpus": "", "text": "corpus", "sentence": "text"}  # each with its parent


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
        found = self._senses.get((_lemma_key(lemma), _INVENTORY_POS.get(pos, pos)), [])
        written = lemma.replace("_", " ")
        return sorted(found, key=lambda sense: (sense.lemma != written, sense.rank))

    def first_sense(self, lemma: str, pos: str) -> str | None:
        """Return the key of the most frequent sense, None if the lemma is unknown."""
        senses = self.senses(lemma, pos)
        return senses[0].sense_key if senses else None


def read_senses(
    path: StrPath, keys_path: StrPath, *, report: ExampleReport | None = None
) -> Iterator[SenseSentence]:
    """Yield the sentences with annotated words from XML and a file of gold keys.

    The report counts annotated words; a sentence with an empty word is skipped and counts as one.

    Raises:
        FileNotFoundError: at once, if a file does not exist.
        FormatError: while reading, for invalid XML, an instance without id, lemma or part of
            speech, a line without key, a repeated id, or a file without annotated words.
    """
    found_keys = existing_file(keys_path, what="sense keys")
    return read_examples(
        path,
        lambda path, report: _sense_sentences(path, found_keys, report),
        report,
        size=lambda sentence: len(sentence.occurrences),
    )


def read_sense_inventory(path: StrPath) -> SenseInventory:
    """Read a table with the columns lemma, pos, rank, sense_key, synset and gloss.

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: for missing columns, a rank that is not a number, or a file without senses.
    """
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


def _sense_sentences(path: Path, keys_path: Path, report: ExampleReport) -> Iterator[SenseSentence]:
    keys = _read_keys(keys_path)
    for raw in _XmlReader(path).sentences():
        tokens: list[str] = []
        occurrences: list[SenseOccurrence] = []
        num_empty = 0
        for word in raw.words:
            start = len(tokens)
            tokens += word.text.split()
            num_empty += len(tokens) == start
            if word.name is None:
                continue
            if word.name not in keys:
                report.skip("no_gold_key", word.location)
                continue
            occurrence = SenseOccurrence(
                name=word.name, start=start, end=len(tokens),
                lemma=word.lemma, pos=word.pos, sense_keys=keys[word.name],
            )  # fmt: skip
            occurrences.append(occurrence)
        if num_empty:
            report.skip("empty_token", raw.location)
        elif occurrences:
            yield SenseSentence(
                tokens=tuple(tokens), occurrences=tuple(occurrences),
                location=raw.location, document=raw.document,
            )  # fmt: skip


@dataclass
class _Word:
    """A <wf> or, with a name, an <instance>."""

    location: Location
    name: str | None
    lemma: str
    pos: str
    text: str = ""


@dataclass
class _RawSentence:
    location: Location
    document: str
    words: list[_Word]


class _XmlReader:
    """Reads the XML in pieces and records line numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity
        self._open: list[str] = []
        self._document, self._num_documents = "", 0
        self._sentence: _RawSentence | None = None
        self._word: _Word | None = None
        self._finished: list[_RawSentence] = []
        self._names: set[str] = set()

    def sentences(self) -> Iterator[_RawSentence]:
        for piece in read_pieces(self.path):
            self._parse(piece, False)
            yield from self._finished
            self._finished = []
        self._parse(b"", True)
        yield from self._finished  # what the parser put off until it knew the end

    def _parse(self, piece: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise Location(path=self.path, line=error.lineno).error(
                f"invalid XML at column {error.offset}: {expat.ErrorString(error.code)}. Is the "
                f"file truncated or empty? Copy it again."
            ) from error

    def _location(self) -> Location:
        return Location(path=self.path, line=self._parser.CurrentLineNumber)

    def _entity(self, *_: object) -> None:
        raise self._location().error("entity declarations are not allowed in task data.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else ""
        expected = "sentence" if name in _WORD_ELEMENTS else _ELEMENTS.get(name)
        if expected is None or parent != expected:
            where = f"in <{parent}>" if parent else "at the top"
            raise self._location().error(
                f"<{name}> {where} is not allowed. Expected: <corpus> with <text> with <sentence> "
                f"with <wf> and <instance>."
            )
        self._open.append(name)
        if name == "text":
            self._num_documents += 1
            self._document = attributes.get("id") or str(self._num_documents)
        elif name == "sentence":
            self._sentence = _RawSentence(self._location(), self._document, words=[])
        elif name == "wf" and self._sentence is not None:
            self._word = _Word(location=self._sentence.location, name=None, lemma="", pos="")
        elif name == "instance":
            self._word = self._instance(attributes)

    def _instance(self, attributes: dict[str, str]) -> _Word:
        location = self._location()
        missing = [name for name in ("id", "lemma", "pos") if not attributes.get(name)]
        if missing:
            raise location.error(f"an <instance> lacks {', '.join(missing)}.")
        name = attributes["id"]
        if name in self._names:
            raise location.error(f"the instance {shown(name)} occurs twice.")
        self._names.add(name)
        return _Word(location=location, name=name, lemma=attributes["lemma"], pos=attributes["pos"])

    def _end(self, name: str) -> None:
        self._open.pop()
        if name == "sentence" and self._sentence is not None:
            self._finished.append(self._sentence)
        elif name in _WORD_ELEMENTS and self._sentence is not None and self._word is not None:
            self._sentence.words.append(self._word)
            self._word = None

    def _characters(self, text: str) -> None:
        if self._word is not None:
            self._word.text += text
        elif text.strip():
            raise self._location().error(f"text outside <wf> and <instance>: {shown(text)}.")
