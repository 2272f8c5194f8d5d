"""The conformance cases: outputs of the two reference implementations on fixed inputs.

`fixtures/README.md` says how they were made. Some have no stored weights: `fixtures/gen_weights.py`
writes the same bits everywhere, and the SHA-256 of every tensor is checked.
"""

import json
import os
import runpy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLM, BiLMState

FIXTURES = Path(__file__).parent / "fixtures"

STORED = (
    "edge_stateless", "edge_stateful", "variant_noskip", "variant_tanh_nohighway",
    "variant_noclip_1layer", "variant_3layer_highway3", "variant_nocnnproj", "variant_noproj",
    "variant_maxchars20",
)  # fmt: skip
SEEDED = ("small_seeded", "small_stateful_seeded")
HEAVY = "original_seeded"
SHARED = ("fixture_allennlp", "fixture_bilm_tf")
"""Public test fixtures of the references, which are not copied into this repository."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One folder of inputs and reference outputs."""

    directory: Path
    sentences: list[list[str]]
    batches: list[list[int]]
    is_stateful: bool
    tolerance: np.ndarray
    state_tolerance: float

    @property
    def options_path(self) -> Path:
        return self.directory / "options.json"

    @cached_property
    def expected(self) -> dict[str, np.ndarray]:
        with np.load(self.directory / "expected.npz") as arrays:
            return dict(arrays)

    def check_layers(self, layers: dict[int, np.ndarray]) -> None:
        """Compare all sentences with the references, layer by layer."""
        assert layers.keys() == set(range(len(self.sentences)))
        worst = np.zeros(len(self.tolerance))
        for index, ours in layers.items():
            for reference in ("layers", "tf_layers"):
                values = self.expected.get(f"{reference}_{index:03d}")
                if values is not None and values.shape[1]:
                    assert values.shape == ours.shape
                    worst = np.maximum(worst, np.abs(values - ours).max(axis=(1, 2)))
        assert (worst <= self.tolerance).all(), f"largest differences {worst}"

    def check_state(self, number: int, state: BiLMState) -> None:
        """Compare the state after a batch, where the reference stores one."""
        for letter, ours in (("h", state.hidden), ("c", state.cell)):
            reference = self.expected.get(f"{letter}_{number:02d}")
            if reference is not None:
                assert np.abs(both_directions(ours) - reference).max() <= self.state_tolerance

    def weights_path(self, scratch: Path) -> Path:
        """The stored weights; where there are none, write them into ``scratch``."""
        stored = self.directory / "weights.hdf5"
        if stored.exists():
            return stored
        path = scratch / f"{self.directory.name}.hdf5"
        if not path.exists():
            generate_weights(self.directory, path)
        return path


def case(name: str) -> Case:
    """Return a case of this repository, or skip where it lies outside and is absent."""
    directory = shared_oracles(name) if name in SHARED else FIXTURES / name
    sentences, batches, tolerance = (
        json.loads((directory / f"{one}.json").read_text())
        for one in ("sentences", "batches", "tolerance")
    )
    of_layers = np.array(tolerance["atol_per_layer"])
    return Case(
        directory=directory, sentences=sentences, batches=batches["batches"],
        is_stateful=batches["mode"] == "stateful", tolerance=of_layers,
        state_tolerance=tolerance["state_atol"] or of_layers.max(),
    )  # fmt: skip


def shared_oracles(name: str = "") -> Path:
    """Return a folder of public test fixtures, or skip where they are absent."""
    shared = os.environ.get("ELMOKIT_SHARED") or Path(__file__).parents[2].parent / "shared"
    directory = Path(shared) / "oracles" / name
    if not directory.is_dir():
        pytest.skip(
            f"the public fixtures {name} are not here; ELMOKIT_SHARED can name their folder"
        )
    return directory


def generate_weights(directory: Path, path: Path) -> None:
    """Write the weights of a seeded case and check every tensor's SHA-256."""
    seed = json.loads((directory / "weights_seed.json").read_text())
    options = json.loads((directory / "options.json").read_text())
    sums = weight_generator().write(
        options, seed["seed"], path, seed["lstm_gain"], seed["proj_gain"]
    )
    assert sums == seed["sha256_float32"]


def run_case(model: BiLM, inputs: Case) -> "Outputs":
    """Run all batches; state goes from row k of one batch to row k of the next, in our hands."""
    outputs = Outputs({}, {}, [])
    state = None
    with torch.inference_mode():
        for batch in inputs.batches:
            sentences = [inputs.sentences[index] for index in batch]
            ids = model.encode(sentences)
            start = rows_for(model, state, len(batch)) if inputs.is_stateful else None
            out = model(ids, state=start)
            if inputs.is_stateful:
                state = keep_other_rows(start, out.state)
                outputs.states.append(state)
            for row, index in enumerate(batch):
                length = len(inputs.sentences[index]) + 2
                outputs.char_ids[index] = ids[row, :length].numpy()
                outputs.layers[index] = out.layers[:, row, 1 : length - 1].numpy()
    return outputs


@dataclass(frozen=True)
class Outputs:
    """What a model made of a case, by sentence; and the carried state after every batch."""

    char_ids: dict[int, np.ndarray]
    layers: dict[int, np.ndarray]
    states: list[BiLMState]


def rows_for(model: BiLM, state: BiLMState | None, num_rows: int) -> BiLMState:
    """Return ``state`` with at least ``num_rows`` rows; new ones start at zero."""
    if state is None:
        return BiLMState.zeros(model.config.lstm, num_rows)
    missing = max(0, num_rows - state.num_rows)
    return join_rows(state, BiLMState.zeros(model.config.lstm, missing))


def keep_other_rows(before: BiLMState, after: BiLMState) -> BiLMState:
    """Rows beyond the batch keep what they had."""
    return join_rows(after, before.rows(slice(after.num_rows, None)))


def join_rows(first: BiLMState, second: BiLMState) -> BiLMState:
    return BiLMState(
        torch.cat((first.hidden, second.hidden), dim=2), torch.cat((first.cell, second.cell), dim=2)
    )


def both_directions(x: torch.Tensor) -> np.ndarray:
    """(N, 2, B, X) -> (N, B, 2X), as the references store states."""
    x = torch.as_tensor(x)
    return torch.cat((x[:, 0], x[:, 1]), dim=-1).numpy()


def read_datasets(path: Path) -> dict[str, np.ndarray]:
    """Return every dataset of an HDF5 file."""
    arrays = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[...]

    with h5py.File(path) as file:
        file.visititems(visit)
    return arrays


def assert_same_bits(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> None:
    """Compare names, types and bytes of arrays."""
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.dtype == after[name].dtype
        assert array.tobytes() == after[name].tobytes(), name


@cache
def weight_generator():
    """Return the module `gen_weights`."""
    return SimpleNamespace(**runpy.run_path(str(FIXTURES / "gen_weights.py")))
