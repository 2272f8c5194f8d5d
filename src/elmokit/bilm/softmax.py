"""The language model's output layer: full, sampled and adaptive softmax over the word vocabulary.

Both directions share it. Targets are word ids (1 + line of the vocabulary; 0 is padding and never
a target): word id ``w`` is class ``w - 1``, row ``w - 1`` of the weights.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.config import SoftmaxConfig, cutoffs_of, has_sample, shrinkage
from elmokit.shapes import Float, Int

MAX_LOGITS = 1 << 20
MIN_ROWS = 32

Rows = Float[Tensor, "X D"]
Ids = Int[Tensor, " X"]
Nats = Float[Tensor, " X"]


@dataclass(frozen=True)
class Candidates:
    classes: Int[Tensor, " K"]
    num_tries: int
    """Draws made until K distinct classes were found."""


class LogUniformSampler:
    """Draw distinct classes with probability ``P(k) = ln((k+2)/(k+1)) / ln(V+1)``.

    Close to Zipf's law, so it suits vocabularies sorted by decreasing frequency.

    Source: TensorFlow's log-uniform candidate sampler; Peters et al. 2018 train with K = 8192.
    """

    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes
        self._log_range = float(np.log(num_classes + 1))

    def draw(self, num_samples: int, *, generator: torch.Generator) -> Candidates:
        assert num_samples < self.num_classes  # or this would never end
        is_drawn = np.zeros(self.num_classes, dtype=np.bool_)
        classes = np.empty(0, dtype=np.int64)
        num_tries = 0
        while True:
            uniform = torch.rand(2 * num_samples, generator=generator, dtype=torch.float64).numpy()
            draws = np.exp(uniform * self._log_range).astype(np.int64) - 1
            draws = np.clip(draws, 0, self.num_classes - 1)
            firsts = np.sort(np.unique(draws, return_index=True)[1])
            firsts = firsts[~is_drawn[draws[firsts]]][: num_samples - len(classes)]
            fresh = draws[firsts]
            is_drawn[fresh] = True
            classes = np.concatenate((classes, fresh))
            if len(classes) == num_samples:
                return Candidates(torch.from_numpy(classes), num_tries + int(firsts[-1]) + 1)
            num_tries += len(draws)

    def log_expected_count(self, classes: Int[Tensor, " X"], num_tries: int) -> Float[Tensor, " X"]:
        """Return ln Q(k), where Q(k) = 1 - (1 - P(k))^tries is the chance that k is drawn."""
        k = classes.double()
        probability = torch.log((k + 2) / (k + 1)) / self._log_range
        return torch.log(-torch.expm1(num_tries * torch.log1p(-probability))).float()


class FullSoftmax(nn.Module):
    """Exact softmax over ``num_words`` (V) words; new biases are −ln of a word's rank (Zipf's law).

    Shape: hidden (X, D), word ids (X,) -> nats (X,).
    """

    def __init__(self, num_words: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(num_words, dim))
        self.bias = nn.Parameter(torch.zeros(num_words))

    @property
    def num_words(self) -> int:
        return self.weight.shape[0]

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5, generator=generator)
        with torch.no_grad():  # so training need not learn first how frequent words are
            self.bias.copy_(-torch.arange(1.0, self.num_words + 1).log())

    def nll(self, hidden: Rows, word_ids: Ids) -> Nats:
        """Return the exact negative log-likelihood of every target, in nats."""
        rows = max(MIN_ROWS, MAX_LOGITS // self.num_words)
        pieces = []
        for part, ids in zip(hidden.split(rows), word_ids.split(rows), strict=True):
            pieces.append(functional.cross_entropy(self.scores(part), ids - 1, reduction="none"))
        return torch.cat(pieces) if pieces else hidden.new_zeros(0)

    def scores(self, hidden: Rows) -> Float[Tensor, "X V"]:
        """Return the logits of all words; log-probabilities but for a constant a row."""
        return _logits(hidden, self.weight, self.bias)

    def training_nll(self, hidden: Rows, word_ids: Ids, *, generator: torch.Generator) -> Nats:
        return self.nll(hidden, word_ids)


class SampledSoftmax(FullSoftmax):
    """Softmax trained against a sample of the vocabulary, corrected for the sampling.

    The training loss is far below the exact one and is not a perplexity. The vocabulary must be
    sorted by decreasing frequency, and ``num_samples`` (K) be below V.

    Source: Jean et al. 2015; Peters et al. 2018, section 3.4.
    """

    def __init__(self, num_words: int, dim: int, *, num_samples: int) -> None:
        super().__init__(num_words, dim)
        self.num_samples = num_samples
        self.sampler = LogUniformSampler(num_words)

    def training_nll(self, hidden: Rows, word_ids: Ids, *, generator: torch.Generator) -> Nats:
        candidates = self.sampler.draw(self.num_samples, generator=generator)
        return self.sampled_nll(hidden, word_ids, candidates)

    def sampled_nll(self, hidden: Rows, word_ids: Ids, candidates: Candidates) -> Nats:
        """Return the loss against given candidates, not counting a target as its own negative."""
        targets = word_ids - 1
        classes = candidates.classes.to(hidden.device)
        rows = torch.cat((targets, classes))
        weight = functional.embedding(rows, self.weight)
        correction = self.sampler.log_expected_count(rows, candidates.num_tries)
        bias = self.bias[rows] - correction
        num_targets = targets.shape[0]
        target_logits = (hidden * weight[:num_targets]).sum(dim=-1) + bias[:num_targets]  # (X,)
        sampled_logits = _logits(hidden, weight[num_targets:], bias[num_targets:])  # (X, K)
        hits = targets.unsqueeze(1) == classes.unsqueeze(0)
        sampled_logits = sampled_logits.masked_fill(hits, -torch.inf)
        target_logits = target_logits.float()
        total = torch.logaddexp(target_logits, sampled_logits.logsumexp(dim=-1))
        return total - target_logits


def _logits(
    hidden: Float[Tensor, "X D"], weight: Float[Tensor, "K D"], bias: Float[Tensor, " K"]
) -> Float[Tensor, "X K"]:
    """Return the logits in fp32; under autocast only the product is in bf16."""
    if torch.is_autocast_enabled(hidden.device.type):
        return functional.linear(hidden, weight).float() + bias
    return functional.linear(hidden, weight, bias).float()


class AdaptiveSoftmax(nn.Module):
    """Exact softmax in frequency clusters, the rarer ones in fewer dimensions: cheap for a large V.

    The vocabulary must be sorted by decreasing frequency.

    Source: Grave et al. 2017, as `torch.nn.AdaptiveLogSoftmaxWithLoss`.
    """

    def __init__(self, num_words: int, dim: int, *, cutoffs: tuple[int, ...]) -> None:
        super().__init__()
        self.num_words = num_words
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(
            dim, num_words, list(cutoffs), div_value=shrinkage(dim, len(cutoffs)), head_bias=True
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5, generator=generator)
            else:
                nn.init.zeros_(parameter)

    def nll(self, hidden: Rows, word_ids: Ids) -> Nats:
        with torch.autocast(hidden.device.type, enabled=False):
            return -self.clusters(hidden.float(), word_ids - 1).output

    def scores(self, hidden: Rows) -> Float[Tensor, "X V"]:
        with torch.autocast(hidden.device.type, enabled=False):
            return self.clusters.log_prob(hidden.float())

    def training_nll(self, hidden: Rows, word_ids: Ids, *, generator: torch.Generator) -> Nats:
        """Return the exact loss (``generator`` is not used).

        Clusters without targets get gradients of zero, so that processes can average gradients.
        """
        nothing = sum(parameter.flatten()[:0].sum() for parameter in self.parameters())
        return self.nll(hidden, word_ids) + nothing


Softmax = FullSoftmax | AdaptiveSoftmax
"""Any output layer; `SampledSoftmax` is a `FullSoftmax` with another training loss."""


def build_softmax(config: SoftmaxConfig, num_words: int, dim: int) -> Softmax:
    if config.kind == "adaptive":
        return AdaptiveSoftmax(num_words, dim, cutoffs=cutoffs_of(config, num_words))
    if has_sample(config, num_words):
        return SampledSoftmax(num_words, dim, num_samples=config.num_samples)
    return FullSoftmax(num_words, dim)
