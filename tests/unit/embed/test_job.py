import inspect
import itertools
import sys
from contextlib import contextmanager

import pytest

from elmokit.embed import job
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError

from ...builders.embedding_models import embed_files, random_sentences, read_hdf5, toy_model
from ...builders.training_models import write_text


@pytest.fixture
def embedder():
    return Embedder(toy_model(vocab=True, warm_text=("the bank", "a river")))


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.txt", [*random_sentences(40), []])


@pytest.mark.parametrize("state", ["reset", "carry", "warm"])
def test_interrupted_and_resumed_equals_uninterrupted(embedder, text, tmp_path, state, monkeypatch):
    embed_files(embedder, text, tmp_path / "whole.h5", state=state)
    monkeypatch.setattr(job, "PART_BYTES", 3000)
    output, steps = tmp_path / "out.h5", []

    def stop(*_):
        steps.append(1)
        if len(steps) == 25:
            raise KeyboardInterrupt

    options = {"state": state, "on_progress": stop}
    with pytest.raises(KeyboardInterrupt) as caught:
        embed_files(embedder, text, output, batch_tokens=16, **options)
    assert "--resume" in caught.value.__notes__[0]
    report = embed_files(embedder, text, output, resume=True, **options)
    assert report.resumed_sentences == 25
    assert len(steps) == 41 + 1  # and one call for the final writing
    assert output.read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert not (tmp_path / "out.h5.parts").exists()


def interrupt_at_line(function, number):
    """Return a trace function that raises `KeyboardInterrupt` at the ``number``-th line run."""
    code, left = inspect.unwrap(function).__code__, iter(range(number, -1, -1))

    def on_line(frame, event, arg):
        if event == "line" and not next(left):
            raise KeyboardInterrupt
        return on_line

    return lambda frame, event, arg: on_line if frame.f_code is code else None


def test_ctrl_c_at_any_line_leaves_a_job_that_can_be_resumed(embedder, text, tmp_path, monkeypatch):
    lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
    text.write_text("".join(lines[:3]), encoding="utf-8")
    embed_files(embedder, text, tmp_path / "whole.h5", state="carry")
    whole = (tmp_path / "whole.h5").read_bytes()
    monkeypatch.setattr(job, "PART_SENTENCES", 2)
    resumed = set()
    for number in itertools.count():
        output = tmp_path / f"{number}.h5"
        tracing = sys.gettrace()
        sys.settrace(interrupt_at_line(job._embed, number))
        try:
            embed_files(embedder, text, output, state="carry", batch_tokens=1)
        except KeyboardInterrupt:
            sys.settrace(tracing)
            again = embed_files(embedder, text, output, state="carry", resume=True)
            resumed.add(again.resumed_sentences)
            assert output.read_bytes() == whole
        else:
            break
        finally:
            sys.settrace(tracing)
    assert resumed == {0, 1, 2, 3}


def test_resuming_a_finished_job_refuses_another_text(embedder, text, tmp_path):
    output = tmp_path / "out.h5"
    embed_files(embedder, text, output)
    before, whole = text.read_text(encoding="utf-8"), output.read_bytes()
    shorter = "".join(before.splitlines(keepends=True)[:-2])
    for changed in ("one\n", shorter, before + "more\n", "x" + before[1:]):
        text.write_text(changed, encoding="utf-8")
        number = len(changed.splitlines())
        with pytest.raises(ValueError, match=rf"out\.h5 .* 41 .* {number}\b.*--overwrite"):
            embed_files(embedder, text, output, resume=True)
    assert output.read_bytes() == whole
    text.write_text(before, encoding="utf-8")
    assert embed_files(embedder, text, output, resume=True).resumed_sentences == 41


def test_the_text_is_never_replaced(embedder, text, tmp_path):
    both = text.rename(tmp_path / "both.h5")
    before = both.read_bytes()
    for options in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(ValueError, match=r"both\.h5"):
            embed_files(embedder, both, both, **options)
    assert both.read_bytes() == before


def test_an_output_that_exists_is_kept_unless_overwritten(embedder, text, tmp_path):
    output = tmp_path / "out.h5"
    output.write_text("precious")
    with pytest.raises(FileExistsError, match=r"/out\.h5 .*--overwrite"):
        embed_files(embedder, text, output)
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff\xfe\xfd\n")
    with pytest.raises(FormatError):
        embed_files(embedder, bad, output, overwrite=True)
    assert output.read_text() == "precious"
    embed_files(embedder, text, output, overwrite=True)
    assert len(read_hdf5(output)) == 41


def test_what_was_done_before_a_bad_line_is_kept_for_the_same_text(embedder, text, tmp_path):
    lines, output = text.read_bytes().split(b"\n")[:-1], tmp_path / "out.h5"

    def write(*lines):
        text.write_bytes(b"\n".join(lines) + b"\n")

    write(*lines, b"\xff\xfe")
    with pytest.raises(FormatError, match=r"text\.txt, line 42.*UTF-8") as caught:
        embed_files(embedder, text, output, batch_tokens=16)
    (note,) = caught.value.__notes__
    assert "--resume" in note
    assert "--overwrite" not in note
    with pytest.raises(FileExistsError, match=r"out\.h5\.parts .*--resume"):
        embed_files(embedder, text, output)
    for changed, message in (
        ([*lines[:2], b"new", *lines[3:]], r"Line 3 .*'new'"),
        (lines[:1], rf"Line 2 .*'{lines[1].decode()}'"),
        ([b"long " * 20, *lines[1:]], r"it is now 'long [long ]*\.\.\.'\. Give the same"),
    ):
        write(*changed)
        with pytest.raises(ValueError, match=message):
            embed_files(embedder, text, output, resume=True)
    write(*lines, b"mended")
    report = embed_files(embedder, text, output, resume=True)
    assert report.resumed_sentences > 0
    assert report.sentences == 42


def parts_of(output):
    return sorted(output.with_name(output.name + ".parts").glob("part-*.npz"))


def when_parts(output, number, act):
    """Return a listener that acts once, as soon as there are so many parts."""
    done = []

    def listen(*_):
        if not done and len(parts_of(output)) >= number:
            done.append(act())

    return listen


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_part_that_is_removed_meanwhile_is_missed_and_redone(
    embedder, text, tmp_path, which, monkeypatch
):
    embed_files(embedder, text, tmp_path / "whole.h5")
    monkeypatch.setattr(job, "PART_BYTES", 3000)
    output = tmp_path / "out.h5"
    remove = when_parts(output, 4, lambda: parts_of(output)[which].unlink())
    with pytest.raises(FormatError, match=r"out\.h5\.parts: sentences .* removed .*--resume"):
        embed_files(embedder, text, output, batch_tokens=16, on_progress=remove)
    assert not output.exists()
    report = embed_files(embedder, text, output, resume=True)
    assert report.sentences == 41
    assert output.read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_a_damaged_part_is_named_with_the_way_on(embedder, text, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "PART_BYTES", 3000)
    output = tmp_path / "out.h5"

    def damage():
        content = bytearray(parts_of(output)[1].read_bytes())
        content[len(content) // 3] ^= 0xFF  # among the vectors
        parts_of(output)[1].write_bytes(content)

    with pytest.raises(FormatError, match=r"part-0+[1-9].*--resume"):
        embed_files(embedder, text, output, on_progress=when_parts(output, 4, damage))


def test_an_output_that_another_process_finished_meanwhile_is_kept(
    embedder, text, tmp_path, monkeypatch
):
    output, open_job = tmp_path / "out.h5", job.open_job

    @contextmanager
    def after_another(*arguments, **options):
        with open_job(*arguments, **options) as opened:
            output.write_text("finished meanwhile")
            yield opened

    monkeypatch.setattr(job, "open_job", after_another)
    with pytest.raises(FileExistsError, match=r"/out\.h5 .*--overwrite"):
        embed_files(embedder, text, output)
    assert output.read_text() == "finished meanwhile"


@pytest.mark.parametrize("name", ["thesis.txt", "part-000000000000-000000000041.npz"])
def test_files_of_others_are_refused_and_stay(embedder, text, tmp_path, name):
    foreign = tmp_path / "out.h5.parts" / name
    foreign.parent.mkdir()
    foreign.write_text('{"precious": 1}')
    for options in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(FileExistsError, match=name):
            embed_files(embedder, text, tmp_path / "out.h5", **options)
    assert foreign.read_text() == '{"precious": 1}'
    assert list(foreign.parent.iterdir()) == [foreign]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 5}, r"`layers` .* 5\b"),
        ({"dtype": "float64"}, "`dtype` .*float32, float16, .*'float64'"),
        ({"file_format": "tf"}, "`format` .*elmokit, bilm-tf, allennlp, .*'tf'"),
        ({"file_format": "bilm-tf", "layers": "top"}, "bilm-tf .*`layers` .*\"all\", .*'top'"),
        ({"shard": (4, 4)}, "`shard` .*0 <= i < N.* 4/4"),
        ({"shard": (1, 2), "state": "carry"}, 'state="carry" .*`shard`.* 1/2'),
        ({"resume": True, "overwrite": True}, "--resume.*--overwrite"),
    ],
)
def test_wrong_options_leave_nothing_behind(embedder, text, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        embed_files(embedder, text, tmp_path / "out.h5", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_short_sentences_are_stored_by_their_number(embedder, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "PART_SENTENCES", 100)
    (tmp_path / "blank.txt").write_text("\n" * 1000)
    output, most = tmp_path / "out.h5", []

    def listen(*_):
        most.append(len(parts_of(output)))

    embed_files(embedder, tmp_path / "blank.txt", output, batch_tokens=16, on_progress=listen)
    assert max(most) == 10
    assert len(read_hdf5(output)) == 1000
