"""Words as the tokens of a causal language model, for transformers (extra ``transformers``).

A word outside the vocabulary is ``<UNK>``, the bytes of its spelling and ``</w>``, so that programs
which add up log-probabilities of tokens get those of whole words, and the network still reads every
word by its characters. Ids: 0 is padding, 1 to V the vocabulary, then the 256 bytes.
"""

# pyright: reportMissingImports=false

import re
from collections.abc import Iterable
from typing import Any

from elmokit.bilm.config import Direction
from elmokit.config import to_dict
from elmokit.errors import InputError, needs_extra
from elmokit.integrations.shared import AnyModel
from elmokit.integrations.transformers_tokenizer import PAD, SavedTokenizer, convertible
from elmokit.text.alignment import align
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.text.spelling import END_OF_WORD
from elmokit.text.word_vocab import COPY_AGAIN, UNKNOWN_WORD, WordVocab

with needs_extra("transformers", module="transformers"):
    from transformers import BatchEncoding

NUM_BYTES = 256
_BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(NUM_BYTES)]
_BYTE_TOKENS[END_OF_WORD] = "</w>"


class ElmoWordTokenizer(SavedTokenizer):
    """Text to the tokens of an `ElmoForCausalLM`; boundaries are added where the text has none.

    Args:
        vocab_file: ``vocab.txt``, or the words themselves.
        tokenizer: `TokenizerConfig` of the training text.
        normalization: Its normalization profile.
        direction: ``backward`` turns sentences round.
    """

    def __init__(
        self,
        vocab_file: str | WordVocab,
        tokenizer: dict[str, Any] | None = None,
        normalization: Normalization = DEFAULT_NORMALIZATION,
        direction: Direction = "forward",
        **kwargs: Any,
    ) -> None:
        is_read = isinstance(vocab_file, WordVocab)
        self._words = vocab_file if is_read else WordVocab.read(vocab_file, advice=COPY_AGAIN)
        self._all_tokens = (PAD, *self._words.words, *_BYTE_TOKENS)
        # of equal tokens the first counts: a vocabulary may have one that looks like padding
        self._token_ids = {token: i for i, token in reversed([*enumerate(self._all_tokens)])}
        self._step = 1 if direction == "forward" else -1
        bounds = (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD)[:: self._step]
        kwargs["bos_token"], kwargs["eos_token"], kwargs["unk_token"] = *bounds, UNKNOWN_WORD
        kwargs |= {"normalization": normalization, "direction": direction}
        super().__init__(tokenizer, normalization, **kwargs)

    @classmethod
    def from_elmokit(
        cls, model: AnyModel = None, *, direction: Direction = "forward"
    ) -> "ElmoWordTokenizer":
        """Return the tokenizer of an elmokit model, its directory or name."""
        source = convertible(model)
        if source.word_vocab is None:
            raise InputError("This model has no vocabulary, so it predicts no words.")
        form = source.config.char_vocab.normalization
        return cls(source.word_vocab, to_dict(source.tokenizer), form, direction)

    @property
    def vocab_size(self) -> int:
        return len(self._all_tokens)

    def get_vocab(self) -> dict[str, int]:
        return dict(self._token_ids)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        tokens: list[str] = []
        for word in [*self._splitter.tokenize(text)][:: self._step]:
            if word in self._words:
                tokens.append(word)
            else:
                spelling = (*word.encode("utf-8", "surrogatepass"), END_OF_WORD)
                tokens += [UNKNOWN_WORD, *(_BYTE_TOKENS[byte] for byte in spelling)]
        return tokens

    def _convert_token_to_id(self, token: str) -> int:
        return self._token_ids[token if token in self._token_ids else UNKNOWN_WORD]

    def _convert_id_to_token(self, index: int) -> str:
        return self._all_tokens[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        groups = group_words(map(self._convert_token_to_id, tokens), self._words)
        return " ".join(self._word(*group) for group in groups[:: self._step])

    def _word(self, tokens: list[int], spelling: bytes) -> str:
        return spelling.decode("utf-8", "replace") or self._all_tokens[tokens[0]]

    def _encode_plus(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, text: Any, *args: Any, return_offsets_mapping: bool = False, **options: Any
    ) -> BatchEncoding:
        if not return_offsets_mapping:
            return super()._encode_plus(text, *args, **options)
        if options.get("is_split_into_words"):
            raise InputError("Offsets are those in a text: leave out is_split_into_words.")
        tensors = options.pop("return_tensors", None)  # offsets are those of lists of ids
        encoded = super()._encode_plus(text, *args, **options)
        if is_single := isinstance(text, str):
            encoded["offset_mapping"] = self._offsets(text, encoded["input_ids"])
        else:
            encoded["offset_mapping"] = list(map(self._offsets, text, encoded["input_ids"]))
        return encoded.convert_to_tensors(tensors, prepend_batch_axis=is_single)

    def _offsets(self, text: str, ids: list[int]) -> list[tuple[int, int]]:
        """Return ``[start, end)`` of the word of each token; (0, 0) of what is not in the text."""
        own = list(map(self._convert_token_to_id, self.tokenize(text)))
        groups = group_words(own, self._words)[:: self._step]
        offsets = align([self._word(*group) for group in groups], text)
        if offsets is None:
            raise InputError(f"The tokenizer's words are not in {text!r:.60}: no offsets.")
        words = list(zip(groups, offsets, strict=True))[:: self._step]
        tokens = [(token, span) for (group, _), span in words for token in group]
        # from the end that truncation keeps
        step = -1 if self.truncation_side == "left" else 1
        pending = tokens[::-step]
        return [
            pending.pop()[1] if pending and pending[-1][0] == token else (0, 0)
            for token in ids[::step]
        ][::step]

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Add the sentence's boundaries that the text does not have itself."""
        ids = [*token_ids_0, *(token_ids_1 or ())]
        begin, end = (self._token_ids[str(token)] for token in (self.bos_token, self.eos_token))
        ids = ids if ids[:1] == [begin] else [begin, *ids]
        return ids if ids[-1] == end else [*ids, end]


def group_words(ids: Iterable[int], vocab: WordVocab) -> list[tuple[list[int], bytes]]:
    """Return the tokens of each word, ``<UNK>`` with the bytes after it, and those bytes."""
    ids, first = list(ids), 1 + len(vocab)
    end = first + END_OF_WORD
    kinds = "".join(
        "e" if i == end else "b" if i >= first else "u" if i == vocab.unknown_id else "w"
        for i in ids
    )
    groups = [ids[slice(*match.span())] for match in re.finditer("w|ub*e?|b+e?|e", kinds)]
    return [(group, bytes(i - first for i in group if first <= i < end)) for group in groups]


def read_words(ids: list[int], vocab: WordVocab) -> tuple[list[str], list[int], dict[int, bytes]]:
    """Return the words of a row, the index at which each is complete, and unfinished spellings.

    Those are the bytes so far, by the index after which another comes.
    """
    words: list[str] = []
    ends: list[int] = []
    prefixes: dict[int, bytes] = {}
    place = 0
    for tokens, spelling in group_words(ids, vocab):
        is_spelled = tokens[0] == vocab.unknown_id
        is_complete = not is_spelled or tokens[-1] == 1 + len(vocab) + END_OF_WORD
        # tokens after a spelling must have been bytes, and bytes part of a spelling
        is_last = place + len(tokens) == len(ids)
        num_bytes = len(tokens) - 1 - is_complete if is_spelled else 0
        if tokens[0] > len(vocab) or len(spelling) != num_bytes or not (is_complete or is_last):
            raise InputError(
                f"Tokens {tokens} at {place} are no word: neither one of the vocabulary nor <UNK>, "
                "bytes and </w>. Encode text with ElmoWordTokenizer."
            )
        prefixes |= {place + k: spelling[:k] for k in range(len(tokens) - is_complete)}
        place += len(tokens)
        if is_complete:
            words.append(spelling.decode("utf-8", "replace") or vocab.words[tokens[0] - 1])
            ends.append(place - 1)
    return words, ends, prefixes
