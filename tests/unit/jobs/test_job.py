"""A job in its directory: taken, recorded, resumed, refused, ended early."""

import errno
import json
import shutil
from dataclasses import dataclass, field

import pytest

from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import previous_of
from elmokit.jobs.identity import FIXED, Identity
from elmokit.jobs.job import RUN_FILE, Pieces, checkpoints_of, command_of, is_begun, open_job


@dataclass(frozen=True, kw_only=True)
class Config:
    seed: int = field(default=0, metadata=FIXED)


def job_in(directory, *, seed=0, command="work", resume=False, **options):
    identity = Identity(Config(seed=seed), {"text": "1f"})
    return open_job(directory, command, identity, resume=resume, **options)


def save(job, step):
    (job.pieces.folder / f"step-{step:09d}").mkdir(parents=True)


def make(directory, *steps, **options):
    with job_in(directory, **options) as job:
        job.begin()
        for step in steps:
            save(job, step)


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


class TestResuming:
    def test_only_with_resume_it_goes_on_and_keeps_its_first_record(self, tmp_path, caplog):
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

    def test_another_job_is_refused_and_nothing_changes(self, tmp_path):
        make(tmp_path, 5)
        before = contents(tmp_path)
        with (
            pytest.raises(ConfigError, match=r"run\.json: .*seed was 0 and is now 7"),
            job_in(tmp_path, seed=7, resume=True),
        ):
            pytest.fail("taken")
        assert contents(tmp_path) == before

    def test_a_result_without_pieces_is_never_replaced(self, tmp_path):
        make(tmp_path, 1)
        (tmp_path / "model").touch()
        shutil.rmtree(tmp_path / "checkpoints")
        before = contents(tmp_path)
        for resume in (False, True):
            with (
                pytest.raises(FileExistsError),
                job_in(tmp_path, resume=resume, result_name="model"),
            ):
                pytest.fail("taken")
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("record", ["{", "{}", '{"config": 1}'])
    def test_a_damaged_record_is_named_and_not_replaced(self, tmp_path, record):
        make(tmp_path, 1)
        (tmp_path / RUN_FILE).write_text(record)
        before = contents(tmp_path)
        for resume in (False, True):
            with pytest.raises(FormatError, match=r"run\.json"), job_in(tmp_path, resume=resume):
                pytest.fail("taken")
        assert contents(tmp_path) == before

    def test_overwriting_removes_the_job_whatever_it_was(self, tmp_path):
        make(tmp_path, 1, 2, seed=3)
        with job_in(tmp_path, overwrite=True) as job:
            assert job.record == {}
            assert job.pieces.paths() == []
            job.begin()
        assert json.loads((tmp_path / RUN_FILE).read_text())["config"] == {"seed": 0}


class TestRefusing:
    @pytest.mark.parametrize("resume", [False, True])
    def test_other_files_are_named_and_stay(self, tmp_path, resume):
        (tmp_path / "vocab.txt").write_text("mine")
        with pytest.raises(FileExistsError, match=r"'vocab\.txt'"), job_in(tmp_path, resume=resume):
            pytest.fail("taken")
        assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]

    @pytest.mark.parametrize("resume", [False, True])
    @pytest.mark.parametrize("is_prepared_only", [False, True])
    def test_a_job_of_another_command_is_told(self, tmp_path, resume, is_prepared_only):
        with job_in(tmp_path, command="pretrain") as job:
            job.prepare()
            (tmp_path / "shards").touch()
            if not is_prepared_only:
                job.begin()
                save(job, 1)
        assert command_of(tmp_path) == "pretrain"
        with (
            pytest.raises(
                FileExistsError, match=f"`elmokit pretrain`.*`elmokit work`.*-o {tmp_path} --resume"
            ),
            job_in(tmp_path, resume=resume),
        ):
            pytest.fail("taken")

    def test_two_processes_do_not_work_in_one_directory(self, tmp_path):
        with job_in(tmp_path) as job:
            job.begin()
            save(job, 1)
            with (
                pytest.raises(FileExistsError, match=f"process .*{tmp_path}"),
                job_in(tmp_path, resume=True),
            ):
                pytest.fail("two hold one directory")


def fail(directory, *steps, error, work=lambda job: None, **options):
    """Begin a job that saves steps and ends with an error."""
    with job_in(directory, **options) as job:
        job.prepare()
        work(directory)
        job.begin()
        for step in steps:
            save(job, step)
        raise error


class TestEndingEarly:
    @pytest.mark.parametrize(
        "error", [RuntimeError(), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")]
    )
    def test_what_has_saved_nothing_leaves_nothing(self, tmp_path, error):
        directory = tmp_path / "run"
        with pytest.raises(type(error)):
            fail(directory, error=error)
        assert not directory.exists()
        is_told = not isinstance(error, RuntimeError)
        assert ("starts over" in "".join(getattr(error, "__notes__", []))) == is_told

    @pytest.mark.parametrize("options", [{}, {"overwrite": True}])
    def test_what_is_safe_is_told_and_how_to_go_on(self, tmp_path, options):
        with pytest.raises(RuntimeError) as caught:
            fail(tmp_path, 5, error=RuntimeError(), **options)
        (note,) = caught.value.__notes__
        assert "step-000000005" in note
        assert "--resume" in note
        assert ("--overwrite" in note) == bool(options)
        assert is_begun(tmp_path)


class TestPieces:
    def test_they_come_in_order_and_old_ones_go(self, tmp_path):
        pieces = checkpoints_of(tmp_path)
        assert pieces.latest is None
        for step in (5, 100, 20):
            (pieces.folder / f"step-{step:09d}").mkdir(parents=True)
        assert [path.name[-3:] for path in pieces.paths()] == ["005", "020", "100"]
        for newest_kept, left in ((4, 3), (2, 2), (0, 0)):
            pieces.remove(newest_kept=newest_kept)
            assert len(pieces.paths()) == left

    def test_one_whose_replacement_was_killed_counts_and_gets_its_name_back(self, tmp_path):
        pieces = Pieces(tmp_path)
        (tmp_path / "step-1").mkdir()
        previous = previous_of(tmp_path / "step-2")
        previous.mkdir()
        assert pieces.latest == previous
        (tmp_path / ".step-3.0123456789ab.partial").mkdir()
        pieces.tidy()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["step-1", "step-2"]
