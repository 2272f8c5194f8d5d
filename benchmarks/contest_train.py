"""Pre-train one arm of the contest for so many minutes of one processor core.

    python benchmarks/contest_train.py lstm RUN/shards --vocab vocab.txt --minutes 15 -o lstm-0.pt

RUN is what `elmokit pretrain` leaves. The rate is constant for the first half of the time and then
falls to zero. Time is that of the processor, all included.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from contest_networks import ARMS, Arm
from torch import nn

from elmokit.bilm.config import SoftmaxConfig
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.stream import WindowStream
from elmokit.text.word_vocab import WordVocab
from elmokit.training.cpu_settings import kept_memory
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.loss import WindowTensors
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.schedules import ScheduleConfig
from elmokit.weights.model_dir import PretrainedBiLM

SHAPE = ["model.lstm.cell_dim=768", "model.lstm.projection_dim=192"]
SCHEDULE = ScheduleConfig(kind="wsd", warmup_share=0.02, decay_share=0.5, final_factor=0.0)


def new_arm(name: str, vocab: WordVocab, seed: int) -> Arm:
    """Return an untrained arm."""
    torch.manual_seed(seed)
    config = pretrain_config("tiny", overrides=SHAPE)
    softmax = SoftmaxConfig(num_samples=4096)
    model = PretrainedBiLM(config.model, word_vocab=vocab, softmax_config=softmax)
    generator = torch.Generator().manual_seed(seed)
    model.reset_parameters(generator)
    assert model.softmax is not None
    model.softmax.reset_parameters(generator)
    return ARMS[name](model, seed)


def train(
    arm: Arm, shards: ShardSet, vocab: WordVocab, seconds: float, rate: float
) -> dict[str, float]:
    """Train an arm; return how much it read, and its mean loss in the last tenth of the time."""
    optimizer = OptimizerConfig(name="muon", learning_rate=rate).build(arm)
    stream = WindowStream(
        shards, vocab, arm.characters, batch_size=arm.rows, num_steps=arm.steps,
        seed=arm.seed, restart_share=arm.restart_share,
    )  # fmt: skip
    losses, started = [], time.process_time()
    for step, (window, _) in enumerate(stream):
        share = (time.process_time() - started) / seconds if seconds else 1.0
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate * SCHEDULE.factor(share)
        batch = WindowTensors.from_batch(window, word_input=False, device=torch.device("cpu"))
        with torch.autocast("cpu", torch.bfloat16):
            loss = arm.loss(batch, step)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(arm.parameters(), 1.0)
        optimizer.step()
        losses.append((share, loss.item()))
        if step % 100 == 0:
            print(f"{share:.1%} step {step} loss {loss.item():.3f}", file=sys.stderr, flush=True)
    facts: dict[str, float] = {
        "updates": len(losses), "words": len(losses) * arm.rows * arm.steps,
    }  # fmt: skip
    if losses:
        last = [loss for share, loss in losses if share >= 0.9] or [losses[-1][1]]
        facts |= {"first_loss": losses[0][1], "loss": sum(last) / len(last)}
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("arm", choices=ARMS)
    parser.add_argument("shards", type=Path)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    vocab = WordVocab.read(options.vocab)
    arm = new_arm(options.arm, vocab, options.seed)
    rate = options.rate or arm.rate
    with kept_memory():
        facts = train(arm, ShardSet.open(options.shards), vocab, options.minutes * 60, rate)
    facts |= {"minutes": options.minutes, "rate": rate, "seed": options.seed}
    torch.save({"arm": options.arm, "facts": facts, "weights": arm.state_dict()}, options.output)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
