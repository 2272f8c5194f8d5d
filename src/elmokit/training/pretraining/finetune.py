"""Domain fine-tuning: continue a biLM on other text, with its vocabulary or a changed one.

Source: Peters et al. 2018, section 3.4 and appendix A.1 (one epoch on the task's text; perplexity
    before and after).
"""

import dataclasses
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmokit.bilm.softmax import FullSoftmax, SoftmaxConfig
from elmokit.corpus.preparation import PreparedText, VocabConfig
from elmokit.corpus.readers import read_sentences
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import ConfigError, InputError, as_input_error
from elmokit.evaluation.perplexity import perplexity
from elmokit.files.json_files import read_json, write_json
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.run import TrainingResult
from elmokit.training.pretraining.run_config import RunConfig, TrainConfig
from elmokit.training.pretraining.run_dir import NOT_RESUMABLE
from elmokit.training.pretraining.start import RunOptions, start_run
from elmokit.training.pretraining.validation import ValidationConfig
from elmokit.weights.bilm_tf_options import ORIGINAL_OPTIONS
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

BEFORE_FILE = "before.json"


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(RunConfig):
    """Everything about a fine-tuning run but its model, corpus and budget.

    By default one epoch in small batches.
    """

    text: TextConfig = field(default_factory=TextConfig)
    """``tokenizer`` is not used: the model's own splits the text."""
    vocab: VocabConfig = field(default_factory=VocabConfig)
    """Size of a vocabulary that is counted."""
    softmax: SoftmaxConfig = field(default_factory=SoftmaxConfig)
    """Only for a model that came without a softmax."""
    softmax_first_share: float = 0.3
    """Share of the budget in which a fresh softmax is trained alone, to protect the biLM."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(batch_size=16, num_epochs=1.0))
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=1e-3))
    validation: ValidationConfig = field(default_factory=lambda: ValidationConfig(num_times=4))


@dataclass(frozen=True)
class FinetuneResult:
    """How a fine-tuning run ended. All perplexities are over the new model's vocabulary."""

    training: TrainingResult
    before: dict[str, PerplexityReport]
    """``in_domain`` and, given general text, ``out_of_domain``; empty for a fresh softmax."""
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
    """Continue the training of a model on domain text.

    Args:
        config: The run.
        model_path: The model to start from.
        corpus: Domain text.
        run_dir: Where everything is written; becomes a model directory at the end.
        options: How long, on what device, and so on; with ``vocab``, rows of shared words are kept.
        general: Out-of-domain text, to see what is forgotten.
        count_vocab: Count a vocabulary of the corpus instead; needed for a model that came without
            one.

    Raises:
        ValueError: if the model has no vocabulary and none is given or counted.
        ConfigError: if ``resume`` meets another model, text, vocabulary or batch, or the processes
            cannot share the batch.
        FileExistsError: if ``run_dir`` holds a run and ``resume`` is not set, or other files, or if
            another process trains there.
        FileNotFoundError: if there is no such text.
        Stopped: after a signal and the checkpoint that it asked for.
    """
    base_dir = find_model(model_path)
    base = load_model(base_dir)
    if base.word_vocab is None and options.vocab is None and not count_vocab:
        raise InputError(
            "This model has no vocab.txt, so there is nothing to predict. If it once had, put that "
            "file back into the model directory; if it came without a vocabulary, give one "
            "(--vocab FILE) or let it be counted from the corpus (--vocab corpus); its softmax is "
            "then trained first."
        )
    base_hash = base.model_hash()
    with start_run(
        config,
        corpus,
        run_dir,
        options,
        text=dataclasses.replace(config.text, tokenizer=base.tokenizer),
        vocab=config.vocab,
        normalization=base.config.char_vocab.normalization,
        fixed_vocab=options.vocab or (None if count_vocab else base.word_vocab),
        model={"path": model_path, "hash": base_hash},
        other_text=general,
    ) as started:
        text, processes = started.text, started.processes
        model, is_fresh = with_vocab(
            base, text.vocab, softmax=config.softmax, seed=config.train.seed
        )
        model.training_metadata = _metadata(base, base_dir.name, base_hash)
        run = started.training(
            model, softmax_first_share=config.softmax_first_share if is_fresh else 0.0
        )
        before: dict[str, PerplexityReport] = {}
        if processes.is_main and not is_fresh:
            before = _before(run_dir, lambda: _perplexities(model, text, general))
        processes.barrier()
        result = run.run(options.on_event, save_on_signals=options.save_on_signals)
        after: dict[str, PerplexityReport] = {}
        if processes.is_main:
            after = _perplexities(load_model(run_dir).to(processes.device), text, general)
        processes.barrier()
    return FinetuneResult(result, before, after)


def _metadata(base: PretrainedBiLM, name: str, base_hash: str) -> dict[str, Any]:
    """Return the training metadata that a run begins with.

    The original's options stay where `write_bilm_tf` looks for them; task scores stay behind.
    """
    kept = {
        key: value
        for key, value in base.training_metadata.items()
        if key not in ("scores", "scores_note")
    }
    original = {key: kept.pop(key) for key in (ORIGINAL_OPTIONS,) if key in kept}
    return {**original, "base_model": {"name": name, "hash": base_hash}, "base": kept}


def with_vocab(
    base: PretrainedBiLM, vocab: WordVocab, *, softmax: SoftmaxConfig, seed: int = 0
) -> tuple[PretrainedBiLM, bool]:
    """Return a copy of ``base`` that predicts the words of ``vocab``.

    Rows of shared words are kept. A new word starts as a share of ``<UNK>``: the same row, and a
    bias lowered so that all new words and ``<UNK>`` together keep the probability that ``<UNK>``
    had. So the copy is a language model over the new vocabulary from the start, and perplexities
    before and after training can be compared.

    Args:
        base: The model; not changed.
        vocab: The words to predict, by falling frequency.
        softmax: The output layer to build where ``base`` has none whose rows could be kept.
        seed: Of a fresh output layer.

    Returns:
        The copy, and whether its softmax is fresh.

    Raises:
        ConfigError: if a word-input model would need another input vocabulary.
    """
    if base.config.char_cnn is None and base.word_vocab != vocab:
        raise ConfigError(
            "A word-input model reads its vocabulary too, so it cannot be changed in fine-tuning."
        )
    kept = (
        base.softmax if isinstance(base.softmax, FullSoftmax) or base.word_vocab == vocab else None
    )
    if kept is None or base.word_vocab is None:
        log.info("the model has no softmax whose rows could be kept: a fresh one is trained first")
    config = (
        base.softmax_config if kept is not None and base.softmax_config is not None else softmax
    )
    with as_input_error():  # settings meet the vocabulary's size here
        model = PretrainedBiLM(
            base.config,
            word_vocab=vocab,
            softmax_config=config,
            tokenizer=base.tokenizer,
            warm_text=base.warm_text,
            training=base.training_metadata,
        )
    bilm_state = {
        name: tensor
        for name, tensor in base.state_dict().items()
        if not name.startswith("softmax.")
    }
    model.load_state_dict(bilm_state, strict=False)
    assert model.softmax is not None
    if kept is None or base.word_vocab is None:
        model.softmax.reset_parameters(torch.Generator().manual_seed(seed))
        return model, True
    if base.word_vocab == vocab:
        model.softmax.load_state_dict(kept.state_dict())
    else:
        _carry_rows(kept, base.word_vocab, model.softmax, vocab)
    return model, False


def _carry_rows(old: Any, old_vocab: WordVocab, new: Any, new_vocab: WordVocab) -> None:
    """Fill the new output layer from the old one's rows; see `with_vocab`."""
    old_ids = old_vocab.encode(new_vocab.words)  # <UNK>'s id for words that are new
    shares_unknown = torch.from_numpy(old_ids == old_vocab.unknown_id)
    rank = torch.arange(1, len(new_vocab) + 1, dtype=torch.float64)
    zipf = torch.where(shares_unknown, 1 / rank, torch.zeros_like(rank))
    unknown = new_vocab.unknown_id - 1
    zipf[unknown] = 0
    zipf[unknown] = zipf.sum().clamp(min=1e-9)  # <UNK> itself keeps half, all if no word is new
    log_share = torch.where(shares_unknown, (zipf / zipf.sum()).log(), torch.zeros_like(rank))
    index = torch.from_numpy(np.asarray(old_ids)) - 1
    with torch.no_grad():
        new.weight.copy_(old.weight[index])
        new.bias.copy_(old.bias[index] + log_share.to(old.bias.dtype))


def _perplexities(
    model: PretrainedBiLM, text: PreparedText, general: Sequence[Path]
) -> dict[str, PerplexityReport]:
    """Score held-out domain text and general text."""
    reports = {}
    if text.valid is not None:
        reports["in_domain"] = perplexity(model, text.valid.sentences())
    if general:
        sentences = read_sentences(
            list(general),
            build_tokenizer(model.tokenizer),
            normalization=model.config.char_vocab.normalization,
        )
        reports["out_of_domain"] = perplexity(model, sentences)
    return reports


def _before(
    run_dir: Path, measure: Callable[[], dict[str, PerplexityReport]]
) -> dict[str, PerplexityReport]:
    """Measure once; a resumed run reads what the first one measured."""
    path = run_dir / BEFORE_FILE
    if path.exists():
        return {
            name: PerplexityReport(**report)
            for name, report in read_json(path, advice=NOT_RESUMABLE).items()
        }
    reports = measure()
    write_json(path, {name: dataclasses.asdict(report) for name, report in reports.items()})
    return reports
