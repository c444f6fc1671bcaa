"""The measured search: its choices timed in turns, its result, and what is remembered of it."""
