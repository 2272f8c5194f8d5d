"""Annotations cost nothing in use, and are checked here."""

import subprocess
import sys

import jaxtyping

from elmokit import shapes

CODE = """
import sys
import elmokit
elmokit.Embedder, elmokit.TaskRun, elmokit.ELMo
print("jaxtyping" in sys.modules)
"""


def test_no_program_imports_jaxtyping():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_where_it_is_imported_annotations_are_its_own():
    assert shapes.Float is jaxtyping.Float
    assert shapes.UInt64 is jaxtyping.UInt64
