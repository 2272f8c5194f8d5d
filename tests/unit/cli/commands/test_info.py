"""How `elmokit info` shows values; the command itself is in tests/e2e."""

import pytest

from elmokit.cli.commands.info import _shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (12345.678, "12,346"),
        (True, "True"),
        (["a", "b"], "a, b"),
        ([[1, 32], [2, 64]], "[1, 32], [2, 64]"),
        (((0.9, 0.98765),), "[0.9, 0.9877]"),
    ],
)
def test_values_as_people_read_them(value, shown):
    assert _shown(value) == shown
