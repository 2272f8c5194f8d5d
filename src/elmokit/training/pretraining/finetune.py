"""Domain fine-tuning: continue training a biLM on other text, with its own or another vocabulary.

Source: Peters et al. 2018, section 3.4 and appendix A.1.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmokit.bilm.softmax import FullSoftmax, SoftmaxConfig
from elmokit.corpus.readers import read_sentences
from elmokit.corpus.shards import ShardSet
from elmokit.errors import InputError, Share, as_input_error, refuse
from elmokit.evaluation.perplexity import PerplexityReport, perplexity_of_words
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.files.json_files import jsonable, read_json, write_json
from elmokit.files.sources import STANDARD_INPUT
from elmokit.jobs.job import NOT_RESUMABLE
from elmokit.text.tokenizers.registry import AUTO, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.training.curves import AFTER_FILE, BEFORE_FILE
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.run import TrainingResult, TrainingRun
from elmokit.training.pretraining.run_config import RunConfig, TrainConfig, ValidationConfig
from elmokit.training.pretraining.start import RunOptions, start_run
from elmokit.training.pretraining.validation import stored_report
from elmokit.weights.bilm_tf_options import ORIGINAL_OPTIONS
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(RunConfig):
    """A fine-tuning run, except for its model, corpus and budget.

    The text is split by the model's own tokenizer; ``softmax`` is for a model without one.
    """

    softmax_first_share: Share = 0.3
    """Share of the budget in which only a new softmax is trained, to protect the biLM."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(batch_size=16, num_epochs=1.0))
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=1e-3))
    validation: ValidationConfig = field(default_factory=lambda: ValidationConfig(num_times=4))


@dataclass(frozen=True)
class FinetuneResult:
    """How a fine-tuning run ended; perplexities are over the new model's vocabulary."""

    training: TrainingResult
    before: dict[str, PerplexityReport]
    """``in_domain`` and, given general text, ``out_of_domain``; empty for a new softmax."""
    after: dict[str, PerplexityReport]


def finetune(
    config: FinetuneConfig,
    model_path: str,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen)
    *,
    general: Sequence[Path] = (),
    count_vocab: bool = False,
) -> FinetuneResult:
    """Continue the training of a model on domain text; see `pretrain`.

    A new vocabulary, given in ``options`` or counted from the corpus, keeps the softmax rows of
    shared words. ``general`` is out-of-domain text, to measure forgetting.
    """
    base_dir = find_model(model_path)
    base = load_model(base_dir)
    _check_can_be_finetuned(config, base, base_dir, options.vocab, count_vocab=count_vocab)
    for path in map(Path, general):
        if path == STANDARD_INPUT or path.is_fifo():
            raise InputError(f"--general {path}: the text is read twice. Give a file.")
    base_hash = base.model_hash()
    with start_run(
        "finetune", config, corpus, run_dir, options, tokenizer=base.tokenizer,
        normalization=base.config.char_vocab.normalization,
        fixed_vocab=options.vocab or (None if count_vocab else base.word_vocab),
        base={"path": model_path, "hash": base_hash}, general=general,
    ) as start:  # fmt: skip
        is_main, text_field, text = start.processes.is_main, config.text.field, start.text
        model, is_fresh = with_vocab(
            base, text.vocab, softmax=config.softmax, seed=config.train.seed
        )
        model.training_metadata = _metadata(base, base_dir.name, base_hash)
        # a model of the spelling is learned from words outside the vocabulary
        has_same_words = base.word_vocab is not None and base.word_vocab.sha256 == text.vocab.sha256
        model.spelling = (has_same_words and base.spelling) or text.spelling
        first_share = config.softmax_first_share if is_fresh else 0.0
        run = TrainingRun(start, model, softmax_first_share=first_share)
        before, after, path = {}, {}, run_dir / BEFORE_FILE
        is_resumed = run.updates.progress.step > 0
        if is_main and not is_fresh and is_resumed and path.exists():
            saved = read_json(path, advice=NOT_RESUMABLE).items()
            before = {name: stored_report(report, source=path) for name, report in saved}
        elif is_main and not is_fresh:
            before = _scores(model, text.valid, general, text_field)
            write_json(path, jsonable(before))
        start.processes.barrier()
        result = run.run()
        if is_main:
            after = {} if result.perplexity is None else {"in_domain": result.perplexity}
            tuned = load_model(run_dir).to(start.processes.device)
            after |= _scores(tuned, None, general, text_field)
            write_json(run_dir / AFTER_FILE, jsonable(after))
        start.processes.barrier()
    return FinetuneResult(result, before, after)


def _check_can_be_finetuned(
    config: FinetuneConfig, base: PretrainedBiLM, base_dir: Path, vocab: WordVocab | None,
    *, count_vocab: bool,
) -> None:  # fmt: skip
    """Refuse a model that cannot be trained further, and settings that it decides."""
    keeps_vocab = not count_vocab and vocab in (None, base.word_vocab)
    keeps_softmax = isinstance(base.softmax, FullSoftmax) or (
        base.softmax is not None and keeps_vocab
    )
    tokenizer = config.text.tokenizer.name
    refuse({
        f"{base_dir} has a `lexicon`: only models of bytes are fine-tuned.": (
            base.config.lexicon is not None
        ),
        f"{base_dir} has no vocab.txt. Give a vocabulary (--vocab FILE), or count one from the "
        "corpus (--vocab corpus); its softmax is then trained first.": (
            base.word_vocab is None and vocab is None and not count_vocab
        ),
        "A word-input model reads its vocabulary, too: leave out --vocab.": (
            base.config.char_cnn is None and not keeps_vocab
        ),
        "`softmax` is set, but the model has its own: leave the settings out.": (
            keeps_softmax and config.softmax != SoftmaxConfig()
        ),
        f"`text.tokenizer.name` is {tokenizer!r}, but the model's own is {base.tokenizer.name!r}: "
        "leave the setting out.": tokenizer not in (AUTO, base.tokenizer.name),
    })  # fmt: skip


def _metadata(base: PretrainedBiLM, name: str, base_hash: str) -> dict[str, Any]:
    """Return what a run's training metadata begins with, without scores of tasks."""
    own = dict(base.training_metadata)
    original = {key: own.pop(key) for key in (ORIGINAL_OPTIONS,) if key in own}
    for key in ("scores", "scores_note"):
        own.pop(key, None)
    return {**original, "base_model": {"name": name, "hash": base_hash}, "base": own}


def _scores(
    model: PretrainedBiLM, valid: ShardSet | None, general: Sequence[Path], text_field: str | None
) -> dict[str, PerplexityReport]:
    """Score held-out sentences of the domain and general text, as far as they are given."""
    scores = {}
    if valid is not None:
        scorer = TextScorer(model, precision="fp32")
        scores["in_domain"] = perplexity_of_words(scorer, valid.sentences())
    if general:
        sentences = read_sentences(
            list(general), build_tokenizer(model.tokenizer), text_field=text_field,
            normalization=model.config.char_vocab.normalization,
        )  # fmt: skip
        scorer = TextScorer(model, precision="fp32")
        scores["out_of_domain"] = perplexity_of_words(scorer, sentences)
    return scores


def with_vocab(
    base: PretrainedBiLM, vocab: WordVocab, *, softmax: SoftmaxConfig, seed: int = 0
) -> tuple[PretrainedBiLM, bool]:
    """Return a copy of ``base`` that predicts the words of ``vocab``, and whether it must learn to.

    A new word starts with the row of ``<UNK>`` and a lower bias, such that all new words and
    ``<UNK>`` together keep the probability that ``<UNK>`` had. The copy is thus a language model
    over the new vocabulary from the start, and its perplexity before training is meaningful.
    ``softmax`` is built, with ``seed``, if ``base`` has no softmax whose rows can be kept.
    """
    is_same = base.word_vocab == vocab
    old = base.softmax if isinstance(base.softmax, FullSoftmax) or is_same else None
    config = softmax if old is None else base.softmax_config or softmax
    with as_input_error():  # settings meet the vocabulary's size here
        model = PretrainedBiLM(
            base.config, word_vocab=vocab, softmax_config=config, tokenizer=base.tokenizer,
            warm_text=base.warm_text, training=base.training_metadata,
        )  # fmt: skip
    state = base.state_dict().items()
    bilm_state = {name: tensor for name, tensor in state if not name.startswith("softmax.")}
    model.load_state_dict(bilm_state, strict=False)
    assert model.softmax is not None
    if old is None or base.word_vocab is None:
        log.info("the model has no softmax whose rows can be kept: a new one is trained first")
        model.softmax.reset_parameters(torch.Generator().manual_seed(seed))
        return model, True
    if is_same:
        model.softmax.load_state_dict(old.state_dict())
    else:
        _copy_rows(old, base.word_vocab, model.softmax, vocab)
    return model, False


def _copy_rows(old: Any, old_vocab: WordVocab, new: Any, new_vocab: WordVocab) -> None:
    """Fill the new output layer from the old one's rows; see `with_vocab`."""
    old_ids = old_vocab.encode(new_vocab.words)  # <UNK>'s id for new words
    # what <UNK> had is divided as Zipf's law has it: the k-th word of a vocabulary gets 1 / k
    shares_unknown = torch.from_numpy(old_ids == old_vocab.unknown_id)
    rank = torch.arange(1, len(new_vocab) + 1, dtype=torch.float64)
    zipf = torch.where(shares_unknown, 1 / rank, torch.zeros_like(rank))
    unknown = new_vocab.unknown_id - 1
    zipf[unknown] = 0
    zipf[unknown] = zipf.sum().clamp(min=1e-9)  # <UNK> keeps half, or all if no word is new
    log_share = torch.where(shares_unknown, (zipf / zipf.sum()).log(), torch.zeros_like(rank))
    index = torch.from_numpy(np.asarray(old_ids)) - 1
    with torch.no_grad():
        new.weight.copy_(old.weight[index])
        new.bias.copy_(old.bias[index] + log_share.to(old.bias.dtype))
