"""Perplexity of a model on a text: a property of both, not of how it is computed."""

import functools
import math
import unicodedata

import pytest
import torch

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.readers import ReadReport
from elmokit.evaluation import text_scorer
from elmokit.evaluation.perplexity import perplexity as perplexity_in
from elmokit.evaluation.perplexity import perplexity_of_files
from elmokit.evaluation.surprisal import surprisal
from elmokit.evaluation.text_scorer import open_scorer
from elmokit.text.word_vocab import WordVocab

from ...builders.training_models import VOCAB, random_sentences, toy_model

SENTENCES = random_sentences(23)
perplexity = functools.partial(perplexity_in, precision="fp32")
LONG = [word for sentence in random_sentences(40, seed=9) for word in sentence]


@pytest.fixture(scope="module")
def model():
    return toy_model()


@torch.no_grad()
def plain(model, sentences):
    """(forward, backward) in mean nats, sentence by sentence through `BiLM.forward`.

    The forward layer's output at position k predicts the word at k + 1, the backward layer's the
    word at k - 1; the outputs at the last position of each direction predict nothing.
    """
    nats, tokens = [0.0, 0.0], 0
    dim = model.config.lstm.projection_dim
    for sentence in sentences:
        top = model(model.encode([sentence])).layers[-1][0]
        words = ["<S>", *sentence, "</S>"]
        ids = torch.from_numpy(model.word_vocab.encode(words)) - 1
        for index, (outputs, targets) in enumerate(
            ((top[:-1, :dim], ids[1:]), (top[1:, dim:], ids[:-1]))
        ):
            logits = outputs @ model.softmax.weight.T + model.softmax.bias
            nats[index] += torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
        tokens += len(sentence) + 1
    return [float(total) / tokens for total in nats]


def losses(report):
    return [math.log(report.forward), math.log(report.backward)]


@pytest.mark.parametrize("word_input", [False, True])
def test_equals_a_plain_computation_through_the_whole_model(word_input):
    model = toy_model(word_input=word_input)
    report = perplexity(model, SENTENCES, state="reset")
    assert losses(report) == pytest.approx(plain(model, SENTENCES), abs=2e-6)
    assert abs(losses(report)[0] - losses(report)[1]) > 1e-3, "the directions differ"


def test_sentences_start_from_the_warm_state_unless_told_otherwise(model):
    warm, reset = perplexity(model, SENTENCES), perplexity(model, SENTENCES, state="reset")
    assert (warm.state, reset.state) == ("warm", "reset")
    assert warm.forward != pytest.approx(reset.forward, rel=1e-6)


def test_counts(model):
    report = perplexity(model, SENTENCES)
    num_words = sum(len(sentence) for sentence in SENTENCES)
    unknown = sum(word not in VOCAB for sentence in SENTENCES for word in sentence)
    assert unknown > 0
    assert report.sentences == len(SENTENCES)
    assert report.tokens == num_words + len(SENTENCES)
    assert report.oov_rate == pytest.approx(unknown / num_words)
    assert report.vocabulary == len(VOCAB)


def test_the_mean_of_known_words_leaves_unknown_ones_out(model):
    rows = [row for row in surprisal(model, SENTENCES, unknown="unk") if not row.is_unknown]
    assert len(rows) < perplexity(model, SENTENCES).tokens
    known = 2 ** (sum(row.mean for row in rows) / len(rows))
    assert perplexity(model, SENTENCES).mean_known == pytest.approx(known, rel=1e-5)


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_a_softmax_of_biases_has_the_perplexity_of_its_unigrams(kind):
    model = toy_model(softmax=SoftmaxConfig(kind=kind, num_samples=5))
    targets = [[*sentence, "</S>"] for sentence in SENTENCES]
    ids = torch.from_numpy(VOCAB.encode([word for row in targets for word in row])) - 1
    probs = torch.bincount(ids, minlength=len(VOCAB)) / len(ids)
    with torch.no_grad():
        model.softmax.weight.zero_()
        model.softmax.bias.copy_(probs.clamp(min=1e-12).log())
    entropy = -(probs[probs > 0] * probs[probs > 0].log()).sum()
    assert perplexity(model, SENTENCES).forward == pytest.approx(float(entropy.exp()), rel=1e-4)
    with torch.no_grad():
        model.softmax.bias.zero_()
    report = perplexity(model, SENTENCES)
    assert [report.forward, report.backward, report.mean] == pytest.approx([len(VOCAB)] * 3)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_batch_size_does_not_matter(model, batch_size):
    report = perplexity(model, SENTENCES, batch_size=batch_size)
    expected = perplexity(model, SENTENCES, batch_size=7)
    assert losses(report) == pytest.approx(losses(expected), abs=2e-6)
    assert (report.tokens, report.oov_rate) == (expected.tokens, expected.oov_rate)


def test_order_and_empty_sentences_do_not_matter(model, monkeypatch):
    monkeypatch.setattr(text_scorer, "BUFFER_TOKENS", 5)
    report = perplexity(model, [[], *reversed(SENTENCES), []], batch_size=2)
    expected = perplexity(model, SENTENCES)
    assert losses(report) == pytest.approx(losses(expected), abs=2e-6)
    assert report.sentences == expected.sentences


def test_bf16_moves_the_figures_within_its_error_budget():
    from elmokit.weights.locate import PACKAGED_MODELS
    from elmokit.weights.model_dir import load_model

    model = load_model("en")
    text = (PACKAGED_MODELS.parent / "demo" / "en.txt").read_text(encoding="utf-8")
    sentences = [line.split() for line in text.splitlines()[:100]]  # 1,000 words
    exact = perplexity(model, sentences)
    quick = perplexity_in(model, sentences, precision="bf16")
    # 2.6e-4 on all of this text, give or take 1.5e-4 on a tenth of it (docs/log.md)
    for name in ("forward", "backward", "mean"):
        assert getattr(quick, name) == pytest.approx(getattr(exact, name), rel=1e-3), name
    assert quick != exact


def test_auto_is_one_of_the_two(model):
    choices = [perplexity_in(model, SENTENCES, precision=name) for name in ("fp32", "bf16")]
    assert perplexity_in(model, SENTENCES) in choices


def test_forward_is_backward_over_the_reversed_sentence():
    """With one direction's parameters in both, and both markers spelled alike."""
    model = toy_model(word_input=True)
    model.backward_layers.load_state_dict(model.forward_layers.state_dict())
    begin, end = VOCAB.sentence_begin_id, VOCAB.sentence_end_id
    with torch.no_grad():
        table = model.token_encoder.embedding.weight
        table[end] = table[begin]
        model.softmax.weight[end - 1] = model.softmax.weight[begin - 1]
        model.softmax.bias[end - 1] = model.softmax.bias[begin - 1]
    report = perplexity(model, SENTENCES, state="reset")
    mirrored = perplexity(model, [sentence[::-1] for sentence in SENTENCES], state="reset")
    assert report.forward == pytest.approx(mirrored.backward, rel=1e-6)
    assert report.backward == pytest.approx(mirrored.forward, rel=1e-6)
    assert report.forward != pytest.approx(report.backward, rel=1e-3)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_does_not_matter_and_stays(model, training):
    expected = perplexity(model, SENTENCES[:3])
    model.train(training)
    assert perplexity(model, SENTENCES[:3]) == expected
    assert model.training == training
    assert all(weight.grad is None and weight.requires_grad for weight in model.parameters())


def test_text_is_normalized_as_the_model_asks(model):
    decomposed = unicodedata.normalize("NFD", "강")
    assert decomposed not in VOCAB
    assert perplexity(model, [[decomposed, "river"]]) == perplexity(model, [["강", "river"]])


def test_bits_per_byte_counts_utf8_bytes_and_a_separator_a_target(model):
    report = perplexity(model, [["강", "is"]])  # 3 + 2 bytes, 3 targets
    nats = 3 * sum(losses(report)) / 2
    assert report.bits_per_byte == pytest.approx(nats / math.log(2) / (3 + 2 + 3))
    assert report.bits_per_byte_spelled == report.bits_per_byte


def test_unknown_words_are_free_in_one_reading_and_cost_their_bytes_in_the_other(model):
    """The bytes of "zzz" and "강강" cost nothing, or 8 bits each, of 12 and five separators."""
    report = perplexity(model, [["강", "zzz"], ["강강"]])
    assert report.oov_rate == pytest.approx(2 / 3)
    cost = report.bits_per_byte_spelled - report.bits_per_byte
    assert cost == pytest.approx(8 * (3 + 6) / (3 + 3 + 6 + 5))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sentences": [[], []]}, ValueError, "no text"),
        ({"sentences": "I sat by the bank ."}, TypeError, "one string"),
        ({"batch_size": 0}, ValueError, r"`batch_size` .*\b1, .*\b0\b"),
        ({"state": "cold"}, ValueError, r"`state` .*warm, reset, .*'cold'"),
        ({"precision": "fp16"}, ValueError, r"`precision` .*auto, fp32, bf16, .*'fp16'"),
        (
            {"model": toy_model(vocab=None, softmax=None)}, ValueError,
            r"softmax.*elmokit finetune .*--vocab .*elmokit convert .*--softmax",
        ),
    ],
)  # fmt: skip
def test_errors(model, options, error, message):
    with pytest.raises(error, match=message):
        perplexity_in(**{"model": model, "sentences": SENTENCES, **options})


class TestFiles:
    @pytest.fixture
    def stored(self, model, tmp_path):
        model.save(tmp_path / "model")
        text = tmp_path / "text.txt"
        text.write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
        return str(tmp_path / "model"), text

    def test_a_stored_model_on_a_file_that_has_bad_lines(self, model, stored):
        model_path, text = stored
        text.write_bytes(b"\n" + text.read_bytes() + b"a\0b\n")
        read = ReadReport()
        report = perplexity_of_files(*open_scorer(model_path, device="cpu"), [text], read=read)
        expected = perplexity_in(model, SENTENCES)
        assert losses(report) == pytest.approx(losses(expected), abs=2e-6)
        assert read.skipped == {"blank": 1 + SENTENCES.count([]), "nul": 1}
        assert report.sentences == read.sentences

    def test_another_tokenizer_and_many_unknown_words_are_warned_about(self, stored, caplog):
        model_path, text = stored
        for name in ("whitespace", None, "simple"):
            assert "tokenizer" not in caplog.text
            perplexity_of_files(*open_scorer(model_path, tokenizer=name, device="cpu"), [text])
        assert "tokenizer 'simple', but the model was trained with 'whitespace'" in caplog.text
        assert "are unknown to the model" not in caplog.text
        text.write_text("hwaet we gardena\n", encoding="utf-8")
        perplexity_of_files(*open_scorer(model_path, device="cpu"), [text])
        assert "100 % of the words are unknown to the model" in caplog.text


def test_words_of_another_vocabulary_are_scored_as_unknown():
    """OOV words get the probability of <UNK>, whichever they are."""
    vocab = WordVocab(["<S>", "</S>", "<UNK>", "river"])
    model = toy_model(vocab=vocab)
    with torch.no_grad():
        model.softmax.weight.zero_()
        model.softmax.bias.copy_(torch.tensor([0.0, 0.1, 0.6, 0.3]).clamp(min=1e-12).log())
    report = perplexity(model, [["ship"]])
    assert math.log(report.forward) == pytest.approx(-(math.log(0.6) + math.log(0.1)) / 2, rel=1e-5)


def test_strings_are_split_by_the_models_tokenizer_and_lists_are_words(tmp_path):
    model = toy_model()
    by_words = perplexity(model, [LONG[:9]], state="reset")
    assert perplexity(model, [" ".join(LONG[:9])], state="reset") == by_words
    assert by_words.tokens == 10
    model.save(tmp_path / "model")  # a model may be named
    assert perplexity(tmp_path / "model", [LONG[:9]], state="reset") == by_words
