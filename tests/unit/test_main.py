"""`python -m elmokit`, before there is a command that could tell what Ctrl-C means."""

import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["elmokit", "--version"]
runpy.run_module("elmokit", run_name="__main__", alter_sys=True)
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGINT to send")
def test_ctrl_c_ends_the_imports_without_a_traceback():
    done = run(
        f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{INTERRUPTED}"
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
