"""biLM pre-training: from raw text to a model directory, resumable at any moment."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.corpus.preparation import PreparedText
from elmokit.errors import as_input_error
from elmokit.jobs.identity import FIXED
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.training.pretraining.run import TrainingResult, TrainingRun
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.start import RunOptions, start_run
from elmokit.weights.model_dir import PretrainedBiLM


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig):
    """A pre-training run, except for its corpus and budget."""

    model: BiLMConfig = field(default_factory=BiLMConfig, metadata=FIXED)


def pretrain(
    config: PretrainConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen)
) -> TrainingResult:
    """Train a biLM on raw text; ``run_dir`` is a model directory at the end.

    ``corpus`` is text files, or one directory of finished shards. In fp32 on the CPU, with a budget
    in epochs or tokens, a resumed run has bit for bit the losses of one that was never stopped.
    `ConfigError` if a resumed run has another model, text, vocabulary or batch; `FileExistsError`
    if ``run_dir`` holds a run and ``resume`` is not set; `Stopped` after a signal.
    """
    with start_run(
        "pretrain",
        config,
        corpus,
        run_dir,
        options,
        tokenizer=config.text.tokenizer,
        normalization=config.model.char_vocab.normalization,
        fixed_vocab=options.vocab,
    ) as start:
        return TrainingRun(start, new_model(config, start.text)).run()


def new_model(config: PretrainConfig, text: PreparedText) -> PretrainedBiLM:
    """Build an untrained model for prepared text."""
    num_words = None if config.model.char_cnn is not None else len(text.vocab)
    characters, tokenizer = config.model.char_vocab, config.text.tokenizer
    form = text.shards.metadata.get("normalization", characters.normalization)
    with as_input_error():  # settings meet the vocabulary's size and the shards here
        characters = replace(characters, normalization=form)
        model = PretrainedBiLM(
            replace(config.model, num_words=num_words, char_vocab=characters),
            word_vocab=text.vocab,
            softmax_config=config.softmax,
            # finished shards may have another tokenizer than the configuration
            tokenizer=text.shards.tokenizer
            or replace(tokenizer, name=build_tokenizer(tokenizer).name),
            warm_text=text.warm_text(),
        )
    model.spelling = text.spelling
    generator = torch.Generator().manual_seed(config.train.seed)
    model.reset_parameters(generator)
    assert model.softmax is not None
    model.softmax.reset_parameters(generator)
    return model
