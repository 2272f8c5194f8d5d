"""A job in its directory: taken, recorded, resumed, refused, ended early."""

import errno
import json
import os
import shutil
import signal
import threading
from dataclasses import dataclass, field

import pytest

from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import previous_of
from elmokit.jobs.identity import FIXED, Identity
from elmokit.jobs.job import (
    METRICS_FILE,
    RUN_FILE,
    SIGNALS,
    MetricsLog,
    Pieces,
    StopRequest,
    is_begun,
    open_job,
    read_log,
    stop_requests,
)


@dataclass(frozen=True, kw_only=True)
class Config:
    seed: int = field(default=0, metadata=FIXED)


def job_in(directory, *, seed=0, command="work", resume=False, **options):
    identity = Identity(Config(seed=seed), {"text": "1f"})
    return open_job(directory, command, identity, resume=resume, **options)


def save(job, step):
    (job.pieces.folder / f"step-{step:09d}").mkdir(parents=True)


def make(directory, *steps, error=None, **options):
    """Begin a job that saves steps; it may end with an error."""
    with job_in(directory, **options) as job:
        job.prepare()
        job.begin()
        for step in steps:
            save(job, step)
        if error is not None:
            raise error


def contents(directory):
    return {path: path.is_file() and path.read_bytes() for path in directory.rglob("*")}


@pytest.mark.parametrize("resume", [False, True])
def test_a_job_starts_where_there_is_none(tmp_path, resume):
    directory = tmp_path / "deep" / "run"
    with job_in(directory, resume=resume) as job:
        assert job.record == {}
        assert not is_begun(directory)
        job.begin(limit=3)
        save(job, 1)
    record = json.loads((directory / RUN_FILE).read_text())
    assert record["config"] == {"seed": 0}
    assert (record["command"], record["text"], record["limit"]) == ("work", "1f", 3)
    assert {path.name for path in directory.iterdir()} == {RUN_FILE, "checkpoints"}


def test_only_with_resume_it_goes_on_and_keeps_its_first_record(tmp_path, caplog):
    make(tmp_path, 5)
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=f"{tmp_path} .*--resume"), job_in(tmp_path):
        pytest.fail("taken")
    with job_in(tmp_path, resume=True) as job:
        assert job.record["text"] == "1f"
        assert job.pieces.latest.name == "step-000000005"
        job.begin()
        assert contents(tmp_path).items() >= before.items()
        job.begin(limit=7)
    assert json.loads((tmp_path / RUN_FILE).read_text())["limit"] == 7
    assert "from the beginning" not in caplog.text


def prepare_another(directory):
    with job_in(directory, command="pretrain") as job:
        job.prepare()
        (directory / "shards").touch()


def make_result(directory):
    make(directory, 1)
    (directory / "model").touch()
    shutil.rmtree(directory / "checkpoints")


def damage(directory, record):
    make(directory, 1)
    (directory / RUN_FILE).write_text(record)


OTHER_COMMAND = "`elmokit pretrain`.*`elmokit work`.* --resume"
REFUSED = {
    "other files": (lambda folder: (folder / "vocab.txt").touch(), r"'vocab\.txt'"),
    "another command": (lambda folder: make(folder, 1, command="pretrain"), OTHER_COMMAND),
    "prepared by another": (prepare_another, OTHER_COMMAND),
    "another seed": (lambda folder: make(folder, 1, seed=7), "seed was 7 and is now 0"),
    "a result alone": (make_result, "finished result"),
    "no JSON": (lambda folder: damage(folder, "{"), r"run\.json"),
    "no settings": (lambda folder: damage(folder, '{"config": 1}'), r"run\.json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told_and_stays_as_it_is(tmp_path, name):
    make_it, message = REFUSED[name]
    make_it(tmp_path)
    before = contents(tmp_path)
    for resume, match in ((True, message), (False, None)):
        with (
            pytest.raises((FileExistsError, ConfigError, FormatError), match=match),
            job_in(tmp_path, resume=resume, result_name="model"),
        ):
            pytest.fail("taken")
    assert contents(tmp_path) == before


def test_two_processes_do_not_work_in_one_directory(tmp_path):
    with job_in(tmp_path) as job:
        job.begin()
        save(job, 1)
        with (
            pytest.raises(FileExistsError, match=f"process .*{tmp_path}"),
            job_in(tmp_path, resume=True),
        ):
            pytest.fail("two hold one directory")


@pytest.mark.parametrize(
    "error", [RuntimeError(), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")]
)
def test_what_has_saved_nothing_leaves_nothing(tmp_path, error):
    directory = tmp_path / "run"
    with pytest.raises(type(error)):
        make(directory, error=error)
    assert not directory.exists()
    is_told = not isinstance(error, RuntimeError)
    assert ("starts over" in "".join(getattr(error, "__notes__", []))) == is_told


@pytest.mark.parametrize("options", [{}, {"overwrite": True}])
def test_what_is_safe_is_told_and_how_to_go_on(tmp_path, options):
    with pytest.raises(RuntimeError) as caught:
        make(tmp_path, 5, error=RuntimeError(), **options)
    (note,) = caught.value.__notes__
    assert "step-000000005" in note
    assert "--resume" in note
    assert ("--overwrite" in note) == bool(options)
    assert is_begun(tmp_path)


def test_a_refused_command_is_not_advised_again(tmp_path):
    with pytest.raises(ConfigError) as caught:
        make(tmp_path, 5, error=ConfigError("another text"))
    assert "complete; once this is corrected, --resume" in caught.value.__notes__[0]


def test_a_piece_whose_replacement_was_killed_counts_and_gets_its_name_back(tmp_path):
    pieces = Pieces(tmp_path)
    (tmp_path / "step-1").mkdir()
    previous = previous_of(tmp_path / "step-2")
    previous.mkdir()
    assert pieces.latest == previous
    (tmp_path / ".step-3.0123456789ab.partial").mkdir()
    previous_of(tmp_path / "step-1").mkdir()  # its replacement is whole
    assert pieces.paths() == [tmp_path / "step-1", previous]
    previous_of(tmp_path / "step-1").rmdir()
    pieces.tidy()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-1", "step-2"]


@pytest.mark.parametrize("kept", [0, 1, 3, 4])
def test_the_newest_pieces_are_kept(tmp_path, kept):
    (tmp_path / "step-1").mkdir()
    for name in ("step-2", "step-3", "other"):
        (tmp_path / name).touch()
    Pieces(tmp_path).remove(newest_kept=kept)
    names = ["step-1", "step-2", "step-3"][max(0, 3 - kept) :]
    assert sorted(os.listdir(tmp_path)) == ["other", *names]


ROWS = [{"step": step, "loss": step / 10} for step in (1, 2, 3, 4)]


@pytest.fixture
def log_path(tmp_path):
    """A log of four rows, each of which was in the file at once."""
    path, log = tmp_path / METRICS_FILE, MetricsLog(tmp_path)
    assert read_log(path) == []
    for number, row in enumerate(ROWS, start=1):
        log.write(row)
        assert read_log(path) == ROWS[:number]
    return path


def test_a_resumed_log_drops_what_the_run_will_do_again_and_a_new_one_all(log_path):
    row = {"step": 3, "loss": 7.0}
    MetricsLog(log_path.parent, resume_step=2).write(row | {"valid_mean": float("inf")})
    assert read_log(log_path) == [*ROWS[:2], row | {"valid_mean": None}]
    MetricsLog(log_path.parent)
    assert log_path.read_text() == ""


def test_a_row_cut_by_a_kill_is_left_out(log_path):
    log_path.write_text(log_path.read_text() + '{"step": 5, "lo')
    assert read_log(log_path) == ROWS
    MetricsLog(log_path.parent, resume_step=7).write({"step": 5})
    assert list(map(json.loads, log_path.read_text().splitlines())) == [*ROWS, {"step": 5}]


def test_a_log_with_nothing_to_drop_keeps_the_time_of_its_last_row(log_path):
    os.utime(log_path, (1, 1))
    MetricsLog(log_path.parent, resume_step=4)
    assert log_path.stat().st_mtime == 1
    assert read_log(log_path) == ROWS


@pytest.mark.parametrize("row", ["{", '{"loss": 1}', '{"step": 1.0}', '{"step": true}'])
@pytest.mark.parametrize("place", [0, 2])
def test_a_damaged_row_that_no_kill_explains_is_named(log_path, row, place):
    lines = log_path.read_text().splitlines()
    lines[place] = row
    log_path.write_text("\n".join(lines) + "\n")
    with pytest.raises(FormatError, match=rf"metrics\.jsonl, line {place + 1}\b"):
        read_log(log_path)


def send(number):
    os.kill(os.getpid(), number)


@pytest.fixture
def default_hangup():
    """SIGHUP is not ignored, as it is in what `nohup` starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


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


def test_signals_are_noted_only_if_wanted_and_not_if_they_are_ignored():
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    with stop_requests(False):
        assert {number: signal.getsignal(number) for number in SIGNALS} == handlers
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stop_requests(True) as stop:
            send(signal.SIGTERM)
            assert stop.signal_number is None
            assert signal.getsignal(signal.SIGINT) != handlers[signal.SIGINT]
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, handlers[signal.SIGTERM])
    assert {number: signal.getsignal(number) for number in SIGNALS} == handlers


@pytest.mark.parametrize(("noted", "told"), [(None, "SIGTERM"), (signal.SIGINT, "SIGINT")])
def test_what_ends_a_stopped_job_names_the_signal(noted, told):
    error = StopRequest(noted).stopped("at step 5")
    assert str(error) == f"stopped by {told} at step 5."
    assert error.signal_number == signal.Signals[told]
