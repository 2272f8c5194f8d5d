"""Each module has a test file of its own, or the table below says which tests cover it.

A module `a/b.py` of the package has `tests/unit/a/test_b.py`. One that has none is covered by the
tests of what it is a part of, where its behavior shows. A new module needs the one or the other.
"""

import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src/elmokit"

COVERED_BY = {
    # Commands read arguments, call one function and print: they are run as users run them.
    "e2e/test_embed_command.py": "cli/commands/bench cli/commands/embed",
    "e2e/test_info_and_cache_commands.py": ("cli/commands/cache cli/descriptions"),
    "e2e/test_inspection_commands.py": (
        "cli/commands/explore cli/commands/predict_word cli/commands/surprisal"
        " cli/commands/plot cli/commands/tokenize cli/commands/trace"
    ),
    "e2e/test_pretrain_command.py": (
        "cli/commands/finetune cli/commands/perplexity cli/commands/pretrain"
    ),
    "e2e/test_probe_commands.py": (
        "cli/commands/neighbors cli/commands/probe cli/commands/weights probes/registry"
        " probes/word_neighbors"
    ),
    "e2e/test_serve_command.py": "cli/commands/serve",
    "e2e/test_task_commands.py": "cli/commands/evaluate cli/commands/predict cli/commands/train",
    "e2e/test_vectors_command.py": "cli/commands/vectors",
    "project/test_command_line.py": "cli/options",
    "unit/cli/test_init.py": "version",
    "unit/training/test_trackers.py": "cli/commands/track",
    # Members of families, which all pass the same tests.
    "contracts/test_tasks.py": ("tasks/registry tasks/srl tasks/task tasks/runs/config"),
    "contracts/test_tokenizers.py": (
        "text/sentences text/tokenizers/protocol text/tokenizers/simple_data"
    ),
    "contracts/test_weight_formats.py": "weights/model_files",
    "parity/test_imports.py": "weights/readers/torch_arrays",
    "contracts/test_embedding_files.py": "embed/options embed/formats/*",
    "contracts/test_keyed_embeddings.py": "embed/keyed_lines",
    "unit/integrations/test_transformers.py": "integrations/transformers_tokenizer",
    "unit/embed/test_embedder.py": "embed/streaming inference/state",
    "unit/embed/test_job.py": "embed/line_embedder",
    # Parts of one computation: a wrong one gives the whole another result.
    "unit/corpus/test_preparation.py": "corpus/text_shards",
    "unit/tasks/networks/test_encoder.py": "tasks/networks/gru",
    "unit/tasks/test_tagging.py": "tasks/networks/tagger",
    "unit/corpus/test_readers.py": "files/text_reader",
    "unit/evaluation/test_perplexity.py": "evaluation/text_scorer",
    "unit/web/api/test_gate.py": "web/api/settings",
    "unit/web/api/test_routes.py": (
        "web/api/answers web/api/computations web/api/metrics web/api/schemas"
    ),
    "unit/experiments/test_inputs.py": "tasks/sampling",
    "unit/embed/test_merge.py": "cli/commands/merge",
    "unit/inference/test_engine.py": (
        "inference/kernel_backend inference/results inference/torch_backend"
    ),
    "unit/kernels/test_layers.py": "kernels/buffers kernels/inference kernels/packed_matrix",
    "unit/weights/test_model_dir.py": "weights/arrays weights/stored_bilm",
    "unit/bilm/test_config.py": "bilm/lstm_config",
    "unit/kernels/test_training.py": "kernels/library",
    "unit/tasks/runs/test_task_run.py": "tasks/inputs/task_bilm",
    "unit/tasks/runs/test_training.py": "tasks/runs/examples",
    "unit/text/test_word_vocab.py": "text/word_counter",
    "unit/training/pretraining/test_run.py": "training/pretraining/updates",
    "unit/weights/test_convert.py": ("weights/readers/contents weights/readers/registry"),
    "unit/vectors/test_vector_files.py": (
        "vectors/static_vectors vectors/text_file vectors/word2vec_file"
    ),
}
"""Test file -> modules without a test file of their own; `folder/*`: all in it that have none."""


def modules():
    paths = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return {path.as_posix() for path in paths if not path.name.startswith("__")}


def has_its_own(module):
    path = Path(module)
    return (TESTS / "unit" / path.parent / f"test_{path.name}.py").exists()


def test_every_module_has_a_test_file_or_a_line_in_the_table():
    listed = [pattern for patterns in COVERED_BY.values() for pattern in patterns.split()]
    assert len(listed) == len(set(listed))
    without = {module for module in modules() if not has_its_own(module)}
    covered = {pattern: set(fnmatch.filter(without, pattern)) for pattern in listed}
    missing = without.difference(*covered.values())
    assert missing == set(), "give these a test file, or a line in COVERED_BY"
    idle = [pattern for pattern, found in covered.items() if not found]
    assert idle == [], "these are gone, or have a test file of their own"


@pytest.mark.parametrize("name", COVERED_BY)
def test_the_table_names_tests_that_exist(name):
    text = (TESTS / name).read_text(encoding="utf-8")
    assert "def test_" in text
    for module in COVERED_BY[name].split():
        if module.startswith("cli/commands/"):
            assert f'"{Path(module).name.replace("_", "-")}"' in text, f"{name} never runs {module}"
