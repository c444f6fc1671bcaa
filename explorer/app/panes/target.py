"""The target pane: the GPU that plans are made for, and the GPUs of the catalogue."""

from __future__ import annotations

from ...gpu.spec import Gpu, catalogue
from ..protocol_plans import TargetPane
from ..session import Session


def target_pane(session: Session) -> TargetPane:
    """The choice, oldest architecture first."""
    return {"gpu": session.gpu.name, "gpus": [{"name": name, "here": name == session.installed, "words": _words(gpu)}
                                              for name, gpu in catalogue().items()]}


def _words(gpu: Gpu) -> str:
    """What a plan depends on most."""
    return (f"{gpu.arch}: {gpu.multiprocessors} multiprocessors, {gpu.bandwidth_bytes_per_s / 1e12:.3g} TB/s, "
            f"{gpu.shared_bytes_per_block_optin // 1024} KiB shared memory a block")
