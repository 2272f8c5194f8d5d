"""Words as the tokens of a causal language model, for transformers (extra ``transformers``).

A word outside the vocabulary is ``<UNK>``, the bytes of its spelling and ``</w>``, so that programs
which add up log-probabilities of tokens get those of whole words, and the network still reads every
word by its characters. Ids: 0 is padding, 1 to V the vocabulary, then the 256 bytes.
"""

# pyright: reportMissingImports=false

from itertools import chain
from typing import Any

from elmokit.bilm.config import Direction
from elmokit.config import to_dict
from elmokit.errors import InputError
from elmokit.files.temporary import scratch_directory
from elmokit.integrations.shared import AnyModel, needs_extra
from elmokit.integrations.transformers_tokenizer import PAD, OwnTokenizer, convertible
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.text.spelling import END_OF_WORD
from elmokit.text.word_vocab import COPY_AGAIN, UNKNOWN_WORD, WordVocab
from elmokit.weights.model_files import VOCAB_NAME

with needs_extra("transformers", module="transformers"):
    from transformers import BatchEncoding

NUM_BYTES = 256
_BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(NUM_BYTES)]
_BYTE_TOKENS[END_OF_WORD] = "</w>"
_BYTES = {token: byte for byte, token in enumerate(_BYTE_TOKENS)}


class ElmoWordTokenizer(OwnTokenizer):
    """Text to the tokens of an `ElmoForCausalLM`; boundaries are added where the text has none.

    Args:
        vocab_file: ``vocab.txt``.
        tokenizer: `TokenizerConfig` of the training text.
        normalization: Its normalization profile.
        direction: ``backward`` turns sentences round.
    """

    def __init__(
        self,
        vocab_file: str,
        tokenizer: dict[str, Any] | None = None,
        normalization: Normalization = DEFAULT_NORMALIZATION,
        direction: Direction = "forward",
        **kwargs: Any,
    ) -> None:
        kwargs.pop("auto_map", None)
        self._words = WordVocab.read(vocab_file, advice=COPY_AGAIN)
        splitter = self._set_splitter(tokenizer, normalization)
        self._is_forward = direction == "forward"
        bounds = (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD)
        kwargs["bos_token"], kwargs["eos_token"] = bounds if self._is_forward else bounds[::-1]
        kwargs |= {"unk_token": UNKNOWN_WORD, "pad_token": PAD, "tokenizer": splitter}
        super().__init__(normalization=normalization, direction=direction, **kwargs)

    @classmethod
    def from_elmokit(
        cls, model: AnyModel = None, *, direction: Direction = "forward"
    ) -> "ElmoWordTokenizer":
        """Return the tokenizer of an elmokit model, its directory or name."""
        source = convertible(model)
        if source.word_vocab is None:
            raise InputError("This model has no vocabulary, so it predicts no words.")
        with scratch_directory("vocab") as scratch:  # transformers gives files, not words
            source.word_vocab.write(scratch / VOCAB_NAME)
            return cls(
                str(scratch / VOCAB_NAME), to_dict(source.tokenizer),
                source.config.char_vocab.normalization, direction,
            )  # fmt: skip

    @property
    def vocab_size(self) -> int:
        return 1 + len(self._words) + NUM_BYTES

    def get_vocab(self) -> dict[str, int]:
        tokens = (PAD, *self._words.words, *_BYTE_TOKENS)
        return {token: number for number, token in enumerate(tokens)}

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        tokens: list[str] = []
        words = self._splitter.tokenize(text)
        for word in words if self._is_forward else reversed(words):
            if word in self._words:
                tokens.append(word)
            else:
                spelling = (*word.encode("utf-8", "surrogatepass"), END_OF_WORD)
                tokens += [UNKNOWN_WORD, *(_BYTE_TOKENS[byte] for byte in spelling)]
        return tokens

    def _convert_token_to_id(self, token: str) -> int:
        if token == PAD:
            return 0
        if token in self._words:
            return self._words.word_id(token)
        return 1 + len(self._words) + _BYTES[token]

    def _convert_id_to_token(self, index: int) -> str:
        if index == 0:
            return PAD
        byte = index - 1 - len(self._words)
        return self._words.words[index - 1] if byte < 0 else _BYTE_TOKENS[byte]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        words = [word for word, _ in _whole_words(tokens)]
        return " ".join(words if self._is_forward else reversed(words))

    def _encode_plus(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, text: Any, *args: Any, return_offsets_mapping: bool = False, **options: Any
    ) -> BatchEncoding:
        if not return_offsets_mapping:
            return super()._encode_plus(text, *args, **options)
        tensors = options.pop("return_tensors", None)  # offsets are those of lists of ids
        encoded = super()._encode_plus(text, *args, **options)
        is_single = isinstance(text, str)
        if is_single:
            encoded["offset_mapping"] = self._offsets(text, encoded["input_ids"])
        else:
            rows = zip(text, encoded["input_ids"], strict=True)
            encoded["offset_mapping"] = [self._offsets(one, ids) for one, ids in rows]
        return encoded.convert_to_tensors(tensors, prepend_batch_axis=is_single)

    def _offsets(self, text: str, ids: Any) -> list[tuple[int, int]]:
        """Return ``[start, end)`` of the word of each token; (0, 0) of what is not in the text."""
        tokens = self.tokenize(text)
        words = _whole_words(tokens)
        if not self._is_forward:
            words.reverse()
        offsets = self._places([word for word, _ in words], text)
        spans = [[span] * count for (_, count), span in zip(words, offsets, strict=True)]
        ordered = chain.from_iterable(spans if self._is_forward else reversed(spans))
        # from the end that truncation keeps
        step = -1 if self.truncation_side == "left" else 1
        pending = list(zip(map(self._convert_token_to_id, tokens), ordered, strict=True))[::-step]
        return [
            pending.pop()[1] if pending and pending[-1][0] == number else (0, 0)
            for number in ids[::step]
        ][::step]

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Add the sentence's boundaries that the text does not have itself."""
        ids = [*token_ids_0, *(token_ids_1 or ())]
        begin, end = (
            self._convert_token_to_id(str(self.bos_token)),
            self._convert_token_to_id(str(self.eos_token)),
        )
        if ids[:1] != [begin]:
            ids.insert(0, begin)
        return ids if ids[-1] == end else [*ids, end]


def _whole_words(tokens: list[str]) -> list[tuple[str, int]]:
    """Put the bytes of spelled words together; return each word and how many tokens it has."""
    words: list[tuple[str, bytearray, int]] = []
    for token in tokens:
        if token in _BYTES and words and words[-1][0] == UNKNOWN_WORD:
            _, spelling, count = words.pop()
            if token != _BYTE_TOKENS[END_OF_WORD]:
                spelling.append(_BYTES[token])
            words.append((UNKNOWN_WORD, spelling, count + 1))
        else:
            words.append((token, bytearray(), 1))
    return [(spelling.decode("utf-8", "replace") or word, n) for word, spelling, n in words]
