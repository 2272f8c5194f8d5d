"""The arms of the contest: one token layer and one softmax, four ways to read a sentence."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from elmokit.bilm.bilm import BiLM, BiLMState
from elmokit.bilm.masking import reverse_sequences
from elmokit.text.char_vocab import SENTENCE_BEGIN, SENTENCE_END, WORD_END
from elmokit.training.fused.char_cnn import encode_tokens
from elmokit.training.fused.softmax import training_nlls
from elmokit.training.loop import derived_seed
from elmokit.training.pretraining.loss import BiLMLoss, WindowTensors
from elmokit.weights.model_dir import PretrainedBiLM

Sentences = Sequence[Sequence[str]]
SEPARATOR, NUM_CHARACTERS = WORD_END + 1, 262
LONGEST = 128  # words of a window; what stands further on has the place of the last
GUESSED, SHOWN = 0.2, 0.1
"""Share of the words that the masked arm guesses, and of these, that it sees all the same."""


class Nats(NamedTuple):
    """−ln p of the words of a sentence, and in a direction of its end, which comes last."""

    forward: np.ndarray | None = None
    backward: np.ndarray | None = None
    both_sides: np.ndarray | None = None


class Arm(nn.Module):
    """Trains on windows, and gives the words of sentences their layers (L, W, X) and `Nats`."""

    # windows begin with a new sentence, since nothing is carried from one to the next
    rows, steps, restart_share = 40, LONGEST, 1.0
    rate = 0.004
    predicts_words = True  # the next and the one before, so that perplexities can be compared

    def __init__(self, model: PretrainedBiLM, seed: int) -> None:
        super().__init__()
        assert model.softmax is not None
        assert model.word_vocab is not None
        self.token_encoder, self.softmax = model.token_encoder, model.softmax
        self.characters, self.vocab = model.char_vocab, model.word_vocab
        self.dim, self.seed = model.config.lstm.projection_dim, seed

    def loss(self, batch: WindowTensors, step: int) -> Tensor:
        raise NotImplementedError

    def layers(self, sentences: Sentences) -> list[Tensor]:
        raise NotImplementedError

    def nats(self, sentences: Sentences) -> list[Nats]:
        raise NotImplementedError

    def char_ids(self, sentences: Sentences, begin: str, *end: str) -> Tensor:
        """Return (B, T, C) with boundaries as the arm's windows have them."""
        bounded = [[begin, *words, *end] for words in sentences]
        return torch.from_numpy(self.characters.encode(bounded, boundaries=False))

    def tokens(self, sentences: Sentences, *end: str) -> tuple[Tensor, Tensor]:
        """Return token vectors (B, T, D) and lengths (B,)."""
        ids = self.char_ids(sentences, "<S>", *end)
        vectors = self.token_encoder(ids.flatten(0, 1)).unflatten(0, ids.shape[:2])
        return vectors, torch.tensor([1 + len(words) + len(end) for words in sentences])

    def word_ids(self, words: Sequence[str]) -> Tensor:
        return torch.from_numpy(np.asarray(self.vocab.encode(list(words)), dtype=np.int64))

    def sampled(self, hidden: Sequence[Tensor], targets: Sequence[Tensor], step: int) -> Tensor:
        seeds = [derived_seed(self.seed, step, index, 1) for index in range(len(hidden))]
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        return torch.cat(training_nlls(self.softmax, hidden, targets, generators=generators)).mean()

    def two_ways(self, ahead: Tensor, back: Tensor, sentences: Sentences) -> list[Nats]:
        """Return `Nats` from what the softmax reads of each direction, (B, T, D) in text order."""
        found = []
        for row, words in enumerate(sentences):
            ids = self.word_ids([*words, "</S>", "<S>"])
            forward = self.softmax.nll(ahead[row, : len(words) + 1], ids[:-1])
            backward = self.softmax.nll(
                back[row, 1 : len(words) + 2], torch.cat((ids[-1:], ids[:-2]))
            )
            found.append(Nats(forward.numpy(), backward.roll(-1).numpy()))
        return found


class LSTMs(Arm):
    """ELMo (Peters et al. 2018)."""

    rows, steps, restart_share = 256, 20, 0.1
    rate = 0.008

    def __init__(self, model: PretrainedBiLM, seed: int) -> None:
        super().__init__(model, seed)
        self.bilm, self.state = model, BiLMState.zeros(model.config.lstm, self.rows)
        self.both = BiLMLoss(model, self.softmax, dropout=0.0, seed=seed, num_rows=self.rows)

    def loss(self, batch: WindowTensors, step: int) -> Tensor:
        forward, backward, self.state = self.both(batch, self.state, step)
        return (forward + backward) / 2

    def layers(self, sentences: Sentences) -> list[Tensor]:
        layers = BiLM.forward(self.bilm, self.char_ids(sentences, "<S>", "</S>")).layers
        return [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]

    def nats(self, sentences: Sentences) -> list[Nats]:
        top = BiLM.forward(self.bilm, self.char_ids(sentences, "<S>", "</S>")).layers[-1]
        ahead, back = top.split(self.dim, dim=2)
        return self.two_ways(ahead, back, sentences)


class Block(nn.Module):
    """Attention and two dense layers, each after a norm (Vaswani et al. 2017)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.queries, self.keys, self.values, self.mixed = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normed = self.norms[0](x)
        queries, keys, values = (
            layer(normed).unflatten(2, (-1, 64)).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        # a fifth of the time of PyTorch's fused attention, whose gradient is slow on a CPU
        scores = (queries / 8) @ keys.transpose(2, 3)
        weighted = torch.softmax(scores + mask.to(scores.dtype), dim=-1) @ values
        x = x + self.mixed(weighted.transpose(1, 2).flatten(2))
        return x + self.outer(functional.gelu(self.inner(self.norms[1](x))))


class Transformer(nn.Module):
    """Blocks between token vectors and what the softmax reads, both (B, T, D)."""

    def __init__(self, dim: int, *, depth: int, is_causal: bool, width: int = 256) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(dim, width), nn.Linear(width, dim)
        self.position_embedding = nn.Parameter(0.02 * torch.randn(LONGEST, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm, self.is_causal = nn.LayerNorm(width), is_causal
        for name, weight in self.blocks.named_parameters():
            if name.endswith(("mixed.weight", "outer.weight")):  # all begin no larger than one
                nn.init.normal_(weight, std=0.02 / (2 * depth) ** 0.5)

    def forward(self, x: Tensor, sentences: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return what the softmax reads, and the layers.

        ``sentences`` (B, T) numbers them; no position sees those of other numbers.
        """
        places = torch.arange(x.shape[1])
        is_seen = sentences[:, :, None] == sentences[:, None]
        begins = torch.argmax(is_seen.int(), dim=2)  # (B, T): where each position's sentence begins
        if self.is_causal:
            is_seen = is_seen & (places <= places[:, None])
        mask = torch.zeros(is_seen.shape).masked_fill(~is_seen, -1e9).unsqueeze(1)
        x = self.first(x) + self.position_embedding[(places - begins).clamp(max=LONGEST - 1)]
        outputs = [x]
        for block in self.blocks:
            x = block(x, mask)
            outputs.append(x)
        outputs[-1] = self.norm(x)
        return self.last(outputs[-1]), outputs


def in_window(inputs: Tensor) -> Tensor:
    """Number the sentences of windows (B, T), whose rows begin with a sentence."""
    return (inputs == inputs[:, :1]).cumsum(dim=1)


def in_padded(lengths: Tensor, num_steps: int) -> Tensor:
    """Number one padded sentence a row, (B, T): its positions 1, padding 0."""
    return (torch.arange(num_steps) < lengths[:, None]).long()


class CausalTransformers(Arm):
    """ELMo with a Transformer in each direction instead of the LSTMs (Peters et al. 2018b)."""

    def __init__(self, model: PretrainedBiLM, seed: int) -> None:
        super().__init__(model, seed)
        self.stacks = nn.ModuleList(
            Transformer(self.dim, depth=4, is_causal=True) for _ in range(2)
        )

    def loss(self, batch: WindowTensors, step: int) -> Tensor:
        tokens = encode_tokens(self.token_encoder, batch.token_ids)
        inputs = (batch.forward_inputs, batch.backward_inputs)
        hidden = [
            stack(functional.embedding(ids, tokens), in_window(ids))[0].flatten(0, 1)
            for stack, ids in zip(self.stacks, inputs, strict=True)
        ]
        targets = [batch.forward_targets.flatten(), batch.backward_targets.flatten()]
        return self.sampled(hidden, targets, step)

    def _read(self, sentences: Sentences) -> tuple[Tensor, Tensor, Tensor]:
        tokens, lengths = self.tokens(sentences, "</S>")
        numbers = in_padded(lengths, tokens.shape[1])
        ahead, layers = self.stacks[0](tokens, numbers)
        back, others = self.stacks[1](reverse_sequences(tokens, lengths), numbers)
        others = [reverse_sequences(layer, lengths) for layer in others]
        joined = torch.cat((torch.stack(layers), torch.stack(others)), dim=3)
        return ahead, reverse_sequences(back, lengths), joined

    def layers(self, sentences: Sentences) -> list[Tensor]:
        layers = self._read(sentences)[2]
        return [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]

    def nats(self, sentences: Sentences) -> list[Nats]:
        return self.two_ways(*self._read(sentences)[:2], sentences)


class MaskedTransformer(Arm):
    """One Transformer that sees both sides and guesses masked words (Devlin et al. 2019)."""

    predicts_words = False

    def __init__(self, model: PretrainedBiLM, seed: int) -> None:
        super().__init__(model, seed)
        self.stack = Transformer(self.dim, depth=7, is_causal=False)
        self.mask_embedding = nn.Parameter(0.02 * torch.randn(self.dim))

    def loss(self, batch: WindowTensors, step: int) -> Tensor:
        draw = torch.Generator().manual_seed(derived_seed(self.seed, step, 2, 0))
        tokens = encode_tokens(self.token_encoder, batch.token_ids)
        x = functional.embedding(batch.forward_inputs, tokens)
        is_guessed = torch.rand(x.shape[:2], generator=draw) < GUESSED
        numbers = in_window(batch.forward_inputs)
        is_guessed &= batch.forward_inputs != batch.forward_inputs[:, :1]  # the boundaries
        is_masked = is_guessed & (torch.rand(x.shape[:2], generator=draw) >= SHOWN)
        x = torch.where(is_masked.unsqueeze(2), self.mask_embedding.to(x.dtype), x)
        # what is guessed is the target of the position before
        targets = batch.forward_targets[:, :-1][is_guessed[:, 1:]]
        return self.sampled([self.stack(x, numbers)[0][is_guessed]], [targets], step)

    def layers(self, sentences: Sentences) -> list[Tensor]:
        tokens, lengths = self.tokens(sentences)
        layers = torch.stack(self.stack(tokens, in_padded(lengths, tokens.shape[1]))[1])
        return [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]

    def nats(self, sentences: Sentences) -> list[Nats]:
        found = []
        for words in sentences:  # a copy of the sentence for every word, with this word masked
            rows = torch.arange(len(words))
            copies = self.tokens([words])[0].repeat(len(words), 1, 1)
            copies[rows, rows + 1] = self.mask_embedding
            hidden = self.stack(copies, torch.ones(copies.shape[:2]))[0][rows, rows + 1]
            nats = self.softmax.nll(hidden, self.word_ids(words))
            found.append(Nats(both_sides=nats.numpy()))
        return found


class CharacterLSTMs(Arm):
    """Two LSTMs over bytes; a word has their states at its ends (Akbik et al. 2018)."""

    rows, steps = 32, 48
    rate = 0.016
    predicts_words = False

    def __init__(self, model: PretrainedBiLM, seed: int) -> None:
        super().__init__(model, seed)
        del self.token_encoder, self.softmax
        self.char_embedding = nn.Embedding(NUM_CHARACTERS, 100)
        self.stacks = nn.ModuleList(nn.LSTM(100, 768, batch_first=True) for _ in range(2))
        self.softmaxes = nn.ModuleList(nn.Linear(768, NUM_CHARACTERS) for _ in range(2))

    def _bytes(self, words: Tensor) -> list[Tensor]:
        """Return the bytes of each sentence (T, C), with a separator after each word."""
        is_read = (words > 0) & ((words < WORD_END) | (words == SEPARATOR))
        return [sentence[mask] for sentence, mask in zip(words, is_read, strict=True)]

    def loss(self, batch: WindowTensors, step: int) -> Tensor:
        ahead = batch.token_ids[batch.forward_inputs]
        back = batch.token_ids[batch.backward_inputs].flip(2)  # the bytes, too
        losses = []
        for stack, softmax, words in zip(self.stacks, self.softmaxes, (ahead, back), strict=True):
            ids = pad_sequence(self._bytes(words), batch_first=True)
            logits = softmax(stack(self.char_embedding(ids[:, :-1]))[0]).flatten(0, 1)
            targets = ids[:, 1:].flatten()
            losses.append(functional.cross_entropy(logits, targets, ignore_index=0))
        return torch.stack(losses).mean()

    def _states(self, sentences: Sentences) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return each sentence's bytes (K,) and both directions' states after them (K, X)."""
        # windows mark both ends with <S> for the forward network, with </S> for the other
        ahead_ids = self._bytes(self.char_ids(sentences, "<S>", "<S>"))
        back_ids = [ids.flip(0) for ids in self._bytes(self.char_ids(sentences, "</S>", "</S>"))]
        ahead, back = (
            stack(self.char_embedding(pad_sequence(sequences, batch_first=True)))[0]
            for stack, sequences in zip(self.stacks, (ahead_ids, back_ids), strict=True)
        )
        return [
            (ids, ahead[row, : len(ids)], back[row, : len(ids)].flip(0))
            for row, ids in enumerate(ahead_ids)
        ]

    def layers(self, sentences: Sentences) -> list[Tensor]:
        found = []
        for ids, ahead, back in self._states(sentences):
            ends = (ids == SEPARATOR).nonzero().flatten()  # of the boundaries, too
            found.append(torch.cat((ahead[ends[1:-1]], back[ends[:-2]]), dim=1).unsqueeze(0))
        return found

    def nats(self, sentences: Sentences) -> list[Nats]:
        found = []
        for ids, ahead, back in self._states(sentences):
            is_end = (ids == SEPARATOR).long()
            word = is_end.cumsum(0) - is_end
            sums = []
            back_ids = torch.where(ids == SENTENCE_BEGIN + 1, SENTENCE_END + 1, ids)
            for way, states, targets, words in (
                (0, ahead[:-1], ids[1:], word[1:]), (1, back[1:], back_ids[:-1], word[:-1]),
            ):  # fmt: skip
                costs = functional.cross_entropy(
                    self.softmaxes[way](states), targets, reduction="none"
                )
                sums.append(costs.new_zeros(int(word[-1]) + 1).index_add(0, words, costs).numpy())
            found.append(Nats(sums[0][1:], np.roll(sums[1][:-1], -1)))
        return found


ARMS: dict[str, type[Arm]] = {
    "lstm": LSTMs, "causal": CausalTransformers, "masked": MaskedTransformer,
    "characters": CharacterLSTMs,
}  # fmt: skip
