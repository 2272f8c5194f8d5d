"""A small kernel library, which compiles in a moment."""

from ...builders.kernel_sources import small_libraries, source_dir  # noqa: F401
