"""The panes: pure functions from the session to the plain data of :mod:`explorer.app.protocol`."""
