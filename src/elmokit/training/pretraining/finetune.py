"""Domain fine-tuning: continue training a biLM on other text, with its own or another vocabulary.

Source: Peters et al. 2018, section 3.4 and appendix A.1.
"""

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.bilm.softmax import FullSoftmax, SoftmaxConfig
from elmokit.corpus.preparation import PreparedText, VocabConfig
from elmokit.corpus.readers import read_sentences
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import ConfigError, InputError
from elmokit.evaluation.perplexity import perplexity_of_words
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.field_checks import check_ranges
from elmokit.files.json_files import jsonable, read_json, write_json
from elmokit.files.sources import STANDARD_INPUT
from elmokit.jobs.identity import FIXED
from elmokit.jobs.job import NOT_RESUMABLE
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.text.tokenizers.registry import AUTO, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.pretrain import RunOptions, start_run
from elmokit.training.pretraining.run import TrainingResult
from elmokit.training.pretraining.run_config import RunConfig, TrainConfig, ValidationConfig
from elmokit.training.pretraining.validation import stored_report
from elmokit.training.pretraining.vocab_transfer import check_vocab, with_vocab
from elmokit.weights.bilm_tf_options import ORIGINAL_OPTIONS
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

BEFORE_FILE, AFTER_FILE = "before.json", "after.json"
"""Perplexities of the base model and of the fine-tuned one, in the run directory."""


@dataclass(frozen=True, kw_only=True)
class FinetuneConfig(RunConfig):
    """A fine-tuning run, except for its model, corpus and budget."""

    text: TextConfig = field(default_factory=TextConfig, metadata=FIXED)
    """``tokenizer`` is not used: the model's own splits the text."""
    vocab: VocabConfig = field(default_factory=VocabConfig, metadata=FIXED)
    """Size of a counted vocabulary."""
    softmax: SoftmaxConfig = field(default_factory=SoftmaxConfig, metadata=FIXED)
    """Only for a model without a softmax."""
    softmax_first_share: float = 0.3
    """Share of the budget in which only a new softmax is trained, to protect the biLM."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(batch_size=16, num_epochs=1.0))
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=1e-3))
    validation: ValidationConfig = field(default_factory=lambda: ValidationConfig(num_times=4))

    def __post_init__(self) -> None:
        check_ranges(self, softmax_first_share=(0.0, 1.0))


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

    Raises:
        InputError: if the model has no vocabulary and none is given or counted.
        ConfigError, FileExistsError, FileNotFoundError, Stopped: as `pretrain`.
    """
    base_dir = find_model(model_path)
    base = load_model(base_dir)
    _check_can_be_finetuned(config, base, base_dir, options.vocab, count_vocab=count_vocab)
    _check_read_twice(general)
    base_hash = base.model_hash()
    with start_run(
        "finetune",
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
        text, processes, seed = started.text, started.processes, config.train.seed
        model, is_fresh = with_vocab(base, text.vocab, softmax=config.softmax, seed=seed)
        model.training_metadata = _metadata(base, base_dir.name, base_hash)
        first_share = config.softmax_first_share if is_fresh else 0.0
        run = started.training(model, softmax_first_share=first_share)
        before, after = {}, {}
        if processes.is_main and not is_fresh:
            before = _before(run_dir, model, text, general, config.text.field)
        processes.barrier()
        result = run.run()
        if processes.is_main:
            after = {} if result.perplexity is None else {"in_domain": result.perplexity}
            tuned = load_model(run_dir).to(processes.device)
            after |= _of_general(tuned, general, config.text.field)
            _leave_out_another_text(before, after)
            write_json(run_dir / AFTER_FILE, jsonable(after))
        processes.barrier()
    return FinetuneResult(result, before, after)


def _check_can_be_finetuned(
    config: FinetuneConfig,
    base: PretrainedBiLM,
    base_dir: Path,
    vocab: WordVocab | None,
    *,
    count_vocab: bool,
) -> None:
    """Refuse a model that cannot be trained further, and settings that it decides."""
    if base.config.lexicon is not None:
        raise InputError(
            f"{base_dir} reads characters and words by lists (config.json, `lexicon`), and only "
            "models of bytes are fine-tuned."
        )
    if base.word_vocab is None and vocab is None and not count_vocab:
        raise InputError(
            "This model has no vocab.txt, so there is nothing to predict. If the file was lost, "
            "put it back into the model directory; if the model never had one, give a vocabulary "
            "(--vocab FILE) or count one from the corpus (--vocab corpus); its softmax is then "
            "trained first."
        )
    if vocab is not None or count_vocab:
        check_vocab(base, None if count_vocab else vocab)
    keeps_vocab = not count_vocab and vocab in (None, base.word_vocab)
    keeps_softmax = isinstance(base.softmax, FullSoftmax) or (
        base.softmax is not None and keeps_vocab
    )
    if config.softmax != SoftmaxConfig() and keeps_softmax:
        raise ConfigError(
            "`softmax` is set (with --set or in the recipe), but the model has one, which is "
            "trained further as it is. Leave the settings out."
        )
    if config.text.tokenizer.name not in (AUTO, base.tokenizer.name):
        raise ConfigError(
            f"`text.tokenizer.name` is {config.text.tokenizer.name!r} (by --set or in the recipe), "
            f"but fine-tuning splits text with the model's own tokenizer {base.tokenizer.name!r}. "
            "Leave the setting out."
        )


def _check_read_twice(general: Sequence[Path]) -> None:
    for path in map(Path, general):
        if path == STANDARD_INPUT or (path.exists() and not (path.is_file() or path.is_dir())):
            raise InputError(
                f"--general {path}: the text is read twice, before and after the training. Give a "
                "file."
            )


def _metadata(base: PretrainedBiLM, name: str, base_hash: str) -> dict[str, Any]:
    """Return the training metadata that a run begins with, without the base model's task scores.

    The original's options stay where `write_bilm_tf` looks for them.
    """
    metadata = base.training_metadata.items()
    kept = {key: value for key, value in metadata if key not in ("scores", "scores_note")}
    original = {key: kept.pop(key) for key in (ORIGINAL_OPTIONS,) if key in kept}
    return {**original, "base_model": {"name": name, "hash": base_hash}, "base": kept}


def _before(
    run_dir: Path,
    model: PretrainedBiLM,
    text: PreparedText,
    general: Sequence[Path],
    text_field: str | None,
) -> dict[str, PerplexityReport]:
    """Score what the run scores at its end, once; a resumed run reads the result from the file."""
    path = run_dir / BEFORE_FILE
    if path.exists():
        saved = read_json(path, advice=NOT_RESUMABLE)
        if general and "out_of_domain" not in saved:
            log.warning(
                "--general was not given when the run began: the base model is not scored on it"
            )
        return {
            name: stored_report(report, source=f"{path}, {name}") for name, report in saved.items()
        }
    reports = {}
    if text.valid is not None:
        reports["in_domain"] = _perplexity(model, text.valid.sentences())
    reports |= _of_general(model, general, text_field)
    write_json(path, jsonable(reports))
    return reports


def _of_general(
    model: PretrainedBiLM, general: Sequence[Path], text_field: str | None
) -> dict[str, PerplexityReport]:
    if not general:
        return {}
    tokenizer, form = build_tokenizer(model.tokenizer), model.config.char_vocab.normalization
    sentences = read_sentences(list(general), tokenizer, normalization=form, text_field=text_field)
    return {"out_of_domain": _perplexity(model, sentences)}


def _perplexity(model: PretrainedBiLM, sentences: Iterable[Sequence[str]]) -> PerplexityReport:
    return perplexity_of_words(TextScorer(model, precision="fp32"), sentences)


def _leave_out_another_text(
    before: dict[str, PerplexityReport], after: dict[str, PerplexityReport]
) -> None:
    """Remove the perplexity before the training if it is of other general text than that after.

    Texts are told apart by their numbers of words and sentences.
    """
    texts = {
        (one["out_of_domain"].tokens, one["out_of_domain"].sentences)
        for one in (before, after)
        if "out_of_domain" in one
    }
    if len(texts) > 1:
        log.warning(
            "--general is another text than when the run began: the base model is not scored on it"
        )
        del before["out_of_domain"]
