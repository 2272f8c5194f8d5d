"""The network that finds answers in a paragraph."""

import json
import math

import pytest
import torch

from elmokit.tasks.inputs.settings import EmbeddingKind, InputSettings
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenInputs
from elmokit.tasks.networks.span_qa import MAX_ANSWER_WORDS, FoundAnswer, SpanQA
from elmokit.tasks.qa import QaTask
from elmokit.tasks.runs.examples import Examples, predict
from elmokit.tasks.runs.training import TaskTrainConfig, TaskTraining
from elmokit.text.tokenizers.simple import SimpleTokenizer

from ....builders.squad_data import RIVER, SEOUL, paragraph

TASK = QaTask()


@pytest.fixture
def build(model):
    def build(*, embeddings: EmbeddingKind = "elmo", hidden_dim=6, seed=0):
        paper = TASK.paper_inputs
        settings = InputSettings(embeddings=embeddings, dropout=0.0, layer_l2=1e-3)
        settings = settings.resolved(paper, with_static=True)
        vocab = model.char_vocab
        inputs = TokenInputs(
            settings,
            num_layers=3,
            layers_dim=16,
            max_characters=vocab.config.max_characters,
            static=None,
        )
        network = TASK.build(inputs, [], (hidden_dim,), TASK.default_dropout)
        network.reset_parameters(torch.Generator().manual_seed(seed))
        return network, BatchMaker(settings, vocab, None)

    return build


def ask(question, context):
    return TASK.example_of(tuple(question.split()), tuple(context.split()))


ASKED = [
    ask("Who sat ?", "Minji sat by the river bank and it rained all day"),
    ask("어디 에서 탔 나 ?", "서울 에서 배 를 탔다"),
    ask("", "nobody asked"),
    ask("Who ?", ""),
    ask("Who was it then ?", "Kim"),
    ask("", ""),
]


def test_an_answer_is_the_same_alone_and_in_a_batch(build, keep):
    network, maker = build()
    together = predict(network, maker, Examples(TASK, ASKED, keep))
    for example, answer in zip(ASKED, together, strict=True):
        (alone,) = predict(network, maker, Examples(TASK, [example], keep))
        assert (alone.text, alone.start, alone.end) == (answer.text, answer.start, answer.end)
        assert alone.probability == pytest.approx(answer.probability, rel=1e-4)
        assert answer.text == example.context[answer.start : answer.end]
        assert bool(answer.text) == bool(example.context)
    assert together[3] == together[5] == FoundAnswer("", 0, 0, 0.0)
    assert (together[4].text, together[4].probability) == (
        "Kim",
        pytest.approx(1),
    )  # there is no other
    json.dumps([TASK.as_json(*pair) for pair in zip(ASKED, together, strict=True)], allow_nan=False)


def test_the_gold_of_an_example_is_not_looked_at_in_prediction(build, keep, squad):
    network, maker = build()
    path = squad(paragraph(RIVER, ("Where ?", "river bank")))
    (known,) = TASK.read(path, training=False, tokenize=str.split)
    new = ask("Where ?", RIVER)
    assert predict(network, maker, Examples(TASK, [known], keep)) == predict(
        network, maker, Examples(TASK, [new], keep)
    )


def test_a_context_of_5000_words_is_answered_from_its_whole(build, keep):
    network, maker = build(hidden_dim=2)
    words = [f"w{number % 700}" for number in range(5000)]
    example = ask("Which word ?", " ".join(words))
    (answer,) = predict(network, maker, Examples(TASK, [example], keep))
    assert answer.text == example.context[answer.start : answer.end]
    assert 1 <= len(answer.text.split()) <= MAX_ANSWER_WORDS
    # with every word but the last made impossible, the last is found
    last = len(example.context.rstrip()) - len(words[-1])
    logits = torch.full((1, 5000, 1), -50.0)
    logits[0, -1] = 0
    network._log_probs = lambda *_: (logits.squeeze(2), logits.squeeze(2))
    (answer,) = predict(network, maker, Examples(TASK, [example], keep))
    assert (answer.text, answer.start, answer.probability) == (words[-1], last, 1.0)


def test_a_network_that_knows_nothing_pays_the_logarithm_of_the_length_twice(build, keep, squad):
    network, maker = build()
    network.eval()
    for linear in (network.to_start, network.to_end):
        torch.nn.init.zeros_(linear.weight)
    path = squad(
        paragraph("a b c d", ("One ?", "b")), paragraph("a b c d e f g h", ("Two ?", "c d"))
    )
    examples = TASK.read(path, training=True, tokenize=str.split)
    batches = Examples(TASK, examples, keep).batch(maker, [0, 1])
    # padding takes no share: (2 log 4 + 2 log 8) / 2 = log 32
    assert network.loss(batches, examples).item() == pytest.approx(math.log(32), rel=1e-5)


def test_the_loss_is_that_of_the_first_and_last_word_of_the_first_answer(build, keep, squad):
    network, maker = build()
    network.eval()
    path = squad(paragraph("a b c d", ("One ?", "b c", "d")))
    examples = TASK.read(path, training=True, tokenize=str.split)
    assert examples[0].spans == ((1, 3), (3, 4))
    batches = Examples(TASK, examples, keep).batch(maker, [0])
    start_log_probs, end_log_probs = network._log_probs(*batches)
    expected = -(start_log_probs[0, 1] + end_log_probs[0, 2])
    torch.testing.assert_close(network.loss(batches, examples), expected)


@pytest.mark.parametrize("embeddings", ["elmo", "none"])
def test_every_weight_learns_and_empty_questions_do_no_harm(embeddings, build, keep, squad):
    network, maker = build(embeddings=embeddings)
    network.train()
    assert bool(network.inputs.output_mix_dim) == (embeddings == "elmo")
    path = squad(paragraph("a b c d", ("One ?", "b c"), ("\u200b?", "d")))
    examples = TASK.read(path, training=True, tokenize=lambda text: text.strip("\u200b?").split())
    assert [len(example.question) for example in examples] == [1, 0]
    held = Examples(TASK, examples, keep if embeddings == "elmo" else None)
    torch.manual_seed(0)
    network.loss(held.batch(maker, [0, 1]), examples).backward()
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name
            # a softmax does not see a bias that all its positions share
            assert parameter.grad.any() or name in ("to_start.bias", "to_end.bias"), name
    alone = network.loss(held.batch(maker, [1]), examples[1:])  # nobody asks anything
    assert torch.isfinite(alone)


def test_the_end_reads_the_start_and_self_attention_is_added_to_what_there_was(build, keep):
    network, maker = build()
    network.eval()
    batches = Examples(TASK, ASKED[:1], keep).batch(maker, [0])
    start_log_probs, end_log_probs = network._log_probs(*batches)
    start_log_probs[0, 0].backward(retain_graph=True)
    assert network.end_encoder.layers[0].weight_ih_l0.grad is None
    network.zero_grad()
    end_log_probs[0, 0].backward()
    assert network.start_encoder.layers[0].weight_ih_l0.grad.any()
    torch.nn.init.zeros_(network.from_self.weight)
    start_log_probs, _ = network._log_probs(*batches)
    assert start_log_probs.std() > 1e-3  # the words are still told from each other


def test_fresh_weights_depend_on_the_seed_alone(build):
    weights = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(weights))
        network, _ = build(seed=seed)
        weights.append(torch.cat([one.detach().flatten() for one in network.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_default_widths_are_those_of_the_paper(model):
    assert TASK.default_hidden_dims == (90,)
    settings = InputSettings().resolved(TASK.paper_inputs, with_static=True)
    inputs = TokenInputs(settings, num_layers=3, layers_dim=16, max_characters=16, static=None)
    network = TASK.build(inputs, [], TASK.default_hidden_dims, TASK.default_dropout)
    assert isinstance(network, SpanQA)
    assert network.encoder.output_dim == 180
    # the output mixture is read beside the states: 4 · (180 + 16)
    assert (network.to_width.in_features, network.to_width.out_features) == (784, 180)


def test_four_questions_are_learned_by_heart(build, keep, squad):
    path = squad(
        paragraph(RIVER, ("Where did Minji sit?", "the river bank"), ("Who sat there?", "Minji")),
        paragraph(SEOUL, ("민지는 무엇을 건넜나?", "강을"), ("언제 비가 왔나?", "1998년에")),
    )
    tokenize = SimpleTokenizer().tokenize
    training = Examples(TASK, TASK.read(path, training=True, tokenize=tokenize), keep)
    dev = Examples(TASK, TASK.read(path, training=False, tokenize=tokenize), keep)
    network, maker = build(hidden_dim=12)
    config = TaskTrainConfig(epochs=80, patience=80, learning_rate=1e-2, batch_size=4)
    reports = []
    for report in TaskTraining(network, maker, training, dev, config).run():
        reports.append(report)
        if report.dev.value == 100:
            break
    assert reports[-1].dev.value == 100
    assert reports[-1].dev.details == {"exact match": 100}
    assert reports[0].dev.value < 100
    answers = predict(network, maker, dev)
    assert [answer.text for answer in answers] == ["the river bank", "Minji", "강을", "1998년에"]
