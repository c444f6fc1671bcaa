"""What the compilers print, as data: registers and spills from ptxas, errors with their lines from NVRTC and ptxas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")
_ERROR = re.compile(r"^(?P<file>[^\n]*?)\((?P<line>\d+)\): (?:catastrophic )?error\b[^:]*: (?P<message>.*)$", re.MULTILINE)
_PTXAS_ERROR = re.compile(r"^ptxas [^\n]*?, line (?P<line>\d+); (?:error|fatal)\s*: (?P<message>.*)$", re.MULTILINE)
_PLAIN_ERROR = re.compile(r"^\s*(?:ptxas|nvrtc:) *(?:error|fatal)\s*: (?P<message>.*)$", re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class KernelResources:
    """What one kernel needs, as ptxas reports it.

    Attributes
    ----------
    name : str
    registers : int
        32-bit registers per thread.
    spill_store_bytes, spill_load_bytes, stack_bytes : int
        Local memory traffic that did not fit in registers, and local memory, bytes per thread.
    static_shared_bytes : int
        Shared memory declared in the text, bytes per block.
    barriers : int
        Named barriers.
    """

    name: str
    registers: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    static_shared_bytes: int = 0
    barriers: int = 0


@dataclass(frozen=True)
class Diagnostic:
    """One error.

    Attributes
    ----------
    message : str
    line : int or None
        1-based line of the CUDA text; None where the compiler names none.
    text : str
        That line.
    nodes : tuple of str
        Ids of the schedule's nodes it came from, innermost first.
    """

    message: str
    line: int | None = None
    text: str = ""
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        node = f" [{', '.join(self.nodes)}]" if self.nodes else ""
        return f"line {self.line}{node}: {self.message}\n    {self.text.strip()}"


def resources(log: str) -> Mapping[str, KernelResources]:
    """Kernels by name, from the text of ``--ptxas-options=-v``."""
    kernels: dict[str, KernelResources] = {}
    entry = subject = ""
    for line in log.splitlines():
        if found := _ENTRY.search(line):
            entry = subject = found[1]
            kernels[entry] = KernelResources(entry)
        elif found := _PROPERTIES.search(line):
            subject = found[1]  # a function that was not inlined has its own lines after its kernel's
        elif entry and (found := _STACK.search(line)):
            kernels[entry] = _with_stack(kernels[entry], subject == entry, *map(int, found.groups()))
        elif entry and (found := _USED.search(line)):
            kernels[entry] = replace(
                kernels[entry], registers=int(found[1]), barriers=_number(_BARRIERS, line),
                static_shared_bytes=_number(_SHARED, line),
                stack_bytes=max(kernels[entry].stack_bytes, _number(_CUMULATIVE, line)))
    return kernels


def diagnostics(log: str, text: str, ptx: str = "") -> tuple[Diagnostic, ...]:
    """The errors in a log, in order, each with its line of `text` where that can be known.

    ptxas counts lines of PTX; the nearest ``.loc`` above (there because everything is compiled with ``-lineinfo``) leads
    back to the text.
    """
    lines = text.splitlines()
    found = [_at(m["message"], int(m["line"]), lines) for m in _ERROR.finditer(log)]
    for m in _PTXAS_ERROR.finditer(log):
        above = _LOC.findall("\n".join(ptx.splitlines()[: int(m["line"])]))
        found.append(_at(m["message"], int(above[-1]) if above else None, lines))
    return tuple(found) or tuple(Diagnostic(m["message"]) for m in _PLAIN_ERROR.finditer(log))


def _at(message: str, line: int | None, lines: list[str]) -> Diagnostic:
    known = line is not None and 1 <= line <= len(lines)
    return Diagnostic(message.strip(), line, lines[line - 1] if known and line else "")


def _with_stack(kernel: KernelResources, own: bool, stack: int, stores: int, loads: int) -> KernelResources:
    """A function's spills count for its kernel; only the kernel's own frame is its frame."""
    return replace(kernel, stack_bytes=stack if own else kernel.stack_bytes,
                   spill_store_bytes=kernel.spill_store_bytes + stores, spill_load_bytes=kernel.spill_load_bytes + loads)


def _number(pattern: re.Pattern[str], line: str) -> int:
    found = pattern.search(line)
    return int(found[1]) if found else 0
