"""Shards of raw text: made in one streamed pass, found again if files and settings are the same."""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from elmokit.corpus.hold_out import HoldOut
from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.corpus.shards import MANIFEST_NAME, ShardSet, write_shards
from elmokit.errors import ConfigError
from elmokit.files.changes import describe_files
from elmokit.files.sources import find_files
from elmokit.text.char_vocab import Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

log = logging.getLogger(__name__)

SHARDS, VALID = "shards", "valid"
NUM_HELD_OUT = "num_held_out"
"""In the manifests, where a part of the corpus went to `VALID`: how many sentences."""
SENTENCES_AN_EVENT = 500
"""How often the preparation says how far it is."""


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How raw text becomes sentences."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(name="simple"))
    """Splits text into sentences and words; stored in the model."""
    tokens_per_shard: int = 250_000
    """Words in one shard file; a shard is what is in memory at a time."""
    valid_sentences: int = 2000
    """Sentences held out where no validation text is given; about a fiftieth at most."""


@dataclass(frozen=True)
class Preparation:
    """How far the preparation of a text is."""

    stage: Literal["tokenizing", "counting words"]
    sentences: int
    """Done in this stage."""
    words: int
    """Done in this stage."""
    total_words: int | None
    """What ``words`` will be at its end, where that is known."""


OnPreparation = Callable[[Preparation], object]


class ShardMaker:
    """Makes shards of text files, and finds those that are of the same files and settings."""

    def __init__(
        self, text: TextConfig, normalization: Normalization, on_preparation: OnPreparation | None
    ) -> None:
        self.text = text
        self.normalization: Normalization = normalization
        self.on_preparation = on_preparation
        self._sources: dict[tuple[Path, ...], list[dict[str, Any]]] = {}

    @classmethod
    def like(
        cls,
        shards: ShardSet,
        text: TextConfig,
        normalization: Normalization,
        on_preparation: OnPreparation | None,
    ) -> "ShardMaker":
        """Return a maker that goes on as finished shards were made."""
        facts = shards.metadata.get("tokenizer")
        tokenizer = text.tokenizer if facts is None else TokenizerConfig(**facts)
        if text.tokenizer.name not in (tokenizer.name, TextConfig().tokenizer.name):
            raise ConfigError(
                f"text.tokenizer.name={text.tokenizer.name!r}, but the shards in "
                f"{shards.shard_dir} were made with {tokenizer.name!r}. Leave the tokenizer out, "
                "or give the raw text."
            )
        return cls(
            dataclasses.replace(text, tokenizer=tokenizer),
            shards.metadata.get("normalization", normalization),
            on_preparation,
        )

    def find(
        self, target: Path, paths: Sequence[Path], *, hold_out: bool = False
    ) -> ShardSet | None:
        """Open finished shards in ``target`` if they are what would be made again."""
        if not (target / MANIFEST_NAME).exists():
            return None
        shards = ShardSet.open(target)
        wanted = self._facts(paths, version="")
        found = {
            **shards.metadata,
            "tokenizer": {**shards.metadata.get("tokenizer", {}), "version": ""},
        }
        same = all(found.get(key) == value for key, value in wanted.items())
        return shards if same and (NUM_HELD_OUT in found) == hold_out else None

    def split(
        self, run_dir: Path, paths: Sequence[Path], *, hold_out: bool
    ) -> tuple[ShardSet, ShardSet | None]:
        """Find or write the training shards and, of the same pass, the held-out sentences."""
        shards = self.find(run_dir / SHARDS, paths, hold_out=hold_out)
        if shards is not None:
            if not shards.metadata.get(NUM_HELD_OUT):
                return shards, None
            held_out = self.find(run_dir / VALID, paths, hold_out=True)
            if held_out is not None:
                return shards, held_out
        holder = HoldOut(share=0.02, max_sentences=self.text.valid_sentences)
        shards = self.write(run_dir / SHARDS, paths, holder=holder if hold_out else None)
        if not hold_out:
            return shards, None
        if not holder.sentences:
            log.warning("the corpus is too small to hold anything out: there will be no validation")
            return shards, None
        return shards, _write_anew(holder.sentences, run_dir / VALID, self.text, shards.metadata)

    def write(
        self, target: Path, paths: Sequence[Path], *, holder: HoldOut | None = None
    ) -> ShardSet:
        """Write shards of text files, but for what ``holder`` holds out."""
        report = ReadReport()
        tokenizer = build_tokenizer(self.text.tokenizer)
        metadata = self._facts(paths, version=tokenizer.version)
        read = read_sentences(
            list(paths), tokenizer, normalization=self.normalization, report=report
        )
        sentences = watched(read, "tokenizing", self.on_preparation)

        def kept(holder: HoldOut) -> Iterator[list[str]]:
            yield from holder.split(sentences)
            metadata[NUM_HELD_OUT] = len(holder.sentences)  # the manifest is written after this

        shards = _write_anew(
            sentences if holder is None else kept(holder), target, self.text, metadata
        )
        log.info(
            "%d lines read, %d sentences, %d words in %d shards",
            report.lines, report.sentences, report.words, len(shards),
        )  # fmt: skip
        return shards

    def _facts(self, paths: Sequence[Path], *, version: str) -> dict[str, Any]:
        key = tuple(paths)
        if key not in self._sources:  # each file is read once for its hash
            self._sources[key] = describe_files(find_files(list(paths)))
        return {
            "tokenizer": {"name": self.text.tokenizer.name, "version": version},
            "normalization": self.normalization,
            "settings": {
                key: value
                for key, value in dataclasses.asdict(self.text).items()
                if key != "tokenizer"
            },
            "sources": self._sources[key],
        }


def _write_anew(
    sentences: Iterable[list[str]], target: Path, text: TextConfig, metadata: Mapping[str, Any]
) -> ShardSet:
    """Write shards; those of other text in ``target`` are replaced, other files stay."""
    (target / MANIFEST_NAME).unlink(missing_ok=True)
    return write_shards(
        sentences, target, tokens_per_shard=text.tokens_per_shard, metadata=metadata
    )


def watched(
    sentences: Iterator[list[str]],
    stage: Literal["tokenizing", "counting words"],
    on_preparation: OnPreparation | None,
    *,
    total_words: int | None = None,
) -> Iterator[list[str]]:
    """Yield the sentences, and say now and then how many there were."""
    if on_preparation is None:
        yield from sentences
        return
    number = num_words = 0
    for number, sentence in enumerate(sentences, start=1):
        num_words += len(sentence)
        if number % SENTENCES_AN_EVENT == 0:
            on_preparation(Preparation(stage, number, num_words, total_words))
        yield sentence
    on_preparation(Preparation(stage, number, num_words, total_words))
