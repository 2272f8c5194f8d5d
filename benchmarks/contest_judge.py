"""Judge the arms of the contest: frozen features under one small head, and their predictions.

    python benchmarks/contest_judge.py lstm-0.pt … --vocab vocab.txt --data DATA --held held.txt
    python benchmarks/contest_judge.py en minilm wordllama spacy --vocab … --data … --held …

DATA has the folders that are named below. A head is a learned mixture of the layers, each
normalized (Peters et al. 2018, equation 1), and one linear layer over it, trained alike for all.
"""

import json
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import new_parser, print_result
from contest_networks import Arm, Sentences
from contest_shelf import SHELF, Layers, package_facts
from contest_train import new_arm
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.scalar_mix import ScalarMix
from elmokit.corpus.readers import read_sentences
from elmokit.evaluation.pairs import read_pairs
from elmokit.evaluation.regression import gain
from elmokit.evaluation.tables import Table
from elmokit.files.lines import numbered_lines
from elmokit.metrics.task_scores import accuracy_of, count_labels, count_spans, f1_of
from elmokit.probes.inputs import find_splits, read_pos_data
from elmokit.tasks.formats.conll import TaggedSentence, read_columns
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.vectors.vector_files import read_vectors_of

TOKENIZER = build_tokenizer("simple")
BATCH, EPOCHS, WORDS_TOGETHER, HEAD_SEEDS = 64, 8, 256, 3
RATES = (0.002, 0.008)
WIC_PAIRS = 2000
EVERY = 3
"""Of the training sentences of a task every third one is used."""


def in_batches(layers: Layers, sentences: Sentences) -> list[Tensor]:
    found = list[Any](sentences)
    order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            for row, vectors in zip(rows, layers([sentences[row] for row in rows]), strict=True):
                found[row] = vectors.half()
    return found


class Head(nn.Module):
    """A mixture of L layers and a linear layer: (L, N, X) -> (N, labels)."""

    def __init__(self, num_layers: int, width: int, num_labels: int) -> None:
        super().__init__()
        self.mix = ScalarMix(num_layers, layer_norm=True)
        self.output = nn.Linear(width, num_labels)

    def forward(self, layers: Tensor) -> Tensor:
        return self.output(self.mix(layers.unsqueeze(1).float()).squeeze(0))


def predicted(
    vectors: Tensor, labels: Sequence[str], others: Tensor, seed: int, rate: float
) -> list[str]:
    """Train a head on words (L, N, X) and their labels; return the labels of other words."""
    torch.manual_seed(seed)
    names = sorted(set(labels))
    targets = torch.tensor([names.index(label) for label in labels])
    head = Head(len(vectors), vectors.shape[2], len(names))
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=0.01)
    num_steps = EPOCHS * -(-len(labels) // WORDS_TOGETHER)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, num_steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(labels)).split(WORDS_TOGETHER):
            loss = functional.cross_entropy(head(vectors[:, rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.inference_mode():
        best = [head(part).argmax(dim=1) for part in others.split(4096, dim=1)]
    return [names[index] for index in torch.cat(best).tolist()]


def tagging(
    layers: Layers, train: Sequence[TaggedSentence], dev: Sequence[TaggedSentence], score: Any
) -> dict[str, Any]:
    """Return the scores of the head's seeds; the last tenth of the training set chose its rate."""
    vectors, others = (
        torch.cat(layers([sentence.tokens for sentence in part]), dim=1) for part in (train, dev)
    )
    labels = [tag for sentence in train for tag in sentence.tags]
    cut = sum(len(sentence.tokens) for sentence in train[: len(train) * 9 // 10])

    def score_of(sentences: Sequence[TaggedSentence], tags: Sequence[str]) -> float:
        remaining = iter(tags)
        guesses = [[next(remaining) for _ in sentence.tokens] for sentence in sentences]
        return score(guesses, [sentence.tags for sentence in sentences])

    chosen = {
        rate: score_of(
            train[len(train) * 9 // 10 :],
            predicted(vectors[:, :cut], labels[:cut], vectors[:, cut:], 0, rate),
        )
        for rate in RATES
    }
    rate = max(chosen, key=chosen.__getitem__)
    scores = [
        score_of(dev, predicted(vectors, labels, others, seed, rate)) for seed in range(HEAD_SEEDS)
    ]
    return {"mean": sum(scores) / HEAD_SEEDS, "scores": scores, "rate": rate, "held_out": chosen}


def words_in_context(layers: Layers, folder: Path) -> float:
    """Return how often a threshold on the cosine tells whether a word has one sense, in percent."""
    shares, threshold = [], 0.0
    for name in ("dev.jsonl.gz", "train.jsonl.gz"):  # the larger set is for the score
        sentences, places, labels = [], [], []
        for _, line in list(numbered_lines(folder / name))[:WIC_PAIRS]:
            record = json.loads(line)
            labels.append(record["label"])
            for side in "12":
                text, start = record[f"sentence{side}"], record[f"start{side}"]
                end = record[f"end{side}"]
                before, after = TOKENIZER.tokenize(text[:start]), TOKENIZER.tokenize(text[end:])
                sentences.append([*before, text[start:end], *after])
                places.append(len(before))
        vectors = [
            functional.layer_norm(part[:, place].float(), part.shape[2:]).mean(dim=0)
            for part, place in zip(layers(sentences), places, strict=True)
        ]
        cosines = functional.cosine_similarity(
            torch.stack(vectors[::2]), torch.stack(vectors[1::2]), dim=1
        ).numpy()
        is_same = np.array(labels)
        if not shares:
            threshold = max(
                cosines, key=lambda least: float(((cosines >= least) == is_same).mean())
            )
        shares.append(float(((cosines >= threshold) == is_same).mean()))
    return 100 * shares[1]


def costs(arm: Arm, sentences: Sentences) -> list[dict[str, np.ndarray]]:
    """Return the nats of each distinct sentence's words, in the order of the sentences."""
    order = sorted(dict.fromkeys(map(tuple, sentences)), key=len)
    found: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            for words, nats in zip(rows, arm.nats(rows), strict=True):
                found[words] = {
                    way: part for way, part in nats._asdict().items() if part is not None
                }
    return [found[tuple(words)] for words in sentences]


def minimal_pairs(arm: Arm, path: Path) -> dict[str, float]:
    """Return how often the grammatical sentence is more probable, in percent, by direction."""
    pairs = read_pairs(path)
    good, bad = (
        costs(arm, [TOKENIZER.tokenize(getattr(pair, side)) for pair in pairs])
        for side in ("good", "bad")
    )
    ways: dict[str, tuple[str, ...]] = {way: (way,) for way in good[0]}
    if len(ways) == 2:
        ways["summed"] = ("forward", "backward")
    sums = {
        way: [
            np.array([sum(float(row[part].sum()) for part in parts) for row in side])
            for side in (good, bad)
        ]
        for way, parts in ways.items()
    }
    return {
        way: 50 * float((np.sign(bad - good) + 1).mean())  # ties count as half
        for way, (good, bad) in sums.items()
    }


def reading_times(arm: Arm, path: Path) -> dict[str, float]:
    """Return the points of R² that surprisal adds to length, frequency and position."""
    table = Table(path)
    texts = [text.split() for text in table["sentence"]]
    tokens = [[TOKENIZER.tokenize(word) for word in words] for words in texts]
    found = costs(arm, [[token for word in words for token in word] for words in tokens])
    if "forward" not in found[0]:
        return {}
    surprisals = [
        np.add.reduceat(row["forward"][:-1], np.cumsum([0, *map(len, words)])[:-1])
        for row, words in zip(found, tokens, strict=True)
    ]
    places = table.places("context_length", first=0)
    rows = list(zip(surprisals, tokens, places, strict=True))
    assert all(place > 0 for place in places)  # first words are not measured
    own, before = (np.array([bits[place - back] for bits, _, place in rows]) for back in (0, 1))
    # the number of tokens tells where commas are, the rank in the vocabulary how rare a word is
    baseline = [table.numbers("length"), table.numbers("Subtlex_log10"), places]
    for back in (0, 1):
        parts = [words[place - back] for _, words, place in rows]
        ids = arm.word_ids([part[0] for part in parts]).numpy()
        ranks = np.where(ids == arm.vocab.unknown_id, len(arm.vocab), ids)
        baseline += [[len(part) for part in parts], [len("".join(part)) for part in parts]]
        baseline.append(np.log(ranks))
    columns = np.array(baseline, dtype=float).T
    groups = np.unique(table["sentence"], return_inverse=True)[1]
    gains = {}
    for name in ("self_paced_reading_time", "RTfirstpass"):
        measure = table.numbers(name)
        usable = ~np.isnan(np.column_stack([measure, columns])).any(axis=1)
        predictor = np.stack([own, before], axis=1)[usable]
        gains[name] = gain(measure[usable], columns[usable], predictor, groups[usable]).r2_points
    return gains


def perplexities(arm: Arm, path: Path) -> dict[str, float]:
    """Return the perplexity of the first sentences of held-out text, in both directions."""
    sentences = list(islice(read_sentences([path], TOKENIZER, normalization="NFC"), 500))
    found = costs(arm, sentences)
    return {
        way: float(np.exp(np.concatenate([row[way] for row in found]).mean())) for way in found[0]
    }


def static_layers(path: Path, sentences: Sentences) -> list[Tensor]:
    """Return the static vectors of a file as one layer."""
    vectors = read_vectors_of(path, {word for sentence in sentences for word in sentence})
    rows = torch.from_numpy(vectors.values).half()
    return [rows[[vectors.id_of(word) for word in words]].unsqueeze(0) for words in sentences]


def judge(layers: Layers, arm: Arm | None, data: Path, held: Path) -> dict[str, Any]:
    pos = read_pos_data(data / "ud-en-ewt")
    ner = [list(read_columns(path)) for path in find_splits(data / "ner-en-uner-ewt")]
    sentences = [sentence.tokens for sentence in pos.dev]
    width = layers(sentences[:BATCH])[0].shape[2]  # the first call may warm up
    started = time.process_time()
    layers(sentences)
    speed = sum(map(len, sentences)) / (time.process_time() - started)
    scores: dict[str, Any] = {"words_per_second": speed, "width": width}
    scores["pos"] = tagging(
        layers, pos.train[::EVERY], pos.dev,
        lambda *tags: float(accuracy_of(count_labels(*tags).rows.sum(axis=0))),
    )  # fmt: skip
    scores["ner"] = tagging(
        layers, ner[0][::EVERY], ner[1],
        lambda *tags: float(f1_of(count_spans(*tags).rows.sum(axis=0))),
    )  # fmt: skip
    scores["wic"] = words_in_context(layers, data / "wic-mcl-en")
    if arm is not None:
        with torch.inference_mode():
            scores["pairs"] = minimal_pairs(arm, data / "pairs-en-zorro" / "pairs.jsonl.xz")
            scores["reading"] = reading_times(arm, data / "reading-en-ucl" / "ucl.csv.xz")
            if arm.predicts_words:
                scores["perplexity"] = perplexities(arm, held)
    return scores


def draw(results: dict[str, Any], target: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    titles = {"pos": "parts of speech, accuracy", "ner": "named entities, F1"}
    for axes, (task, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for name, scores in results.items():
            point = scores.get("words_per_second"), scores[task]["mean"]
            if point[0]:
                axes.plot(*point, "o")
                axes.annotate(name, point, xytext=(5, 3), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", xlabel="words/s, one thread", title=title)
        axes.margins(x=0.35, y=0.1)
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument(
        "files", type=Path, nargs="+", help="arms, word vectors, names of the shelf"
    )
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--held", type=Path, required=True, help="text that no arm has read")
    parser.add_argument("--plot", type=Path, help="PNG: scores over speed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    vocab = WordVocab.read(options.vocab)
    results = {}
    for path in options.files:
        arm, facts = None, {}
        if path.suffix == ".pt":
            stored = torch.load(path, weights_only=True)
            arm = new_arm(stored["arm"], vocab, stored["facts"]["seed"])
            arm.load_state_dict(stored["weights"])
            parameters = sum(weights.numel() for weights in arm.parameters())
            layers, facts = arm.layers, {**stored["facts"], "parameters": parameters}
        elif str(path) in SHELF:
            layers, facts = SHELF[str(path)](), {"package": package_facts(str(path))}
        else:
            layers = partial(static_layers, path)
        if not isinstance(layers, partial):
            layers = partial(in_batches, layers)
        results[path.stem] = facts | judge(layers, arm, options.data, options.held)
        if facts == {}:
            del results[path.stem]["words_per_second"]  # of reading the file
    if options.plot is not None:
        draw(results, options.plot)
    print_result("contest", {"every": EVERY, "head_seeds": HEAD_SEEDS}, results)


if __name__ == "__main__":
    main()
