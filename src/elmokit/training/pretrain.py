"""biLM pre-training: from raw text to a model directory, resumable at any moment."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from elmokit.nn.bilm import BiLMConfig
from elmokit.nn.softmax import SoftmaxConfig
from elmokit.text.tokenizers import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.training.distributed import world
from elmokit.training.prepare import (
    PreparedText,
    TextConfig,
    VocabConfig,
    check_files,
    open_text,
    prepare_text,
    vocab_origin,
)
from elmokit.training.run import RunConfig, TrainingEvent, TrainingResult, TrainingRun
from elmokit.training.run_dir import absolute_paths, is_recorded, open_run, record_run
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import PretrainedBiLM


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig):
    """Everything about a pre-training run but its corpus and its budget."""

    text: TextConfig = field(default_factory=TextConfig)
    vocab: VocabConfig = field(default_factory=VocabConfig)
    model: BiLMConfig = field(default_factory=BiLMConfig)
    softmax: SoftmaxConfig = field(default_factory=SoftmaxConfig)


def pretrain(
    config: PretrainConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    *,
    limits: Limits | None = None,
    valid: Sequence[Path] = (),
    vocab: WordVocab | None = None,
    resume: bool = False,
    device: str = "auto",
    on_event: Callable[[TrainingEvent], None] | None = None,
) -> TrainingResult:
    """Train a biLM on raw text.

    Args:
        config: The run.
        corpus: Text files, or one directory of finished shards.
        run_dir: Where everything is written; becomes a model directory at the end.
        limits: How long to train.
        valid: Validation text; none: a few sentences of the corpus are held out.
        vocab: Words to predict; none: counted from the corpus.
        resume: Go on from the last checkpoint in ``run_dir``; with fp32 on CPU and a budget in
            epochs or tokens the losses are, bit for bit, those of a run that was never stopped.
        device: ``auto``, ``cpu`` or ``cuda``. Under `torchrun` every process takes its own.
        on_event: Called on rank 0.

    Raises:
        ValueError: if the corpus is smaller than one batch.
        ConfigError: if ``resume`` meets another model, text, vocabulary or batch, or the processes
            cannot share the batch.
        FileExistsError: if ``run_dir`` holds a run and ``resume`` is not set, or other files.
        FileNotFoundError: if there is no such text.
    """
    origin = {
        "corpus": absolute_paths(corpus),
        "valid": absolute_paths(valid),
        "vocab": vocab_origin(vocab),
    }
    with world(device) as processes:
        config.train.rows_per_process(processes.size)
        if processes.is_main:
            if not (resume and is_recorded(run_dir)):
                check_files(corpus, valid)
            open_run(run_dir, config, origin, resume=resume)
            if not is_recorded(run_dir):
                prepare_text(
                    corpus,
                    run_dir,
                    text=config.text,
                    vocab=config.vocab,
                    normalization=config.model.char_vocab.normalization,
                    valid=valid,
                    fixed_vocab=vocab,
                )
        processes.barrier()
        text = open_text(corpus, run_dir)
        run = TrainingRun(
            config,
            text,
            new_model(config, text),
            run_dir,
            processes,
            limits or Limits(),
            resume=resume,
        )
        if processes.is_main:
            record_run(run_dir, config, origin)
        return run.run(on_event)


def new_model(config: PretrainConfig, text: PreparedText) -> PretrainedBiLM:
    """Build a model with fresh weights for prepared text."""
    num_words = None if config.model.char_cnn is not None else len(text.vocab)
    model = PretrainedBiLM(
        dataclasses.replace(config.model, num_words=num_words),
        word_vocab=text.vocab,
        softmax_config=config.softmax,
        tokenizer=_tokenizer_of(config, text),
        warm_text=text.warm_text(),
    )
    generator = torch.Generator().manual_seed(config.train.seed)
    model.reset_parameters(generator)
    assert model.softmax is not None
    model.softmax.reset_parameters(generator)
    return model


def _tokenizer_of(config: PretrainConfig, text: PreparedText) -> TokenizerConfig:
    """Return what the shards were made with; finished shards may differ from the configuration."""
    facts = text.shards.metadata.get("tokenizer")
    return config.text.tokenizer if facts is None else TokenizerConfig(**facts)
