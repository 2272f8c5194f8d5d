"""Perplexity of a model over the words of a smaller vocabulary, to compare the two.

    python benchmarks/perplexity_over_vocab.py MODEL VOCAB TEXT…

Every target of TEXT counts once in each direction. A word outside VOCAB, whose words the model
must all have, counts as one of its ``<UNK>``: with the sum of the probabilities of all words of
the model outside VOCAB. Prints one JSON object.
"""

import math
from pathlib import Path

import numpy as np
from common import new_parser, print_result

from elmokit.corpus.readers import read_sentences
from elmokit.evaluation.text_scorer import ScoredSentences, TextScorer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import load_model

LEFT_OUT = -1e4
"""Added to a score: the word has no probability."""


def nats_over(
    vocab: WordVocab, whole: ScoredSentences, others: ScoredSentences
) -> dict[str, np.ndarray]:
    """Return −ln p of all targets; ``others`` were scored without the words of ``vocab``.

    If p is a target's probability, and q that among the words outside ``vocab``, these have p / q.
    """
    words = whole.tokens.words
    inside = np.array([word in vocab for word in words])
    rows = np.concatenate([sentence[1:] for sentence in whole.tokens.sentences])
    ends = np.cumsum([len(sentence) - 1 for sentence in whole.tokens.sentences]) - 1
    is_outside = ~inside[rows]
    is_outside[ends] = False
    return {
        way: nats - np.where(is_outside, others.nats[way], 0) for way, nats in whole.nats.items()
    }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("vocab", type=Path)
    parser.add_argument("text", type=Path, nargs="+")
    options = parser.parse_args()
    vocab, model = WordVocab.read(options.vocab), load_model(options.model)
    whole = TextScorer(load_model(options.model), precision="fp32", unknown="unk")
    assert model.word_vocab is not None
    assert model.softmax is not None
    if missing := [word for word in vocab.words if word not in model.word_vocab]:
        raise SystemExit(f"{options.model} lacks {len(missing)} words, such as {missing[:3]}.")
    ids = model.word_vocab.encode(vocab.words)
    model.softmax.bias.data[ids[ids != model.word_vocab.unknown_id] - 1] += LEFT_OUT
    others = TextScorer(model, precision="fp32", unknown="unk")
    tokenizer = build_tokenizer(model.tokenizer)
    form = model.config.char_vocab.normalization
    sentences = list(read_sentences(options.text, tokenizer, normalization=form))
    sums, count = {"forward": 0.0, "backward": 0.0}, 0
    for scored, unmixed in zip(whole.score(sentences), others.score(sentences), strict=True):
        nats = nats_over(vocab, scored, unmixed)
        count += len(nats["forward"])
        for way in sums:
            sums[way] += float(nats[way].sum(dtype=np.float64))
    figures = {way: math.exp(total / count) for way, total in sums.items()}
    figures["mean"] = math.exp(sum(sums.values()) / 2 / count)
    sizes = {"vocabulary": len(vocab), "model_vocabulary": len(model.word_vocab)}
    print_result("perplexity_over_vocab", sizes, {**figures, "targets": count})


if __name__ == "__main__":
    main()
