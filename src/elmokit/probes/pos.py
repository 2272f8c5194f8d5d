"""Parts of speech by a linear classifier on a frozen layer: how much syntax a layer captures.

The classifier is a softmax trained to convergence: all that this probe may learn. Every
representation is treated alike: features standardized to mean 0 and variance 1, the same Gaussian
prior, L-BFGS until the gradient vanishes. The loss is convex, so the result does not depend on a
seed, an order or a stopping time.

Source: Peters et al. 2018, section 5.3 and table 6.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch
from jaxtyping import Int, Integer, Num
from numpy.typing import NDArray
from torch import Tensor

from elmokit.inference.precision import pick_device
from elmokit.metrics.accuracy import accuracy_of
from elmokit.probes.data import find_splits, read_pos_data
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.probes.vector_sources import VectorSource, check_names
from elmokit.tasks.formats.conll import TaggedSentence

log = logging.getLogger(__name__)

MAJORITY = "majority tag"
"""Baseline: a word's most frequent tag; for unseen words, the most frequent tag of all."""
MAX_ITERATIONS = 500
GRADIENT_TOLERANCE = 1e-4
"""Largest derivative of the mean loss (nats) that counts as zero."""
_HISTORY = 20
_MIN_DEVIATION = 1e-6
"""Features that vary less are constant."""
_BLOCK = 1 << 15


@dataclass(frozen=True, kw_only=True)
class PosScore:
    """Accuracy on the words of the dev set, in percent."""

    name: str
    """Of the representation."""
    accuracy: float
    seen: float
    """Of words that occur in the training set, with the same spelling."""
    unseen: float
    """Of the other words."""
    num_words: int
    num_unseen: int
    seconds: float
    """Of training and scoring, without computing layers."""
    num_iterations: int = 0
    """Of the classifier's training."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per sentence: correct, all; for `elmokit.metrics.significance` with `accuracy_of`."""
    unseen_counts: NDArray[np.float64] = field(repr=False, compare=False)
    """The same for unseen words."""


def probe_pos(
    sources: Sequence[VectorSource],
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    *,
    device: str = "auto",
) -> tuple[PosScore, ...]:
    """Train a linear classifier on each representation; score it on ``dev``.

    Tags that are not in training count as wrong. ``device`` is that of the classifiers, see
    `pick_device`.

    Returns:
        The baseline `MAJORITY`, then a score per name, in the order of the sources.

    Raises:
        ValueError: if ``train`` or ``dev`` has no words.
    """
    check_names(sources)
    torch_device = pick_device(device)
    tags = _flat(sentence.tags for sentence in train)
    if not tags or not any(sentence.tokens for sentence in dev):
        raise ValueError("`train` and `dev` must have at least one word each.")
    names = sorted(set(tags))
    ids = {tag: number for number, tag in enumerate(names)}
    labels = np.array([ids[tag] for tag in tags], dtype=np.int64)
    started = time.perf_counter()
    scores = [_score(MAJORITY, _majority_tags(train, dev), train, dev, started)]
    for source in sources:
        train_vectors = source.keep([sentence.tokens for sentence in train])
        dev_vectors = source.keep([sentence.tokens for sentence in dev])
        for way, name in enumerate(source.names):
            started = time.perf_counter()
            rows = np.concatenate([vectors[way] for vectors in train_vectors])
            classifier = fit_linear(rows, labels, len(names), device=torch_device)
            if not classifier.converged:
                log.warning(
                    "%s: the classifier did not converge in %d iterations",
                    name, classifier.num_iterations,
                )  # fmt: skip
            answers = classifier.predict(np.concatenate([vectors[way] for vectors in dev_vectors]))
            predicted = [names[number] for number in answers.tolist()]
            scores.append(_score(name, predicted, train, dev, started, classifier.num_iterations))
    return tuple(scores)


def _score(
    name: str,
    predicted: Sequence[str],
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    started: float,
    num_iterations: int = 0,
) -> PosScore:
    known = set(_flat(sentence.tokens for sentence in train))
    unseen = np.array([word not in known for word in _flat(one.tokens for one in dev)])
    right = np.array(predicted) == np.array(_flat(sentence.tags for sentence in dev))
    sentence_of_word = np.repeat(np.arange(len(dev)), [len(one.tokens) for one in dev])

    def count(among: NDArray[np.bool_]) -> NDArray[np.float64]:  # (sentences, 2)
        columns = [
            np.bincount(sentence_of_word, weights=values, minlength=len(dev))
            for values in (right & among, among)
        ]
        return np.stack(columns, axis=1).astype(np.float64)

    counts, unseen_counts = count(np.ones_like(unseen)), count(unseen)
    totals, unseen_totals = counts.sum(axis=0), unseen_counts.sum(axis=0)
    return PosScore(
        name=name,
        accuracy=float(accuracy_of(totals)),
        seen=float(accuracy_of(totals - unseen_totals)),
        unseen=float(accuracy_of(unseen_totals)),
        num_words=int(totals[1]), num_unseen=int(unseen_totals[1]),
        seconds=time.perf_counter() - started, num_iterations=num_iterations,
        counts=counts, unseen_counts=unseen_counts,
    )  # fmt: skip


def _majority_tags(train: Sequence[TaggedSentence], dev: Sequence[TaggedSentence]) -> list[str]:
    by_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.tokens, sentence.tags, strict=True):
            by_word[word][tag] += 1
    overall = sum(by_word.values(), Counter()).most_common(1)[0][0]
    best = {word: tags.most_common(1)[0][0] for word, tags in by_word.items()}
    return [best.get(word, overall) for word in _flat(sentence.tokens for sentence in dev)]


def _flat(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(chain.from_iterable(lists))


@dataclass(frozen=True)
class LinearClassifier:
    """A trained softmax over standardized features."""

    mean: Tensor
    """Of each feature in training (X,)."""
    deviation: Tensor
    weight: Tensor
    """(X, K)."""
    bias: Tensor
    num_iterations: int
    converged: bool
    """Whether the gradient vanished within `MAX_ITERATIONS`."""

    def predict(self, features: Num[np.ndarray, "N X"]) -> Int[np.ndarray, " N"]:
        """Return the label with the highest score for each row."""
        labels = [np.zeros(0, dtype=np.int64)]
        for at in range(0, len(features), _BLOCK):
            x = torch.tensor(features[at : at + _BLOCK]).to(self.mean)
            scores = ((x - self.mean) / self.deviation) @ self.weight + self.bias
            labels.append(scores.argmax(dim=1).cpu().numpy())
        return np.concatenate(labels)


def fit_linear(
    features: Num[np.ndarray, "N X"],
    labels: Integer[np.ndarray, " N"],
    num_labels: int,
    *,
    device: torch.device | str = "cpu",
) -> LinearClassifier:
    """Train on all rows: mean cross-entropy and a Gaussian prior ``|weight|^2 / 2N``.

    ``labels`` are 0 to ``num_labels`` - 1.
    """
    x = torch.tensor(features, dtype=torch.float32, device=device)  # a copy, modified below
    mean = x.mean(dim=0)
    x -= mean
    deviation = x.std(dim=0, correction=0)
    deviation[deviation < _MIN_DEVIATION] = 1.0
    x /= deviation
    gold = torch.from_numpy(labels.astype(np.int64)).to(device).unsqueeze(1)
    weight, bias = x.new_zeros(x.shape[1], num_labels), x.new_zeros(num_labels)

    def loss_and_gradients() -> float:
        # The gradient by hand: probability minus truth needs no graph over all rows.
        log_probs = torch.addmm(bias, x, weight).log_softmax(dim=1)  # (N, K)
        loss = -log_probs.gather(1, gold).mean() + weight.square().sum() / (2 * len(x))
        error = log_probs.exp_()
        error.scatter_add_(1, gold, torch.full_like(error[:, :1], -1.0))
        error /= len(x)
        weight.grad = x.T @ error + weight / len(x)
        bias.grad = error.sum(dim=0)
        return float(loss)

    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=MAX_ITERATIONS, max_eval=2 * MAX_ITERATIONS,
        tolerance_grad=GRADIENT_TOLERANCE, tolerance_change=0.0,
        history_size=_HISTORY, line_search_fn="strong_wolfe",
    )  # fmt: skip
    optimizer.step(loss_and_gradients)
    loss_and_gradients()  # where the optimizer stopped
    steepest = max(float(one.grad.abs().max()) for one in (weight, bias) if one.grad is not None)
    return LinearClassifier(
        mean=mean, deviation=deviation, weight=weight, bias=bias,
        num_iterations=optimizer.state[weight]["n_iter"],
        converged=steepest <= GRADIENT_TOLERANCE,
    )  # fmt: skip


PROBE = Probe(
    find=lambda data, test: find_splits(data, (".conllu",)),
    read=lambda files, tokenize, units: read_pos_data(files, units=units),
    words=lambda data: words_of(data.train, data.dev),
    measure=lambda sources, data, seed, device: probe_pos(
        sources, data.train, data.dev, device=device
    ),
    columns={"accuracy": "accuracy", "seen": "seen words", "unseen": "unseen words"},
    note="percent of {num_words:,} words, {num_unseen:,} of them not in the training set",
    counts="counts",
    figures=(Figure("accuracy", accuracy_of),),
    has_units=True,
    is_tokenized=True,
    keeps_layers=True,
)
