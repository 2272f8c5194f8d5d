import errno

import pytest

from elmokit.cli.error_messages import is_user_error, note_what_is_safe, print_error
from elmokit.errors import ConfigError, InputError, MissingExtraError


@pytest.mark.parametrize(
    ("error", "code_is_2", "words"),
    [
        (InputError("`x` must be 3, got 4."), True, "error: `x` must be 3"),
        (ValueError("shapes do not match"), False, "error: ValueError: shapes"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), False, "error: UnicodeDecodeError"),
        (ConfigError("recipe.toml: unknown setting"), True, "error: recipe.toml"),
        (MissingExtraError("kiwipiepy", extra="ko"), True, r"\[ko\]"),
        (
            FileNotFoundError(2, "No such file or directory", "a.txt"),
            True,
            r"error: .*: a\.txt\n.+",
        ),
        (FileNotFoundError("no model named 'x'"), True, "error: no model named 'x'"),
        (PermissionError(13, "Permission denied", "a"), True, r"error: .*: a\n.+"),
        (PermissionError(1, "Operation not permitted"), False, "error: PermissionError"),
        (FileExistsError(17, "File exists", "a"), True, r"error: .*: a\n.+"),
        (OSError(5, "Input/output error", "a"), False, r"error: .*: a\n\(--debug"),
        (RuntimeError("boom"), False, "error: RuntimeError: boom"),
        (MemoryError(), False, "error: out of memory.*ulimit"),
        (OSError(errno.ENOSPC, "No space left on device", "o.h5"), False, r"disk is full.*o\.h5"),
        (OSError(errno.ENOSPC, "No space left on device"), False, "standard output"),
        (OSError(errno.EFBIG, "File too large", "o.h5"), False, r"ulimit -f.*o\.h5\b"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "o.h5"), False, r"quota.*o\.h5"),
        (ValueError("write failed: No space left on device (os error 28)"), False, "error: .*disk"),
    ],
)
def test_errors_become_a_message(error, code_is_2, words, capsys):
    assert is_user_error(error) is code_is_2
    print_error(error, debug=False)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert ("--debug" in captured.err) is not code_is_2
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(captured.err)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device", "step-8"), KeyboardInterrupt()]
)
def test_an_interrupt_and_a_full_disk_say_what_is_saved(error, capsys):
    with (
        pytest.raises(type(error)) as raised,
        note_what_is_safe(lambda: "step 40 is saved; go on with --resume"),
    ):
        raise error
    print_error(raised.value, debug=False)
    message = capsys.readouterr().err
    assert "step 40 is saved" in message
    assert "run the command again" not in message, "that is refused where a run stands"
