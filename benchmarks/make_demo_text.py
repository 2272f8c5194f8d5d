"""Compose the demonstration text that ships in ``src/elmokit/data/demo``.

`elmokit demo` trains a toy biLM on these files, so the text must let a very small model learn word
senses: the ambiguous words stand often, and each sense beside words of its own, on both sides. That
is what shows in a small language model's vectors; a clue three words away does not.

The sources, written for this project, are ``benchmarks/demo_text/en.txt`` and ``ko.txt``. One line
is one sentence or one template; a template writes its choices as ``[a|b|c]``, and ``{who}`` stands
for the list defined by ``@who = a | b | c``. A heading says what follows:

    == bank river 8       sentences in which `bank` means `river`; at most 8 from one template
    == general 8          sentences without any ambiguous word
    == probe bank river   held-out sentences, the word marked: Two ducks slept on the *bank* .

English is written as tokens. Korean is written as raw text; particles in parentheses follow the
final sound of the word before them, ``배(을)`` -> ``배를``, and Kiwi splits the sentence into
morphemes (``pip install "elmokit[ko]"``).

Run from the repository root; the same source always gives the same files:

    python benchmarks/make_demo_text.py            # both languages
    python benchmarks/make_demo_text.py en --check # compare with the files that ship, write nothing
"""

import argparse
import random
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE_DIR = ROOT / "benchmarks" / "demo_text"
OUTPUT_DIR = ROOT / "src" / "elmokit" / "data" / "demo"
LANGUAGES = ("en", "ko")

CHOICE = re.compile(r"\[([^\]]*)\]")
MACRO = re.compile(r"\{(\w+)\}")
PARTICLE = re.compile(r"(\S)\((을|은|이|과|으로|이나|이라)\)")
PARTICLE_AFTER_VOWEL = {
    "을": "를",
    "은": "는",
    "이": "가",
    "과": "와",
    "으로": "로",
    "이나": "나",
    "이라": "라",
}

Tokenize = Callable[[str], list[tuple[str, int]]]
"""Splits a sentence into (token, character offset) pairs."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A held-out sentence with one ambiguous word."""

    tokens: tuple[str, ...]
    index: int
    word: str
    sense: str

    def row(self) -> str:
        """The line of the ``.probe.tsv`` file."""
        return f"{' '.join(self.tokens)}\t{self.index}\t{self.word}\t{self.sense}"


@dataclass(kw_only=True)
class DemoText:
    """Everything one source file yields."""

    sentences: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Training sentence -> heading it stands under (`bank river` or `general`)."""
    probes: list[Probe] = field(default_factory=list)

    def training_lines(self) -> list[str]:
        """The training sentences in their final, mixed order."""
        lines = [" ".join(tokens) for tokens in self.sentences]
        random.Random("elmokit demo").shuffle(lines)
        return lines

    def probe_lines(self) -> list[str]:
        """The rows of the probe file, in the order of the source."""
        return [probe.row() for probe in self.probes]

    def sense_counts(self) -> dict[tuple[str, str], int]:
        """How often each (word, sense) occurs in the training text."""
        counts: dict[tuple[str, str], int] = {}
        for tokens, heading in self.sentences.items():
            if heading != "general":
                word, sense = heading.split()
                counts[word, sense] = counts.get((word, sense), 0) + tokens.count(word)
        return counts


def expand(template: str, macros: dict[str, str], num_draws: int) -> list[str]:
    """Draw distinct sentences; every choice of a slot is used before any comes again."""
    template = MACRO.sub(lambda match: f"[{macros[match[1]]}]", template)
    parts = CHOICE.split(template)  # text, choices, text, choices, ..., text
    slots = [part.split("|") for part in parts[1::2]]
    rng = random.Random(template)
    decks: list[list[str]] = [[] for _ in slots]
    drawn: dict[str, None] = {}
    for _ in range(20 * num_draws):
        if len(drawn) == num_draws or (drawn and not slots):
            break
        for deck, slot in zip(decks, slots, strict=True):
            if not deck:
                deck.extend(rng.sample(slot, len(slot)))
        chosen = [deck.pop() for deck in decks]
        text = parts[0] + "".join(a + b for a, b in zip(chosen, parts[2::2], strict=True))
        drawn[" ".join(text.split())] = None
    return list(drawn)


def choose_particles(text: str) -> str:
    """Resolve Korean particles written as ``(을)`` by the syllable before them."""

    def resolve(match: re.Match[str]) -> str:
        before, particle = match[1], match[2]
        final = (ord(before) - 0xAC00) % 28
        vowel_form = final == 0 or (particle == "으로" and final == 8)  # 8 is the final ㄹ
        return before + (PARTICLE_AFTER_VOWEL[particle] if vowel_form else particle)

    return PARTICLE.sub(resolve, text)


def split_on_spaces(sentence: str) -> list[tuple[str, int]]:
    """English sources are tokens already."""
    return [(match[0], match.start()) for match in re.finditer(r"\S+", sentence)]


def kiwi_tokenizer() -> Tokenize:
    """Kiwi morphemes, as the package's own Korean tokenizer gives them."""
    from kiwipiepy import Kiwi

    kiwi: Any = Kiwi(num_workers=1)
    return lambda sentence: [
        (token.form, token.start) for token in kiwi.tokenize(sentence, compatible_jamo=True)
    ]


def finish(sentence: str, language: str) -> str:
    """Particles for Korean, a capital letter for English."""
    if language == "ko":
        return choose_particles(sentence)
    return sentence[:1].upper() + sentence[1:]


def make_probe(sentence: str, word: str, sense: str, tokenize: Tokenize) -> Probe:
    """Read a sentence whose ambiguous word stands between asterisks."""
    start = sentence.index("*")
    if sentence.count("*") != 2 or not sentence[start + 1 :].startswith(f"{word}*"):
        raise ValueError(f"a probe marks its word as *{word}*, got: {sentence}")
    tokens = tokenize(sentence.replace("*", ""))
    for index, (form, offset) in enumerate(tokens):
        if (form, offset) == (word, start):
            return Probe(
                tokens=tuple(form for form, _ in tokens), index=index, word=word, sense=sense
            )
    raise ValueError(f"{word!r} is not a token of its own in: {sentence} -> {tokens}")


def compose(source: Iterable[str], language: str, tokenize: Tokenize) -> DemoText:
    """Read a source and compose its text; a probe is taken out of the training text.

    Raises:
        ValueError: if a sentence has an ambiguous word that its heading does not announce, or lacks
            the one that it does.
    """
    num_draws = 0
    lines = [unicodedata.normalize("NFC", line.strip()) for line in source]
    words = {line.split()[1] for line in lines if line.startswith("== ")} - {"general", "probe"}
    macros: dict[str, str] = {}
    text, heading = DemoText(), ""
    for line in lines:
        if not line or line.startswith("#"):
            continue
        if line.startswith("@"):
            name, _, choices = line[1:].partition("=")
            macros[name.strip()] = "|".join(choice.strip() for choice in choices.split("|"))
        elif line.startswith("== "):
            heading = line[3:]
            if not heading.startswith("probe "):
                heading, _, draws = heading.rpartition(" ")
                num_draws = int(draws)
        elif heading.startswith("probe "):
            _, word, sense = heading.split()
            text.probes.append(make_probe(finish(line, language), word, sense, tokenize))
        else:
            allowed = set(heading.split()[:1])
            for sentence in expand(line, macros, num_draws):
                tokens = tuple(form for form, _ in tokenize(finish(sentence, language)))
                if heading != "general" and language == "en":
                    found = {token.lower() for token in tokens} & words
                else:
                    found = set(tokens) & words
                if found != allowed - {"general"}:
                    raise ValueError(f"under `{heading}` found {sorted(found)}: {' '.join(tokens)}")
                text.sentences.setdefault(tokens, heading)
    for probe in text.probes:
        text.sentences.pop(probe.tokens, None)
    return text


def load_source(language: str) -> DemoText:
    """Compose the text of one language from its source in ``benchmarks/demo_text``."""
    tokenize = kiwi_tokenizer() if language == "ko" else split_on_spaces
    with (SOURCE_DIR / f"{language}.txt").open(encoding="utf-8") as source:
        return compose(source, language, tokenize)


def main() -> int:
    """Write the files, or with ``--check`` compare them."""
    parser = argparse.ArgumentParser(description="Compose the text of `elmokit demo`.")
    parser.add_argument("languages", nargs="*", default=LANGUAGES, metavar="en|ko")
    parser.add_argument("--check", action="store_true", help="compare with the shipped files only")
    arguments = parser.parse_args()
    differing = 0
    for language in arguments.languages:
        text = load_source(language)
        outputs = {
            OUTPUT_DIR / f"{language}.txt": text.training_lines(),
            OUTPUT_DIR / f"{language}.probe.tsv": text.probe_lines(),
        }
        for path, lines in outputs.items():
            content = "".join(f"{line}\n" for line in lines)
            if not arguments.check:
                path.write_text(content, encoding="utf-8")
            elif path.read_text(encoding="utf-8") != content:
                print(f"{path} differs from its source")
                differing += 1
        num_tokens = sum(map(len, text.sentences))
        sizes = f"{len(text.sentences)} sentences, {num_tokens} tokens, {len(text.probes)} probes"
        print(f"{language}: {sizes}")
        for (word, sense), count in text.sense_counts().items():
            print(f"  {word:8} {sense:8} {count}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
