"""The few exceptions that elmokit raises on its own account.

Wrong arguments raise the built-in ``ValueError``, ``TypeError`` and ``FileNotFoundError``; the
classes here are for what has a file, a key or an extra to name. All of them mean "the input is
wrong" to the command line (exit code 2).
"""


class ElmokitError(Exception):
    """Base of the errors below, so that callers can catch them together."""


class ConfigError(ElmokitError, ValueError):
    """A setting is unknown, has the wrong type or an impossible value; names key and file."""


class FormatError(ElmokitError, ValueError):
    """A file is not what its format promises; names file, position, what is expected, the cure."""


class MissingExtraError(ElmokitError, ImportError):
    """An optional library is needed and absent; names the ``pip install`` that brings it.

    Args:
        module: The module that could not be imported.
        extra: The extra of elmokit that brings it.
    """

    def __init__(self, module: str, *, extra: str) -> None:
        super().__init__(
            f"This needs the package {module!r}, which is not installed. "
            f'Install it with: pip install "elmokit[{extra}]"'
        )
        self.module = module
        self.extra = extra
