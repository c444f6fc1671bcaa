"""The explorer in a notebook cell: one session, its widget, and what it draws on."""
