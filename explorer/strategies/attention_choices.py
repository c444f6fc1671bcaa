"""What may be chosen where two products with a softmax between them are one kernel: its tilings."""

from __future__ import annotations

from functools import partial

from ..gpu.spec import Gpu
from ..schedule import Schedule
from .attention import attention, attention_tilings
from .auto import auto, beats_scores_in_memory
from .kernel_choices import Choice
from .neighbours import free_choices


def attention_choices(schedule: Schedule, start: Schedule, gpu: Gpu, approximate: bool) -> list[Choice]:
    """The tilings of a program that :func:`~explorer.strategies.auto.auto` makes one kernel; none for another one.

    Parameters
    ----------
    schedule : Schedule
        The program as written.
    start : Schedule
        What the strategy for attention gets.
    gpu : Gpu
    approximate : bool
        As `auto` takes it.
    """
    made, found = attention_tilings(start, gpu, approximate)
    if not found or not (beats_scores_in_memory(made, gpu) or auto(schedule, gpu, approximate).plan == made.plan):
        return []
    return [Choice("attention", "", str(t), us, partial(attention, gpu=gpu, tiling=t, approximate=approximate),
                   free_choices(t))
            for t, us in found]
