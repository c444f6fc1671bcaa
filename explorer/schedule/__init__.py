"""The schedule: a program, its plan, the steps that made it; each step judged when it is taken."""

from .schedule import Schedule

__all__ = ["Schedule"]
