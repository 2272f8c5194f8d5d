"""Readers of task data: one file per layout, streamed, without torch; `reading` has the rules."""
