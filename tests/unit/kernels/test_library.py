"""The number of threads, with and without PyTorch, and after a fork."""

import os
import subprocess
import sys

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


@pytest.mark.parametrize("has_torch", [False, True])
def test_one_setting_serves_the_kernels_and_pytorch(has_torch):
    code = (
        "import sys\n"
        f"if not {has_torch}: sys.modules['torch'] = None\n"
        "from elmokit.kernels.library import get_num_threads, set_num_threads\n"
        "assert get_num_threads() == 3\n"
        "set_num_threads(2)\n"
        "assert get_num_threads() == 2\n"
        f"if not {has_torch}: sys.exit()\n"
        "import torch\n"
        "assert get_num_threads() == torch.get_num_threads() == 2\n"
        "torch.set_num_threads(1)\n"
        "assert get_num_threads() == 1\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "3"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=False)
    assert done.returncode == 0
