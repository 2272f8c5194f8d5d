"""Signals as a terminal sends them."""

import signal

import pytest


@pytest.fixture
def default_hangup():
    """SIGHUP is not ignored, as it is in what `nohup` starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
