"""Whatever is damaged, reading it succeeds or ends in an error of elmokit that says so.

The same ten inputs of each kind of file. ``ELMOKIT_FUZZ_SECONDS`` gives each kind so many seconds,
``ELMOKIT_FUZZ_SEED`` other inputs; run with ``-s`` to see their numbers.
"""

import os

import pytest

from ..builders.damaged_files import attack
from ..builders.fuzz_targets import TARGETS

SECONDS = float(os.environ.get("ELMOKIT_FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("ELMOKIT_FUZZ_SEED", "0"))


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_read_or_refused(name, tmp_path):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "files").mkdir()
    target = TARGETS[name](tmp_path / "files")
    target.read()
    number, outcomes = attack(target, first=SEED, seconds=SECONDS, least=10)
    print(f"{name}: {number} inputs, {dict(outcomes)}")
    assert set(outcomes) <= {"read", "refused"}
    assert outcomes["refused"], "an attack that nothing refuses proves nothing"
