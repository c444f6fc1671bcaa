"""What notices a mutant of the text: the compiler, the checks of the CPU device, a comparison, or a proof that it is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.errors import CompileError, KernelFault, KernelTimeout
from explorer.kernel.module import CudaModule
from explorer.run.cpu.device import CpuBuilt, CpuDevice
from explorer.run.inputs.exact import KINDS
from explorer.run.verify.outputs import check_outputs

from .text import TextMutant
from .text_same import Probes, reason
from .text_subject import Subject

BATCH = 128
TIME_LIMIT_S = 5.0
@dataclass(frozen=True)
class Noticed:
    """A mutant and the first that notices it; if nothing does, whether its outputs have the bits of the text's on all probes."""

    kind: str
    was: str
    now: str
    by: str
    same: bool = False

    @property
    def why(self) -> str:
        """Of one that nothing notices, why it is none."""
        return "" if self.by else reason(self.kind, self.was, self.now, self.same)

    @property
    def survived(self) -> bool:
        """Whether a wrong text passes for right."""
        return not self.by and not self.why


def judged(what: Subject, mutants: Sequence[TextMutant]) -> list[Noticed]:
    """Every mutant, with what noticed it, or why nothing can."""
    found: list[Noticed] = []
    device = CpuDevice(seeds=(0, 1), time_limit_s=TIME_LIMIT_S)
    probes = Probes(what, device)
    for start in range(0, len(mutants), BATCH):
        batch = list(mutants[start : start + BATCH])
        for mutant, built in zip(batch, _built(device, what.module, batch), strict=True):
            by = "the compiler" if built is None else noticed(what, device, built)
            same = not by and built is not None and probes.same(built)
            found.append(Noticed(mutant.kind, mutant.was, mutant.now, by, same))
    return found


def control(what: Subject) -> str:
    """What notices the text itself: nothing, if all is well."""
    device = CpuDevice(seeds=(0, 1), time_limit_s=TIME_LIMIT_S)
    return noticed(what, device, device.build(what.module))


def _built(device: CpuDevice, module: CudaModule, mutants: Sequence[TextMutant]) -> list[CpuBuilt | None]:
    """The mutants' programs; None for those that do not compile."""
    out: dict[int, CpuBuilt | None] = {}
    left = list(range(len(mutants)))
    while left:
        try:
            built = device.build_many([replace(module, text=mutants[n].text) for n in left])
        except CompileError as error:
            out[left.pop(error.index)] = None
            continue
        out |= dict(zip(left, built, strict=True))
        break
    return [out[n] for n in range(len(mutants))]


def noticed(what: Subject, device: CpuDevice, built: CpuBuilt) -> str:
    """The first judgement that is against a text, or nothing."""
    for number, (held, expected) in enumerate(zip(what.inputs, what.expected, strict=True)):
        own = device if held.kind == "normal" else replace(device, seeds=(number + 1,))
        try:
            runs = own.run_seeds(built, held.arrays)
        except (KernelFault, KernelTimeout) as error:
            return f"CPU device: {getattr(error, 'kind', '') or type(error).__name__}"
        if not all(all(check_outputs(what.program, outputs, expected)) for outputs in runs):
            return "seeded normal inputs" if held.kind == "normal" else KINDS[held.kind]
    return ""
