"""elmokit models in Hugging Face transformers (extra ``transformers``).

A folder written by ``save_pretrained`` holds config, weights, tokenizer settings and one file of
code, ``elmokit_model.py``, that imports the classes from here. It loads with
``trust_remote_code=True``; after ``import elmokit.integrations.transformers``, which registers the
classes, without.
"""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.bilm.config import BiLMConfig, Direction, SoftmaxConfig
from elmokit.bilm.masking import mask_of
from elmokit.config import from_dict, to_dict
from elmokit.errors import FormatError, needs_extra
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.inference.elmo import PackedWeights, run_frozen
from elmokit.inference.layers_and_states import StartState
from elmokit.integrations.shared import AnyModel
from elmokit.integrations.transformers_tokenizer import ElmoTokenizer, OwnCode, convertible
from elmokit.integrations.transformers_words import NUM_BYTES, ElmoWordTokenizer, read_words
from elmokit.shapes import Float, Int
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.model_files import SPELLING_NAME, VOCAB_NAME

with needs_extra("transformers", module="transformers"):
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
        AutoTokenizer,
        GenerationMixin,
        PreTrainedConfig,
        PreTrainedModel,
    )
    from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput
    from transformers.utils.hub import cached_file

__all__ = [
    "ElmoCausalLMConfig",
    "ElmoConfig",
    "ElmoForCausalLM",
    "ElmoModel",
    "ElmoTokenizer",
    "ElmoWordTokenizer",
]

_NEVER = float(np.finfo(np.float32).min)
"""Logit of what cannot follow."""
_EXACT: dict[str, Any] = {"precision": "fp32", "unknown": "spelled"}


class ElmoConfig(OwnCode, PreTrainedConfig):
    """Shape and text processing of an `ElmoModel`, as plain dictionaries.

    Args:
        bilm: `BiLMConfig`; default: the original's shape.
        tokenizer: `TokenizerConfig` of the training text.
        warm_text: Neutral text of the model's warm state.
        training: Metadata of the training.
        kwargs: Those of transformers.
    """

    model_type = "elmo"

    def __init__(
        self,
        *,
        bilm: dict[str, Any] | None = None,
        tokenizer: dict[str, Any] | None = None,
        warm_text: Sequence[str] = (),
        training: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs["auto_map"] = {
            "AutoConfig": self.path_in_code(), "AutoModel": ElmoModel.path_in_code(),
        }  # fmt: skip
        self.bilm = to_dict(from_dict(BiLMConfig, bilm or {}, source="the configuration's `bilm`"))
        self.tokenizer, self.warm_text = tokenizer, list(warm_text)
        super().__init__(**kwargs)
        self.training = training
        self.hidden_size = 2 * self.bilm["lstm"]["projection_dim"]
        self.num_hidden_layers = self.bilm["lstm"]["num_layers"]

    @classmethod
    def of(cls, source: PretrainedBiLM, **settings: Any) -> Any:
        """Return the configuration of an elmokit model."""
        return cls(
            bilm=to_dict(source.config), tokenizer=to_dict(source.tokenizer),
            training=source.training_metadata, warm_text=source.warm_text, **settings,
        )  # fmt: skip


class _ElmoPreTrainedModel(OwnCode, PreTrainedModel):
    """A model whose folder must hold all weights, and lists of words beside them."""

    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"

    def __init__(self, config: ElmoConfig, **parts: Any) -> None:
        super().__init__(config)  # pyright: ignore[reportCallIssue]
        self.bilm = PretrainedBiLM(
            from_dict(BiLMConfig, config.bilm or {}, source="the configuration's `bilm`"),
            tokenizer=from_dict(
                TokenizerConfig, config.tokenizer or {}, source="the configuration's `tokenizer`"
            ),
            warm_text=config.warm_text, training=config.training,
            initialize=torch.get_default_device().type != "meta", **parts,
        )  # fmt: skip
        self.post_init()

    @classmethod
    def from_pretrained(
        cls, path: Any, *arguments: Any, output_loading_info: bool = False, **options: Any
    ) -> Any:
        """Load a folder or hub repository; the arguments are those of transformers."""
        options["output_loading_info"] = True
        model, info = cast(Any, super().from_pretrained(path, *arguments, **options))
        if missing := sorted(info["missing_keys"]):  # which transformers would draw at random
            raise FormatError(f"{path}: weight `{missing[0]}` is missing. Copy the folder again.")
        model.read_lists(path)
        return (model, info) if output_loading_info else model

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the weights as the biLM drew them, or as they were loaded."""


class ElmoModel(_ElmoPreTrainedModel):
    """A biLM as a transformers model: layers of words, with gradients unless they are off.

    Without gradients, in fp32 on the CPU, it runs through the compiled kernels and equals
    `elmokit.Embedder`; positions of ``<S>`` and ``</S>`` come with the words. The softmax of
    pre-training is not part of it. ``model.bilm`` is a `PretrainedBiLM`, which can be saved as a
    model directory.
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self._packed = PackedWeights()

    def read_lists(self, path: Any) -> None:
        """Read the vocabulary of a word-input model, if a tokenizer has one beside it."""
        if self.bilm.config.char_cnn is None and (vocab := Path(path) / VOCAB_NAME).is_file():
            self.bilm.word_vocab = WordVocab.read(vocab, advice=COPY_AGAIN)

    @classmethod
    def from_elmokit(cls, model: AnyModel = None) -> "ElmoModel":
        """Return a model with the weights of an elmokit model, its directory or name."""
        source = convertible(model)
        built = cls(ElmoConfig.of(source))
        built.bilm.word_vocab = source.word_vocab if source.config.char_cnn is None else None
        built.bilm.load_state_dict(source.encoder().state_dict())
        return built.eval()

    def forward(
        self,
        input_ids: Int[Tensor, "B T C"] | Int[Tensor, "B T"],
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Return the top layer (B, T, 2D) and, on request, all L layers.

        Args:
            input_ids: What `ElmoTokenizer` makes, with boundaries; padding at the end.
            attention_mask: Positions to leave out; (B, T), zeros at the end of rows.
            output_hidden_states: Whether ``hidden_states`` holds all layers, the token layer first.
            return_dict: As everywhere in transformers.
        """
        self.bilm.check_inputs(input_ids)
        if attention_mask is not None:
            keep = attention_mask.bool().to(input_ids.device)
            input_ids = input_ids * (keep.unsqueeze(2) if input_ids.dim() == 3 else keep)
        layers = self._layers(input_ids) * mask_of(input_ids).unsqueeze(2)  # (L, B, T, 2D)
        wanted = output_hidden_states
        wanted = self.config.output_hidden_states if wanted is None else wanted
        output = BaseModelOutput(
            last_hidden_state=layers[-1],  # pyright: ignore[reportArgumentType]
            hidden_states=tuple(layers) if wanted else None,  # pyright: ignore[reportArgumentType]
        )
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def _layers(self, ids: Tensor) -> Float[Tensor, "L B T E2"]:
        # kernels give no gradients, and dropout would be lost with them
        learns = torch.is_grad_enabled() and any(w.requires_grad for w in self.bilm.parameters())
        frozen = None if learns or self.training else self._packed.of(self.bilm)
        return (self.bilm(ids) if frozen is None else run_frozen(frozen, ids)).layers


class ElmoCausalLMConfig(ElmoConfig):
    """Configuration of an `ElmoForCausalLM`.

    Args:
        softmax: `SoftmaxConfig`.
        num_words: V, the words of the vocabulary.
        direction: Which of the two language models: ``forward`` or ``backward``.
        start: What a sentence starts from: ``warm`` or ``reset``, as in `elmokit.perplexity`.
        kwargs: Those of `ElmoConfig`.
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
        kwargs["vocab_size"] = 1 + num_words + NUM_BYTES
        super().__init__(**kwargs)
        del self.auto_map["AutoModel"]
        self.auto_map["AutoModelForCausalLM"] = ElmoForCausalLM.path_in_code()


class ElmoForCausalLM(_ElmoPreTrainedModel, GenerationMixin):
    """A direction of a biLM that predicts the next token, for programs that score text.

    Tokens are those of `ElmoWordTokenizer`. The backward direction reads and predicts sentences
    from their end: its tokenizer turns them round, and they begin with ``</S>``. Logits are exact
    log-probabilities, equal to those of `elmokit.surprisal` with spelled unknown words; they have
    no gradients (`elmokit finetune` trains).
    """

    config_class = ElmoCausalLMConfig

    def __init__(self, config: ElmoCausalLMConfig) -> None:
        softmax = from_dict(
            SoftmaxConfig, config.softmax or {}, source="the configuration's `softmax`"
        )
        super().__init__(config, softmax_config=softmax, num_words=config.num_words)
        self._scorers: dict[str, TextScorer] = {}  # by device
        if self.generation_config is not None:
            self.generation_config.use_cache = False  # the state is computed again for every token

    def read_lists(self, path: Any) -> None:
        """Read the vocabulary and the model of spellings."""
        vocab, spelling = (str(cached_file(path, name)) for name in (VOCAB_NAME, SPELLING_NAME))
        self.bilm.word_vocab = WordVocab.read(vocab, advice=COPY_AGAIN)
        self.bilm.spelling = SpellingModel.read(Path(spelling))

    @classmethod
    def from_elmokit(
        cls, model: AnyModel = None, *, direction: Direction = "forward", start: StartState = "warm"
    ) -> "ElmoForCausalLM":
        """Return a direction of an elmokit model with softmax and spellings."""
        source = convertible(model)
        vocab = TextScorer(source, state=start, **_EXACT).vocab
        bounds = [vocab.sentence_begin_id, vocab.sentence_end_id]
        begin, end = bounds if direction == "forward" else reversed(bounds)
        built = cls(ElmoCausalLMConfig.of(
            source, softmax=to_dict(source.softmax_config), num_words=len(vocab),
            direction=direction, start=start, bos_token_id=begin, eos_token_id=end, pad_token_id=0,
        ))  # fmt: skip
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
            loss = self.loss_function(logits, labels, vocab_size=self.config.vocab_size)
        output = CausalLMOutput(loss=loss, logits=logits)  # pyright: ignore[reportArgumentType]
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def _logits(self, ids: np.ndarray, keep: np.ndarray) -> Float[np.ndarray, "B T X"]:
        device, direction = str(self.device), self.config.direction
        if device not in self._scorers:
            self._scorers[device] = TextScorer(self.bilm, state=self.config.start, **_EXACT)
        scorer = self._scorers[device]
        vocab, spelling = scorer.vocab, scorer.spelling
        assert spelling is not None
        table = np.zeros((ids.size, 1 + len(vocab) + NUM_BYTES), np.float32)  # (B T, X)
        table[keep.ravel()] = _NEVER
        words: list[list[str]] = []
        ends: list[np.ndarray] = []  # rows of the table
        for row, kept, rows in zip(ids, keep, np.arange(ids.size).reshape(ids.shape), strict=True):
            read, own_ends, prefixes = read_words(row[kept].tolist(), vocab)
            rows = rows[kept]
            if read:
                words.append(read)
                ends.append(rows[own_ends])
            if prefixes:
                probs = spelling.next_probs(list(prefixes.values()), vocab)
                with np.errstate(divide="ignore"):
                    log_probs = np.maximum(np.log(probs), _NEVER)
                table[rows[list(prefixes)], 1 + len(vocab) :] = log_probs
        if words:
            # the engine reads sentences from their end in that direction
            step = 1 if direction == "forward" else -1
            at = np.zeros((len(ends), max(map(len, ends))), np.int64)
            for row, own_ends in zip(at, ends, strict=True):
                row[: len(own_ends)] = own_ends[::step]

            def fill(outputs: np.ndarray, sentence: np.ndarray, position: np.ndarray) -> None:
                table[at[sentence, position], 1 : 1 + len(vocab)] = scorer.scores.log_probs(outputs)

            vectors, tokens = scorer.bilm.encode(words)
            sentences = [sentence[1:-1][::step] for sentence in tokens.sentences]
            state = scorer.start.repeated(len(sentences)).direction(direction)
            scorer.bilm.engine.read(direction, vectors, sentences, state, on_top=fill)
        return table.reshape(*ids.shape, -1)


AutoConfig.register(ElmoConfig.model_type, ElmoConfig, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
AutoConfig.register(ElmoCausalLMConfig.model_type, ElmoCausalLMConfig, exist_ok=True)
AutoModelForCausalLM.register(ElmoCausalLMConfig, ElmoForCausalLM, exist_ok=True)
AutoTokenizer.register(ElmoCausalLMConfig, tokenizer_class=ElmoWordTokenizer, exist_ok=True)
