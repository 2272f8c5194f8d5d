"""Readers of task data: one file per layout, streamed; `reading` has the shared rules."""
