"""One direction of a biLM as a causal language model of transformers (extra ``transformers``).

Tokens are those of `elmokit.integrations.transformers_words`. The backward direction reads and
predicts sentences from their end: its tokenizer turns them round, and they begin with ``</S>``.
"""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.bilm.config import Direction, SoftmaxConfig
from elmokit.config import from_dict, to_dict
from elmokit.errors import InputError
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.inference.results import StartState
from elmokit.integrations.shared import AnyModel, needs_extra
from elmokit.integrations.transformers_tokenizer import OwnWeights, SavedConfig, convertible
from elmokit.integrations.transformers_words import NUM_BYTES
from elmokit.shapes import Float, Int
from elmokit.text.spelling import END_OF_WORD, SpellingModel
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
from elmokit.weights.model_files import SPELLING_NAME, VOCAB_NAME

with needs_extra("transformers", module="transformers"):
    from transformers import GenerationMixin, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput
    from transformers.utils.hub import cached_file

_NEVER = float(np.finfo(np.float32).min)
"""Logit of what cannot follow."""


class ElmoCausalLMConfig(SavedConfig):
    """Configuration of an `ElmoForCausalLM`.

    Args:
        softmax: `SoftmaxConfig`.
        num_words: V, the words of the vocabulary.
        direction: Which of the two language models: ``forward`` or ``backward``.
        start: What a sentence starts from: ``warm`` or ``reset``, as in `elmokit.perplexity`.
        kwargs: Those of `SavedConfig`.
    """

    model_type = "elmo_causal_lm"

    def __init__(
        self,
        *,
        softmax: dict[str, Any] | None = None,
        num_words: int = 3,
        direction: Direction = "forward",
        start: StartState = "warm",
        **kwargs: Any,
    ) -> None:
        self.softmax, self.num_words = softmax, num_words
        self.direction, self.start = direction, start
        kwargs["auto_map"] = {
            "AutoConfig": self.path_in_code(),
            "AutoModelForCausalLM": ElmoForCausalLM.path_in_code(),
        }
        kwargs["vocab_size"] = 1 + num_words + NUM_BYTES
        super().__init__(**kwargs)


class ElmoForCausalLM(OwnWeights, PreTrainedModel, GenerationMixin):
    """A direction of a biLM that predicts the next token, for programs that score text.

    Logits are exact log-probabilities, equal to those of `elmokit.surprisal` with spelled unknown
    words; they have no gradients (`elmokit finetune` trains).
    """

    config_class = ElmoCausalLMConfig

    def __init__(self, config: ElmoCausalLMConfig) -> None:
        super().__init__(config)  # pyright: ignore[reportCallIssue]
        softmax = from_dict(
            SoftmaxConfig, config.softmax or {}, source="the configuration's `softmax`"
        )
        self.bilm = config.modules(softmax_config=softmax, num_words=config.num_words)
        self._scorer: tuple[torch.device, TextScorer] | None = None
        self.post_init()
        if self.generation_config is not None:
            self.generation_config.use_cache = False  # the state is computed again for every token

    def read_lists(self, path: Any) -> None:
        vocab_path, spelling_path = (
            cached_file(path, name) for name in (VOCAB_NAME, SPELLING_NAME)
        )
        self.bilm.word_vocab = WordVocab.read(str(vocab_path), advice=COPY_AGAIN)
        self.bilm.spelling = SpellingModel.read(Path(str(spelling_path)))

    @classmethod
    def from_elmokit(
        cls,
        model: AnyModel = None,
        *,
        direction: Direction = "forward",
        start: StartState = "warm",
    ) -> "ElmoForCausalLM":
        """Return a direction of an elmokit model with softmax and spellings."""
        source = convertible(model)
        scorer = TextScorer(source, state=start, precision="fp32", unknown="spelled")
        assert source.softmax_config is not None
        bounds = (scorer.vocab.sentence_begin_id, scorer.vocab.sentence_end_id)
        begin, end = bounds if direction == "forward" else bounds[::-1]
        built = cls(
            ElmoCausalLMConfig(
                bos_token_id=begin, eos_token_id=end, pad_token_id=0,
                bilm=to_dict(source.config), softmax=to_dict(source.softmax_config),
                num_words=len(scorer.vocab), tokenizer=to_dict(source.tokenizer),
                warm_text=source.warm_text, direction=direction, start=start,
            )
        )  # fmt: skip
        built.bilm.word_vocab, built.bilm.spelling = source.word_vocab, source.spelling
        built.bilm.load_state_dict(source.state_dict())
        return built.eval()

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        for part, name in ((self.bilm.word_vocab, VOCAB_NAME), (self.bilm.spelling, SPELLING_NAME)):
            assert part is not None
            part.write(Path(save_directory) / name)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> CausalLMOutput | tuple[Any, ...]:
        """Return log-probabilities (B, T, 1 + V + 256) of the token after each; 0 at padding.

        Args:
            input_ids: What `ElmoWordTokenizer` makes, from any token on.
            attention_mask: Positions to leave out, at the ends of rows; by default those with id 0.
            labels: ``input_ids``, with -100 where nothing is to be predicted; adds ``loss``.
            return_dict: As everywhere in transformers.
        """
        ids = input_ids.cpu().numpy()
        keep = ids > 0 if attention_mask is None else (attention_mask.cpu().numpy() > 0) & (ids > 0)
        logits = torch.from_numpy(self._logits(ids, keep)).to(input_ids.device)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100
            )
        output = CausalLMOutput(loss=loss, logits=logits)  # pyright: ignore[reportArgumentType]
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def _logits(self, ids: np.ndarray, keep: np.ndarray) -> Float[np.ndarray, "B T X"]:
        scorer, direction = self._text_scorer(), self.config.direction
        vocab, spelling = scorer.vocab, scorer.spelling
        assert spelling is not None
        logits = np.zeros((*ids.shape, 1 + len(vocab) + NUM_BYTES), np.float32)
        logits[keep] = _NEVER
        words: list[list[str]] = []
        ends: list[tuple[int, np.ndarray]] = []
        for number, (row, kept) in enumerate(zip(ids, keep, strict=True)):
            places = np.flatnonzero(kept)
            read, own_ends, prefixes = _read_tokens(row[places].tolist(), vocab)
            if read:
                words.append(read)
                ends.append((number, places[own_ends]))
            if prefixes:
                probs = spelling.next_probs([prefix for _, prefix in prefixes], vocab)
                spelled = places[[place for place, _ in prefixes]]
                possible = np.log(np.maximum(probs, np.finfo(np.float32).tiny))
                logits[number, spelled, 1 + len(vocab) :] = np.where(probs > 0, possible, _NEVER)
        if not words:
            return logits
        vectors, tokens = scorer.bilm.encode(words)
        sentences = [sentence[1:-1] for sentence in tokens.sentences]  # boundaries are tokens here
        is_forward = direction == "forward"
        sentences = [sentence[:: 1 if is_forward else -1] for sentence in sentences]

        def fill(outputs: np.ndarray, sentence: np.ndarray, position: np.ndarray) -> None:
            log_probs = scorer.scores.log_probs(outputs)
            places = zip(
                np.broadcast_to(sentence, len(outputs)), np.broadcast_to(position, len(outputs)),
                strict=True,
            )  # fmt: skip
            for found, (row, place) in zip(log_probs, places, strict=True):
                number, own_ends = ends[row]
                end = own_ends[place if is_forward else len(own_ends) - 1 - place]
                logits[number, end, 1 : 1 + len(vocab)] = found

        state = scorer.start.repeated(len(sentences)).direction(direction)
        scorer.bilm.engine.read(direction, vectors, sentences, state, on_top=fill)
        return logits

    def _text_scorer(self) -> TextScorer:
        device = self.device
        if self._scorer is None or self._scorer[0] != device:
            scorer = TextScorer(
                self.bilm, state=self.config.start, precision="fp32", unknown="spelled",
                device=str(device),
            )  # fmt: skip
            self._scorer = device, scorer
        return self._scorer[1]


def _read_tokens(
    ids: list[int], vocab: WordVocab
) -> tuple[list[str], list[int], list[tuple[int, bytes]]]:
    """Return the words of a row, the index at which each is complete, and unfinished spellings.

    Those are indices after which a byte comes, and the bytes so far.
    """
    words: list[str] = []
    ends: list[int] = []
    prefixes: list[tuple[int, bytes]] = []
    prefix: bytes | None = None
    for place, token in enumerate(ids):
        byte = token - 1 - len(vocab)
        if not 0 <= token <= len(vocab) + NUM_BYTES or (byte >= 0) != (prefix is not None):
            raise InputError(
                f"Token {token} at {place} is no word of the vocabulary, or a byte that is not "
                "between <UNK> and </w>. Encode text with ElmoWordTokenizer."
            )
        if prefix is not None and byte == END_OF_WORD:
            words.append(prefix.decode("utf-8", "replace"))
            prefix = None
        elif prefix is not None:
            prefix += bytes([byte])
        elif token == vocab.unknown_id:
            prefix = b""
        else:
            words.append(vocab.words[token - 1])
        if prefix is None:
            ends.append(place)
        else:
            prefixes.append((place, prefix))
    return words, ends, prefixes
