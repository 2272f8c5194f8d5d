"""Answers in a paragraph."""

import itertools
import json
import logging
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError
from elmokit.tasks.input_settings import Arm
from elmokit.tasks.inputs import BatchMaker, TokenInputs
from elmokit.tasks.span_qa import (
    MAX_ANSWER_WORDS,
    MAX_CONTEXT_WORDS,
    FoundAnswer,
    GoldAnswers,
    QaTask,
    SpanQA,
)
from elmokit.tasks.training import Examples, TaskTrainConfig, predict, train_model
from elmokit.tasks.word_offsets import align_words, covering_words
from elmokit.text.simple import SimpleTokenizer

from .models import toy_model

TASK = QaTask()


# --- words and characters -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("the bank", "the bank", [(0, 3), (4, 8)]),
        (" no,  no\nno ", "no , no no", [(1, 3), (3, 4), (6, 8), (9, 11)]),
        ("서울에서 삽니다.", "서울 에서 삽니다 .", [(0, 2), (2, 4), (5, 8), (8, 9)]),
        ("a\u200b b\u200b", "a b", [(0, 1), (3, 4)]),
        ("The NASA", "the nasa", [(0, 3), (4, 8)]),
        ("", "", []),
    ],
)
def test_words_of_the_text_are_found_from_left_to_right(text, words, expected):
    assert align_words(words.split(), text) == tuple(expected)


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        # 갔 is read as 가 었, 폈 as 피 었; 다 and . stand in the text twice
        (
            "나는 갔다. 꽃이 폈다.",
            "나 는 가 었 다 . 꽃 이 피 었 다 .",
            [
                (0, 1), (1, 2), (3, 4), (3, 4), (4, 5), (5, 6),
                (7, 8), (8, 9), (10, 11), (10, 11), (11, 12), (12, 13),
            ],
        ),
        # of the copula 이 nothing is written
        ("의사다.", "의사 이 다 .", [(0, 2), (2, 2), (2, 3), (3, 4)]),
        ("I can't go", "I ca not go", [(0, 1), (2, 4), (4, 7), (8, 10)]),
        ("in 1998 .", "in 0000 .", [(0, 2), (3, 7), (8, 9)]),
        ("by 1998 ", "by 0000", [(0, 2), (3, 7)]),
        ("1998 by", "0000 by", [(0, 4), (5, 7)]),
        # decomposed in the text, composed in the words: é is one character or two
        ("le cafe\u0301 noir", "le caf\u00e9 noir", [(0, 2), (3, 8), (9, 13)]),
        # a character that the tokenizer dropped
        ("a \x07b c", "a b c", [(0, 1), (3, 4), (5, 6)]),
        ("", "x", [(0, 0)]),
        # regardless of case, a word can be longer than what is written
        ("ß", "ss", [(0, 1)]),
    ],
)  # fmt: skip
def test_words_that_a_tokenizer_altered_share_the_stretch_between_their_neighbors(
    text, words, expected
):
    assert align_words(words.split(), text) == tuple(expected)


def test_a_word_that_its_next_one_follows_is_found_before_one_that_stands_alone():
    # 해 is read as 하 어; the next 어 of the text is that of another word: after it stands no 넣
    text, words = "일해 넣어요 해요", "일 하 어 넣 어 요 하 어 요"
    assert align_words(words.split(), text) == (
        (0, 1), (1, 2), (1, 2), (3, 4), (4, 5), (5, 6), (7, 8), (7, 8), (8, 9),
    )  # fmt: skip


def test_words_that_cannot_be_found_again_have_no_place():
    assert align_words(["a", "x", "b"], f"a {'y' * 200} b") is None
    assert align_words(["x"] * 200, "a b") is None


@given(st.text(max_size=60))
def test_words_of_the_simple_tokenizer_are_cut_out_of_any_text_as_they_are(text):
    words = SimpleTokenizer().tokenize(text)
    offsets = align_words(words, text)
    assert offsets is not None
    assert [text[start:end] for start, end in offsets] == words


@given(
    st.lists(st.text("ab가각ß", min_size=1, max_size=3), max_size=8),
    st.text("ab가각ß ", max_size=12),
)
def test_offsets_of_any_words_follow_each_other_inside_the_text(words, text):
    offsets = align_words(words, text)
    assert offsets is not None  # so little can always be passed over
    assert len(offsets) == len(words)
    bounds = [(0, 0), *offsets, (len(text), len(text))]
    assert all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(bounds))
    assert all(start <= end for start, end in offsets)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((0, 3), (0, 1)),
        ((0, 4), (0, 1)),  # the space behind it belongs to no word
        ((1, 2), (0, 1)),  # inside a word: all of it
        ((2, 5), (0, 2)),  # cuts two words
        ((4, 10), (1, 4)),
        ((3, 4), None),  # between words
        ((8, 8), None),
        ((20, 25), None),
        ((11, 14), None),  # a word of which nothing is written cannot be the answer
    ],
)
def test_a_span_is_all_words_that_have_a_character_of_the_answer(answer, expected):
    # of the third and of the last word nothing is written
    offsets = ((0, 3), (4, 8), (8, 8), (8, 10), (12, 12))
    assert covering_words(offsets, *answer) == expected


# --- reading --------------------------------------------------------------------------------------


def question(text, context, *answers, name=None):
    given = [{"text": answer, "answer_start": context.index(answer)} for answer in answers]
    return {"id": name or text, "question": text, "answers": given}


def paragraph(context, *pairs):
    """Pairs of a question and its answer."""
    return {"context": context, "qas": [question(text, context, *one) for text, *one in pairs]}


@pytest.fixture
def write(tmp_path):
    def write(*paragraphs):
        path = tmp_path / "train.json"
        content = {"version": "1.1", "data": [{"title": "t", "paragraphs": list(paragraphs)}]}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write


RIVER = "Minji sat by the river bank. It rained in 1998-99."
SEOUL = "민지는 서울에서 배를 타고 강을 건넜다. 1998년에 비가 왔다."


def test_questions_are_read_with_the_words_that_cover_their_answers(write):
    path = write(
        paragraph(RIVER, ("Where?", "river bank", "by the"), ("When?", "1998")),
        paragraph(SEOUL, ("어디에서?", "서울")),
    )
    tokenize = SimpleTokenizer().tokenize
    for training in (True, False):
        where, when, korean = TASK.read(path, training=training, tokenize=tokenize)
        assert TASK.sentences(where)[0] == ("Where", "?")
        assert where.context_words[:7] == ("Minji", "sat", "by", "the", "river", "bank", ".")
        assert where.spans == ((4, 6), (2, 4))
        assert where.answers == ("river bank", "by the")
        assert where.context == RIVER
        assert where.context_words is when.context_words
        ((start, end),) = when.spans
        assert "".join(when.context_words[start:end]).startswith("1998")
        # an eojeol is one word, so the answer is only a part of it
        assert [korean.context_words[start:end] for start, end in korean.spans] == [("서울에서",)]
        assert TASK.labels([where, when, korean]) == []


def test_answers_without_words_are_left_out_of_training_and_kept_otherwise(write, caplog):
    def tokenize(text):
        return text.replace("§", "").split()

    path = write(paragraph("by law § 5", ("What?", "§"), ("Which?", "5")))
    (example,) = TASK.read(path, training=True, tokenize=tokenize)
    assert example.spans == ((2, 3),)
    assert "1 of 2 questions are left out of training (no word at the answer: 1)" in caplog.text
    caplog.clear()
    first, second = TASK.read(path, training=False, tokenize=tokenize)
    assert (first.spans, first.answers, second.spans) == ((), ("§",), ((2, 3),))
    assert "1 of 2 questions are without an answer to find, so wrong" in caplog.text


def test_a_context_that_is_not_its_words_is_counted_and_never_breaks_the_reading(write, caplog):
    def tokenize(text):
        return ["x"] * 200 if text.startswith("Minji") else text.split()

    path = write(
        paragraph(RIVER, ("Where?", "river bank"), ("Who?", "Minji")),
        paragraph(SEOUL, ("어디에서?", "서울")),
    )
    (example,) = TASK.read(path, training=True, tokenize=tokenize)
    assert example.question == ("어디에서?",)
    counted = "(words that are not those of the text: 2)"
    assert f"2 of 3 questions are left out of training {counted}" in caplog.text
    caplog.clear()
    kept = TASK.read(path, training=False, tokenize=tokenize)
    assert [len(one.context_words) for one in kept] == [0, 0, 9]
    assert f"2 of 3 questions are without an answer to find, so wrong {counted}" in caplog.text


def test_a_file_of_which_nothing_can_be_learned_is_refused(write):
    path = write(paragraph(RIVER, ("Where?", "river bank")))
    with pytest.raises(FormatError, match=r"none of 1 questions can be learned \(words that are"):
        TASK.read(path, training=True, tokenize=lambda text: ["x"] * 200)


def test_clean_data_is_read_without_a_word(write, caplog):
    path = write(paragraph(RIVER, ("Where?", "river bank")))
    with caplog.at_level(logging.WARNING):
        TASK.read(path, training=True, tokenize=str.split)
    assert not caplog.records


@pytest.mark.parametrize(("first", "last"), [(0, 1), (5, 9), (500, 503), (999, 1000), (300, 800)])
def test_long_contexts_are_cut_around_the_answer_in_training_only(write, first, last):
    words = [f"w{number}" for number in range(1000)]
    context = " ".join(words)
    answer = " ".join(words[first:last])
    path = write(
        paragraph(context, *((f"Q {number} ?", f"{answer}") for number in range(8)))
    )  # fmt: skip
    examples = TASK.read(path, training=True, tokenize=str.split)
    begins = set()
    for example in examples:
        size = max(400, last - first)
        ((start, end),) = example.spans
        assert len(example.context_words) == len(example.offsets) == size
        assert example.context_words[start:end] == tuple(words[first:last])
        assert context[example.offsets[start][0] : example.offsets[end - 1][1]] == answer
        begins.add(example.offsets[0])
    assert examples == TASK.read(path, training=True, tokenize=str.split)
    if (first, last) == (500, 503):
        assert len(begins) > 1  # the answer does not always stand at the same place
    whole = TASK.read(path, training=False, tokenize=str.split)
    assert {example.context_words for example in whole} == {tuple(words)}


def test_a_context_past_all_limits_is_learned_from_and_counts_as_wrong(write, caplog):
    context = "by " * MAX_CONTEXT_WORDS + "Seoul"
    path = write(paragraph(context, ("Where?", "Seoul")))
    (example,) = TASK.read(path, training=True, tokenize=str.split)
    assert example.context_words == ("by",) * 399 + ("Seoul",)
    assert not caplog.records
    (example,) = TASK.read(path, training=False, tokenize=str.split)
    assert example.context_words == ()
    assert "(more than 10000 words: 1)" in caplog.text


# --- scores and output ----------------------------------------------------------------------------


def found(text):
    return FoundAnswer(text, 0, len(text), 0.5)


def test_scores_follow_the_language_of_each_question():
    gold = [
        GoldAnswers(("the cat",), "squad"),
        GoldAnswers(("the cat",), "squad"),
        GoldAnswers(("부산", "서울"), "korquad"),
        GoldAnswers(("the cat",), "korquad"),
    ]
    predicted = [found("cat sat"), found("cat"), found("서울에"), found("cat")]
    score = TASK.score(gold, predicted)
    # words without articles: "cat" of "cat sat" and of "cat": 2·1 / (2 + 1) = 2/3; equal: 1
    # characters: 서울 of 서울에: 2·2 / (3 + 2) = 4/5; cat of thecat: 2·3 / (3 + 6) = 2/3
    np.testing.assert_allclose(score.counts[:, 1], [2 / 3, 1, 4 / 5, 2 / 3])
    assert (score.metric, score.value) == (
        "F1",
        pytest.approx(100 * (2 / 3 + 1 + 4 / 5 + 2 / 3) / 4),
    )
    assert score.details == {"exact match": 25}
    with pytest.raises(InputError, match="one entry for each of the 4 gold examples"):
        TASK.score(gold, predicted[:3])


def test_hangul_in_the_question_decides_not_in_the_answer_or_the_context(write):
    path = write(
        paragraph("Seoul (서울) since 1394", ("Which city?", "서울"), ("언제 ?", "1394")),
    )
    english, korean = TASK.read(path, training=False, tokenize=str.split)
    assert TASK.gold(english) == GoldAnswers(("서울",), "squad")
    assert TASK.gold(korean) == GoldAnswers(("1394",), "korquad")


def test_new_words_are_an_example_whose_context_is_joined_by_spaces():
    example = TASK.example_of(("Who", "?"), ("Minji", "Kim", "sat", "."))
    assert example.context == "Minji Kim sat ."
    assert example.offsets == ((0, 5), (6, 9), (10, 13), (14, 15))
    assert TASK.sentences(example) == (("Who", "?"), ("Minji", "Kim", "sat", "."))
    answer = FoundAnswer("Minji Kim", 0, 9, 0.25)
    assert TASK.show(example, answer) == "Minji Kim\tWho ?"
    assert TASK.as_json(example, answer) == {
        "id": "", "question": "Who ?", "answer": "Minji Kim", "start": 0, "end": 9, "score": 0.25,
    }  # fmt: skip


def test_a_question_needs_one_context_of_a_length_that_fits_into_memory():
    with pytest.raises(InputError, match=r"A question is asked about a context: .* got 1 texts"):
        TASK.example_of(("Who", "?"))
    with pytest.raises(InputError, match="has 10001 words, allowed are 10000"):
        TASK.example_of(("Who", "?"), ("by",) * (MAX_CONTEXT_WORDS + 1))


# --- the network ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.fixture(scope="module")
def keep(model):
    embedder = Embedder.load(model)

    def keep(sentences):
        return [
            vectors.transpose(1, 0, 2)
            for vectors in embedder.embed([list(words) for words in sentences])
        ]

    return keep


@pytest.fixture
def build(model):
    def build(*, embeddings: Arm = "elmo", hidden_dim=6, seed=0):
        paper = TASK.paper_inputs
        settings = replace(paper, embeddings=embeddings, dropout=0.0, layer_l2=1e-3)
        vocab = model.char_vocab
        inputs = TokenInputs(
            settings,
            num_layers=3,
            layers_dim=16,
            max_characters=vocab.config.max_characters,
            static=None,
        )
        network = TASK.build(inputs, [], (hidden_dim,))
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
        assert alone.score == pytest.approx(answer.score, rel=1e-4)
        assert answer.text == example.context[answer.start : answer.end]
        assert bool(answer.text) == bool(example.context)
    assert together[3] == together[5] == FoundAnswer("", 0, 0, 0.0)
    assert (together[4].text, together[4].score) == ("Kim", pytest.approx(1))  # there is no other
    json.dumps([TASK.as_json(*pair) for pair in zip(ASKED, together, strict=True)], allow_nan=False)


def test_the_gold_of_an_example_is_not_looked_at_in_prediction(build, keep, write):
    network, maker = build()
    path = write(paragraph(RIVER, ("Where ?", "river bank")))
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
    assert (answer.text, answer.start, answer.score) == (words[-1], last, 1.0)


def test_a_network_that_knows_nothing_pays_the_logarithm_of_the_length_twice(build, keep, write):
    network, maker = build()
    network.eval()
    for linear in (network.to_start, network.to_end):
        torch.nn.init.zeros_(linear.weight)
    path = write(
        paragraph("a b c d", ("One ?", "b")), paragraph("a b c d e f g h", ("Two ?", "c d"))
    )
    examples = TASK.read(path, training=True, tokenize=str.split)
    batches = Examples(TASK, examples, keep).batch(maker, [0, 1])
    # padding takes no share: (2 log 4 + 2 log 8) / 2 = log 32
    assert network.loss(batches, examples).item() == pytest.approx(math.log(32), rel=1e-5)


def test_the_loss_is_that_of_the_first_and_last_word_of_the_first_answer(build, keep, write):
    network, maker = build()
    network.eval()
    path = write(paragraph("a b c d", ("One ?", "b c", "d")))
    examples = TASK.read(path, training=True, tokenize=str.split)
    assert examples[0].spans == ((1, 3), (3, 4))
    batches = Examples(TASK, examples, keep).batch(maker, [0])
    start_log_probs, end_log_probs = network._log_probs(*batches)
    expected = -(start_log_probs[0, 1] + end_log_probs[0, 2])
    torch.testing.assert_close(network.loss(batches, examples), expected)


@pytest.mark.parametrize("embeddings", ["elmo", "none"])
def test_every_weight_learns_and_empty_questions_do_no_harm(embeddings, build, keep, write):
    network, maker = build(embeddings=embeddings)
    network.train()
    assert ("output" in network.inputs.mixes) == (embeddings == "elmo")
    path = write(paragraph("a b c d", ("One ?", "b c"), ("\u200b?", "d")))
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
    inputs = TokenInputs(
        TASK.paper_inputs, num_layers=3, layers_dim=16, max_characters=16, static=None
    )
    network = TASK.build(inputs, [], TASK.default_hidden_dims)
    assert isinstance(network, SpanQA)
    assert network.encoder.output_dim == 180
    # the output mixture is read beside the states: 4 · (180 + 16)
    assert (network.to_width.in_features, network.to_width.out_features) == (784, 180)


def test_four_questions_are_learned_by_heart(build, keep, write):
    path = write(
        paragraph(RIVER, ("Where did Minji sit?", "the river bank"), ("Who sat there?", "Minji")),
        paragraph(SEOUL, ("민지는 무엇을 건넜나?", "강을"), ("언제 비가 왔나?", "1998년에")),
    )
    tokenize = SimpleTokenizer().tokenize
    training = Examples(TASK, TASK.read(path, training=True, tokenize=tokenize), keep)
    dev = Examples(TASK, TASK.read(path, training=False, tokenize=tokenize), keep)
    network, maker = build(hidden_dim=12)
    config = TaskTrainConfig(epochs=80, patience=80, learning_rate=1e-2, batch_size=4)
    reports = []
    for report in train_model(network, maker, training, dev, config):
        reports.append(report)
        if report.dev.value == 100:
            break
    assert reports[-1].dev.value == 100
    assert reports[-1].dev.details == {"exact match": 100}
    assert reports[0].dev.value < 100
    answers = predict(network, maker, dev)
    assert [answer.text for answer in answers] == ["the river bank", "Minji", "강을", "1998년에"]


def test_raw_text_keeps_its_own_characters_in_the_answer():
    example = QaTask().from_text("Who?\tShe said \u201cno\u201d,  twice .", SimpleTokenizer())
    assert example.context.startswith("She said")
    assert [example.context[a:b] for a, b in example.offsets] == list(example.context_words)
    answer = FoundAnswer("no", 10, 12, 0.5)
    assert QaTask().show(example, answer) == "no\tWho?"
    assert QaTask().as_json(example, answer)["question"] == "Who?"
