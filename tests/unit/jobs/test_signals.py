"""Signals that ask a job to stop."""

import os
import signal
import threading

import pytest

from elmokit.jobs.signals import SIGNALS, StopRequest, stop_requests


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.usefixtures("default_hangup")
def test_a_signal_is_noted_and_answered_at_once(number, caplog):
    caplog.set_level("INFO", logger="elmokit")
    before = set(threading.enumerate())
    with stop_requests(True) as stop:
        assert stop.signal_number is None
        send(number)
        assert stop.signal_number == number
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        (record,) = caplog.records
        # the signal may have come in the middle of a log line
        assert record.thread != threading.main_thread().ident
        send(signal.SIGTERM)  # a repeated one says nothing
    assert len(caplog.records) == 1


def test_the_handlers_from_before_come_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_requests(True):
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
    with stop_requests(False):
        assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_second_interrupt_is_obeyed_unless_torchrun_may_repeat_the_first():
    with stop_requests(True) as stop:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert stop.signal_number == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
    with stop_requests(True, second_stops_at_once=False) as stop:
        send(signal.SIGINT)
        send(signal.SIGINT)
        assert stop.signal_number == signal.SIGINT


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_requests(True) as stop:
            send(signal.SIGINT)
            assert stop.signal_number is None
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, None])
def test_the_exception_names_the_signal_and_the_place(number):
    stopped = StopRequest(number).stopped("after step 7")
    assert stopped.signal_number == (number or signal.SIGTERM)
    assert "step 7" in str(stopped)
