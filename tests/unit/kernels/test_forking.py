"""Processes that are forked after a model was loaded."""

import os

import pytest

from ...builders.command_line import start_python


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_model_that_was_loaded_before_a_fork_is_used_after_it():
    code = (
        "import os, signal, sys, torch, elmokit\n"
        "torch.set_num_threads(4)\n"
        "model = elmokit.load_model('en')\n"
        "torch.ones(1000, 1000) @ torch.ones(1000, 1000)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    signal.alarm(60)\n"
        "    elmokit.Embedder(model).embed(['I sat by the bank .'])\n"
        "    os._exit(torch.get_num_threads() != 1)\n"
        "sys.exit(os.waitpid(child, 0)[1] != 0)\n"
    )
    assert start_python(f"import warnings; warnings.simplefilter('ignore')\n{code}").wait(120) == 0
