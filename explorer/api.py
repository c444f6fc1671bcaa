"""The classes that users hold, under the name that schedules pickled by earlier versions have for them."""

from .frontend.definition import Definition, program
from .schedule import Schedule

__all__ = ["Definition", "Schedule", "program"]
