"""Lines of raw text to sentences of words, by one process or several."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from elmokit.files.text_reader import ReadReport
from elmokit.text import worker_processes
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import Tokenizer, normalized_sentences
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.worker_processes import ONE_PROCESS, Workers, blocks_of_lines


def tokenize_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    workers: Workers = ONE_PROCESS,
) -> Iterator[list[str]]:
    """Yield and count the non-empty sentences of normalized lines; reads slightly ahead."""
    for sentences in sentences_of_lines(lines, tokenizer, normalization, report, workers=workers):
        yield from sentences


def sentences_of_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    workers: Workers = ONE_PROCESS,
) -> Iterator[list[list[str]]]:
    if workers.count > 1:
        config = TokenizerConfig(name=tokenizer.name, version=tokenizer.version)
        make = partial(_BlockTokenizer, config, normalization)
        blocks = blocks_of_lines(lines, worker_processes.BLOCK_CHARACTERS)
        sentences_by_line = chain.from_iterable(workers.map(make, blocks))
    else:
        sentences_by_line = normalized_sentences(tokenizer, lines, normalization)
    for sentences in sentences_by_line:
        if not all(sentences):
            report.skipped["empty_sentence"] += sentences.count([])
            sentences = [sentence for sentence in sentences if sentence]
        report.sentences += len(sentences)
        report.words += sum(map(len, sentences))
        yield sentences


class _BlockTokenizer:
    def __init__(self, tokenizer: TokenizerConfig, normalization: Normalization) -> None:
        self._tokenizer = build_tokenizer(tokenizer)
        self._normalization: Normalization = normalization

    def __call__(self, lines: list[str]) -> list[list[list[str]]]:
        return list(normalized_sentences(self._tokenizer, lines, self._normalization))
