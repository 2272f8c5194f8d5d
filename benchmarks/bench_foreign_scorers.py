"""Minimal pairs by minicons and the LM Evaluation Harness, unchanged, against `elmokit pairs`.

    pip install minicons lm-eval
    python benchmarks/bench_foreign_scorers.py pairs.jsonl --direction backward --pairs 500

`ElmoForCausalLM` is written to a folder, from which both programs load it. Their scores of a
sentence are compared with those of `elmokit pairs`, in nats, and their decisions pair by pair. The
harness adds no sentence end, so the task's choices end with it.
"""

# pyright: reportMissingImports=false

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import new_parser, print_result

from elmokit.evaluation.pairs import TIE_BITS, Pair, read_pairs, score_pairs
from elmokit.evaluation.text_scorer import open_scorer

# registers the classes, so that the programs need not be told to trust the folder's code
from elmokit.integrations.transformers import ElmoForCausalLM, ElmoWordTokenizer


def by_minicons(folder: str, pairs: list[Pair], batch_size: int) -> np.ndarray:
    """Return log-probabilities (2, N) of the good and the bad sentences."""
    from minicons.scorer import IncrementalLMScorer

    scorer = IncrementalLMScorer(folder, "cpu")
    scores = []
    for sentences in ([pair.good for pair in pairs], [pair.bad for pair in pairs]):
        for first in range(0, len(sentences), batch_size):
            batch = sentences[first : first + batch_size]
            scores += scorer.sequence_score(batch, reduction=lambda one: one.sum().item())
    return np.array(scores).reshape(2, -1)


def by_harness(folder: str, pairs: list[Pair], batch_size: int) -> np.ndarray:
    """Return log-probabilities (2, N) of the good and the bad sentences."""
    from lm_eval import simple_evaluate

    end = ElmoWordTokenizer.from_pretrained(folder).eos_token
    path = Path(folder) / "pairs.jsonl"
    rows = [{"good": f"{pair.good} {end}", "bad": f"{pair.bad} {end}"} for pair in pairs]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = {
        "task": "pairs",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "",
        "target_delimiter": "",
        "doc_to_target": 0,
        "doc_to_choice": "{{[good, bad]}}",
        "metric_list": [{"metric": "acc"}],
    }
    results: Any = simple_evaluate(
        model="hf", model_args={"pretrained": folder, "dtype": "float32"}, tasks=[task],
        device="cpu", batch_size=batch_size, log_samples=True, bootstrap_iters=0,
    )  # fmt: skip
    samples = sorted(results["samples"]["pairs"], key=lambda sample: sample["doc_id"])
    return np.array([[float(one[0]) for one in sample["filtered_resps"]] for sample in samples]).T


def agreement(found: np.ndarray, own: np.ndarray) -> dict[str, Any]:
    """Compare log-probabilities and decisions; ties of ours are no decisions."""
    gap = own[0] - own[1]
    is_tie = np.abs(gap) * np.log2(np.e) < TIE_BITS
    same = np.sign(found[0] - found[1]) == np.sign(gap)
    return {
        "same_decisions": int((same | is_tie).sum()),
        "largest_difference_nats": float(np.abs(found - own).max()),
        "accuracy": float((found[0] > found[1]).mean()),
    }


def main() -> None:
    """Score with all three and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", default="en")
    parser.add_argument("--direction", choices=("forward", "backward"), default="forward")
    parser.add_argument("--pairs", type=int, help="only so many, from all over the file")
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()
    pairs = read_pairs(options.file)
    pairs = pairs[:: max(1, len(pairs) // (options.pairs or len(pairs)))]
    torch.set_num_threads(1)
    scorer, tokenizer = open_scorer(options.model, precision="fp32")
    scores = score_pairs(scorer, tokenizer, pairs)
    row = ("forward", "backward").index(options.direction)
    own = -np.stack([scores.good[row], scores.bad[row]]) / np.log2(np.e)
    with tempfile.TemporaryDirectory() as folder:
        for kind in (ElmoForCausalLM, ElmoWordTokenizer):
            kind.from_elmokit(options.model, direction=options.direction).save_pretrained(folder)
        found = {
            "minicons": by_minicons(folder, pairs, options.batch_size),
            "lm-eval": by_harness(folder, pairs, options.batch_size),
        }
    print_result(
        "foreign_scorers",
        {"pairs": len(pairs), "with_unknown_words": int(scores.has_unknown.sum())},
        {
            "direction": options.direction,
            "accuracy": float((own[0] > own[1]).mean()),
            "programs": {name: version(name) for name in ("minicons", "lm-eval", "transformers")},
            **{name: agreement(part, own) for name, part in found.items()},
        },
    )


if __name__ == "__main__":
    main()
