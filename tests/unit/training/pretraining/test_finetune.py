"""Fine-tuning: changed vocabularies, a fresh softmax, perplexities before and after."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from elmokit.bilm.softmax import FullSoftmax, SoftmaxConfig
from elmokit.corpus.preparation import VocabConfig
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import FormatError, InputError
from elmokit.evaluation.perplexity import perplexity
from elmokit.files.sources import describe_files
from elmokit.jobs.job import MARK
from elmokit.text.spelling import SpellingModel
from elmokit.text.word_vocab import WordVocab
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.finetune import FinetuneConfig, finetune, with_vocab
from elmokit.training.pretraining.run import RunOptions
from elmokit.training.pretraining.run_config import TrainConfig, ValidationConfig
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import load_model

from ....builders.training_models import WORDS, random_sentences, toy_model, write_text

FULL = SoftmaxConfig(kind="full")
CONFIG = FinetuneConfig(
    vocab=VocabConfig(min_count=1),
    train=TrainConfig(batch_size=4, unroll_steps=5, log_steps=1),
    optimizer=OptimizerConfig(learning_rate=0.02),
    validation=ValidationConfig(num_times=2),
)
SHORT = Limits(tokens=10 * 4 * 5)
DOMAIN = [["the", "ship", "is", "unseen"], ["a", "ship", "of", "money"]] * 40
LARGER = WordVocab(["<S>", "</S>", "<UNK>", "ship", *reversed(WORDS), "unseen", "port"])
"""All words of the toy model in another order, and three new ones."""


@pytest.fixture
def run(tmp_path):
    """Fine-tune a toy model, which is stored first, on sentences."""

    def run(sentences=DOMAIN, *, base=None, config=CONFIG, name="tuned", **settings):
        (toy_model() if base is None else base).save(tmp_path / "base")
        text = write_text(tmp_path / "domain.txt", sentences)
        own = {key: settings.pop(key) for key in ("general", "count_vocab") if key in settings}
        options = RunOptions(limits=SHORT, device="cpu", **settings)
        return finetune(config, str(tmp_path / "base"), [text], tmp_path / name, options, **own)

    return run


def probs(model, hidden):
    """The probability of every word at every position, by word."""
    logits = hidden @ model.softmax.weight.T + model.softmax.bias
    values = logits.softmax(dim=1).detach()
    return {word: values[:, row] for row, word in enumerate(model.word_vocab.words)}


def assert_same_bilm(model, base):
    for name, value in base.state_dict().items():
        if not name.startswith("softmax."):
            assert torch.equal(model.state_dict()[name], value), name


def test_text_of_another_language_is_refused_before_an_update(run):
    with pytest.raises(FormatError, match=r"unknown.*--vocab"):
        run([["ein", "anderer", "Text"] * 8] * 30)


def test_replayed_text_is_trained_on_and_not_validated_on(run, tmp_path):
    general = write_text(tmp_path / "general.txt", [["money", "boat", "of"]] * 7)
    config = replace(CONFIG, text=TextConfig(replay=str(general), replay_share=0.25))
    run([["river", "bank"]] * 200, config=config)
    trained, validated = (
        list(itertools.chain.from_iterable(ShardSet.open(tmp_path / "tuned" / name).sentences()))
        for name in ("shards", "valid")
    )
    assert trained.count("boat") * 3 == pytest.approx(0.25 * len(trained), abs=3)
    assert set(validated) == {"river", "bank"}
    told = load_model(tmp_path / "tuned").training_metadata["general_text"]
    assert told == {"share": 0.25, "sources": describe_files([general])}
    shards = tmp_path / "tuned/shards"
    with pytest.raises(InputError, match=r"text\.replay"):
        finetune(config, str(tmp_path / "base"), [shards], tmp_path / "second")


def test_replayed_text_is_no_pipe(run):
    config = replace(CONFIG, text=TextConfig(replay="-"))
    with pytest.raises(InputError, match=r"text\.replay -: .*repeatedly"):
        run(config=config)


def test_known_words_keep_their_probability_and_new_ones_share_that_of_unk():
    hidden = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    base = toy_model()
    model, is_fresh = with_vocab(base, LARGER, softmax=FULL)
    assert not is_fresh
    before, after = probs(base, hidden), probs(model, hidden)
    for word in (*WORDS, "<S>", "</S>"):
        torch.testing.assert_close(after[word], before[word])
    new = after["ship"] + after["unseen"] + after["port"]
    torch.testing.assert_close(after["<UNK>"], before["<UNK>"] / 2)
    torch.testing.assert_close(new, before["<UNK>"] / 2)
    assert (after["ship"] > after["unseen"]).all(), "frequent words get more"
    assert (after["unseen"] > after["port"]).all()


@pytest.mark.parametrize("base", [
    {"vocab": None, "softmax": None}, {"softmax": None},
    {"softmax": SoftmaxConfig(kind="adaptive")},
])  # fmt: skip
def test_without_rows_to_keep_the_softmax_is_fresh(base):
    base = toy_model(**base)
    model, is_fresh = with_vocab(base, LARGER, softmax=FULL, seed=3)
    again, _ = with_vocab(base, LARGER, softmax=FULL, seed=3)
    assert is_fresh
    assert type(model.softmax) is FullSoftmax
    assert torch.equal(model.softmax.weight, again.softmax.weight)
    assert_same_bilm(model, base)


def test_perplexity_falls_in_the_domain_and_a_resumed_run_reports_what_was_before(run, tmp_path):
    def stop(event):
        if event.report.progress.step == 2:
            raise InterruptedError

    config = replace(CONFIG, train=replace(CONFIG.train, checkpoint_steps=1))

    general = [write_text(tmp_path / "general.txt", random_sentences(20))]
    with pytest.raises(InterruptedError):
        run(general=general, on_event=stop, config=config)
    path = tmp_path / "tuned" / "before.json"
    saved = json.loads(path.read_text())
    saved["in_domain"]["forward"] = None  # infinite
    path.write_text(json.dumps(saved))
    result = run(general=general, resume=True, config=config)
    assert result.before["in_domain"].mean == saved["in_domain"]["mean"]
    assert result.before["in_domain"].forward == np.inf
    assert result.after["in_domain"].mean < 0.8 * result.before["in_domain"].mean
    expected = perplexity(toy_model(), random_sentences(20), precision="fp32").mean
    assert result.before["out_of_domain"].mean == pytest.approx(expected, rel=1e-5)


def test_what_was_before_is_scored_anew_in_a_run_that_begins(run, tmp_path):
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / MARK).touch()  # left by a run that failed
    (tmp_path / "tuned" / "before.json").write_text('{"in_domain": {"mean": 1.5}}')
    assert run().before["in_domain"].mean > 2


def test_a_fresh_softmax_is_trained_first(run, tmp_path):
    """With a share of nearly everything, the biLM comes out as it went in."""
    base = toy_model(vocab=None, softmax=None)
    run(base=base, count_vocab=True, config=replace(CONFIG, softmax=FULL, softmax_first_share=1.0))
    assert_same_bilm(load_model(tmp_path / "tuned"), base)


def test_spellings_are_kept_or_learned(run, tmp_path):
    run(name="learned")
    learned = load_model(tmp_path / "learned").spelling
    assert learned is not None
    base = toy_model()
    base.spelling = SpellingModel.train(["walking"])
    run(base=base)
    kept = load_model(tmp_path / "tuned").spelling
    assert kept.sha256 == base.spelling.sha256 != learned.sha256
