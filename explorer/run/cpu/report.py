"""From what the compiler or a run on the CPU device reports to an error a person can act on."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import CompileError, DeviceError, KernelFault, KernelTimeout, OutOfMemory
from ...kernel.module import CudaModule
from .glue import file_of

_DIAGNOSTIC = re.compile(r"^m(\d+)\.cu:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", re.MULTILINE)

_HINTS = {
    "out-of-bounds": "a guard is missing, or a bound is one too large",
    "array-bounds": "a loop bound or the array's extent is off",
    "uninitialised": "the write that should come first is missing, guarded away, placed later, or not separated by a barrier",
    "read-only": "declare the array as an output",
    "race": "put a barrier between the two (__syncthreads(), or __syncwarp() inside a warp), or make both atomic",
    "misaligned": "a vector access needs a multiple of its width: pad the array, or use a narrower vector",
    "bulk-pending": "wait for the phase in which the copy's bytes are counted, or for a barrier behind such a wait, before this",
    "bulk-unfinished": "wait for the phase of every copy before the block ends",
    "store-pending": "bulk_stores_read() of the thread that asked, and a barrier behind it, before the next write there",
    "store-unfinished": "bulk_stores_read() of the thread that asked, before the block ends",
    "store-before": "shift the tiles, so that they begin in the array, or let threads store them",
    "bulk-alignment": "a box goes to a multiple of 128 bytes",
    "bulk-column": "16 bytes divide the place in a row at which a box begins",
    "bulk-shape": "a box has as many coordinates as its array has dimensions",
    "mbarrier": "see that somebody arrives in this phase, that its copies are made, and that the wait is for this parity",
    "mbarrier-again": "wait for the phase, and let all threads meet, before the next arrival on the same mbarrier",
    "mbarrier-unwaited": "arrive for no group that nobody waits for, or wait for it",
    "mbarrier-begun": "one thread makes the mbarriers ready, once",
    "mbarrier-not-ready": "one thread makes the mbarriers ready, and a barrier of the block follows: one of the cluster, where "
                          "other blocks use them",
    "cluster-ended": "all threads of the cluster wait for each other at the kernel's end",
    "cluster-rank": "see that the text's cluster is the launch's",
    "proxy-unfenced": "fence_proxy_async() of the thread that wrote, behind the write and before the barrier",
    "async-pending": "wait for the copy's group, and then synchronise, before this access",
    "barrier-divergence": "move the barrier out of the branch, so that every thread of the block reaches the same one",
    "warp-divergence": "every lane named in the mask must reach the same operation with the same mask",
    "warp-mask": "a thread may only use a mask that contains its own lane",
}
_RELEASE = "wait, before the copy, until the threads of the other block have released the place at an mbarrier of this one"


def compile_error(modules: Sequence[CudaModule], log: str, start: int) -> CompileError:
    """The first error of a compiler's `log`, at its line of the text of one of `modules` (numbered from `start`)."""
    found = _DIAGNOSTIC.search(log)
    if not found:
        names = ", ".join(m.name for m in modules[:3]) + (", …" if len(modules) > 3 else "")
        return CompileError(f"The C++ compiler refused the text of {names}.", why=log.strip()[-2000:], log=log, index=start,
                            line=None, nodes=())
    number, line, message = int(found.group(1)), int(found.group(2)), found.group(4)
    module = modules[number]
    message = re.sub(rf"\bm{number}_(?:::)?", "", message)
    return CompileError(f"The C++ compiler refused line {line} of {module.name}.", where=_place(module, line), why=message,
                        log=log, index=start + number, line=line, nodes=module.nodes_at(line))


def failure(module: CudaModule, program: Path, number: int, answer: Sequence[str], status: int, stderr: str,
            limit_s: float) -> DeviceError:
    """What a run that did not end in "ok" means."""
    line = next((a for a in answer if a.startswith("fault\t")), None)
    if line is None:
        return KernelFault(f"{module.name} ended its process (status {status}).", why=stderr.strip()[-500:], kind="crash")
    fields = dict(part.split("=", 1) for part in line.split("\t")[1:] if "=" in part)
    return _Reporter(module, program, number, fields, limit_s).error()


class _Reporter:
    """One fault's fields, read with the module at hand."""

    def __init__(self, module: CudaModule, program: Path, number: int, fields: Mapping[str, str], limit_s: float) -> None:
        self.module, self.program, self.number, self.fields, self.limit_s = module, program, number, fields, limit_s
        self.kind = fields.get("kind", "crash")
        self.kernel = fields.get("kernel", ":" + module.name).split(":", 1)[1]
        self.line = self._line()

    def error(self) -> DeviceError:
        """The exception."""
        if self.kind == "memory":
            return OutOfMemory("The arrays do not fit this machine's memory.",
                               why=f"{self.fields.get('bytes')} bytes were asked for")
        if self.kind == "request":
            return DeviceError("The CPU device did not understand its request.", why=f"at {self.fields.get('word')!r}")
        details = {"kind": self.kind, "line": self.line, "nodes": self.module.nodes_at(self.line) if self.line else (),
                   "kernel": self.kernel, "seed": self._int("seed"), "launch": self._int("launch"),
                   "thread": self._triple("thread"), "block": self._triple("block"), "text": self.module.text, **self._access()}
        if self.kind == "timeout":
            return KernelTimeout(f"{self.kernel} ran longer than {self.limit_s:g} s and was stopped.", where=self._where(),
                                 hint="look for a loop that never ends, or give it more time", **details)
        hint = _RELEASE if "mate" in self.fields else _HINTS.get(self.kind, "")
        return KernelFault(self._what(details), where=self._where(), why=self._why(), hint=hint, **details)

    # -- sentences --

    def _what(self, details: Mapping) -> str:
        """One sentence: what is wrong."""
        f, kernel = self.fields, self.kernel
        verb = "writes" if f.get("write") == "1" else "reads"
        element = self._element(details)
        sentences = {
            "out-of-bounds": f"{kernel} {verb} {element}, outside the array",
            "wild-access": f"{kernel} {verb} memory that is no array's",
            "array-bounds": f"{kernel} uses index {f.get('index')} of an array of type {f.get('type', '').strip(chr(39))}",
            "uninitialised": f"{kernel} reads {element} before anything was written there",
            "read-only": f"{kernel} writes {element}, which is an input",
            "race": f"two threads of {kernel} race for {element}",
            "misaligned": f"{kernel} uses a misaligned vector access" + (f" to {element}" if "array" in f else ""),
            "proxy-unfenced": f"an instruction or store of {kernel} reads {element} without a fence behind the write of a thread",
            "async-pending": f"{kernel} {verb} {element} while an asynchronous copy into it is pending",
            "bulk-pending": f"{kernel} {verb} {element} " +
                            (f"of block number {f['other_block']}, which need not have waited for the bulk copy to it"
                             if "mate" in f else "before this thread has waited for the bulk copy to it"),
            "bulk-unfinished": f"a block of {kernel} ends while {f.get('boxes')} bulk copies are on their way",
            "store-pending": f"{kernel} writes {element} while a bulk store may still read it",
            "store-unfinished": f"a block of {kernel} ends while {f.get('boxes')} bulk stores may still read its shared memory",
            "store-before": f"{kernel} stores a box that begins before its array, at {f.get('at')}; no GPU has that",
            "bulk-alignment": f"{kernel} copies a box to an address that is no multiple of 128",
            "bulk-column": f"{kernel} copies a box that begins at column {f.get('at')}, between two multiples of 16 bytes",
            "bulk-shape": f"{kernel} copies a box of {f.get('rank')} dimensions of an array with {f.get('of_map')}",
            "mbarrier": f"{f.get('waiting')} threads of a block of {kernel} wait for a phase of {element} that never ends",
            "mbarrier-again": f"{kernel} arrives on {element} again in one phase",
            "mbarrier-unwaited": f"{kernel} arrives on {element} again, and nobody has waited for its phase {f.get('phase')}",
            "mbarrier-begun": f"{kernel} makes {element} ready again",
            "cluster-ended": f"{kernel} uses {element} of block {f.get('rank')} of its cluster, which has ended",
            "cluster-rank": f"{kernel} uses block {f.get('rank')} of a cluster of {f.get('blocks')}",
            "mbarrier-not-ready": f"{kernel} uses {element}, which no thread has made ready",
            "async-size": f"{kernel} asks for an asynchronous copy of {f.get('valid')} of {f.get('bytes')} bytes",
            "async-alignment": f"{kernel} copies asynchronously from an address that is no multiple of {f.get('bytes')}",
            "barrier-divergence": f"not all threads of a block of {kernel} reach the same barrier",
            "warp-divergence": f"a warp of {kernel} waits for lanes that never come",
            "warp-mask": f"{kernel} uses warp mask {self._mask('mask')}, which lacks the calling lane {f.get('lane')}",
            "deadlock": f"no thread of a block of {kernel} can go on",
            "grid-barrier": f"{kernel} has a barrier of the grid, but its launch is not cooperative",
            "grid-divergence": f"{f.get('waiting')} blocks of {kernel} wait for all, and {f.get('ended')} have ended",
            "division": f"{kernel} divides an integer by zero",
            "trap": f"{kernel} reached a trap or a failed assertion",
            "arguments": f"{kernel} has {f.get('parameters')} parameters but is launched with {f.get('arguments')}",
            "signal": f"{kernel} crashed: " + ("its stack overflowed" if f.get("stack_overflow") == "1" else f.get("name", "")),
        }
        return sentences.get(self.kind, f"{kernel} failed ({self.kind})") + "."

    def _why(self) -> str:
        """The facts behind it."""
        f = self.fields
        if self.kind == "race":
            other = self._flat_thread(int(f["other_thread"]))
            same = self._int_block() == int(f["other_block"])
            mine, theirs = ("writes" if f["write"] == "1" else "reads"), ("wrote" if f["other_write"] == "1" else "read")
            at = self._text_line(int(f["other_pc"]))
            place = f"thread {other} of {'the same block' if same else 'block number ' + f['other_block']}"
            return (f"this thread {mine} it; {place} {theirs} it" + (f" at line {at}" if at else "") +
                    (" since the last barrier" if same else " in the same launch"))
        if self.kind in ("out-of-bounds", "wild-access") and "array" in f:
            nearest = " (the nearest array)" if self.kind == "wild-access" else ""
            return f"byte {f['offset']} of {f['array']}, which has {f['size']}{nearest}"
        if self.kind == "misaligned" and "alignment" in f:
            return (f"a {f['type'].strip(chr(39))} needs an address that is a multiple of {f['alignment']}; "
                    f"this one is {f['address_mod']} past one")
        if self.kind == "mbarrier":
            left = [f"{f['missing']} arrival"] * (f["missing"] != "0") + [f"{f['bytes_left']} bytes"] * (f["bytes_left"] != "0")
            return (f"they wait for parity {f['parity']}; it is in phase {f['phase']}" +
                    (f", which lacks {' and '.join(left)}" if left else "") + self._others())
        if self.kind == "mbarrier-again":
            return f"its phase {f['phase']} has the arrival, and lacks {f['bytes_left']} bytes"
        if self.kind == "barrier-divergence" and "ended" in f:
            return (f"{f['waiting']} threads wait at line {f['line']}, but {f['ended_count']} ended without it, "
                    f"thread {self._flat_thread(int(f['ended']))} for one")
        if self.kind == "barrier-divergence":
            return (f"thread {self._flat_thread(int(f['first']))} waits at line {f['line']}, "
                    f"thread {self._flat_thread(int(f['other']))} at line {f['other_line']}")
        if self.kind == "warp-divergence" and int(f["other"]) >= 0:
            states = {"2": f"waits at the barrier of line {f['other_line']}",
                      "3": f"waits at line {f['other_line']} with mask {self._mask('other_mask')}"}
            state = states.get(f["other_state"], "does something else")
            return (f"thread {self._flat_thread(int(f['thread']))} waits with mask {self._mask('mask')}; "
                    f"thread {self._flat_thread(int(f['other']))} {state}")
        return ""

    def _others(self) -> str:
        """Who else of the block waits, for something else: the other side of a deadlock."""
        f = self.fields
        if not int(f["others"]):
            return f"; the {f['ended']} others of the block have ended" if int(f["ended"]) else ""
        line = self._text_line(int(f["other_pc"])) if int(f["other_pc"]) else int(f["other_line"])
        others = "1 other thread of the block waits" if f["others"] == "1" else f"{f['others']} other threads of the block wait"
        return f"; {others} at " + (_place(self.module, line) if line else "another place")

    def _where(self) -> str:
        """Line, thread, block, order."""
        parts = [_place(self.module, self.line)] if self.line else []
        if "thread" in self.fields:
            parts.append(f"thread ({self.fields['thread']}) of block ({self.fields['block']})")
        if self._int("seed"):
            parts.append(f"in the thread order of seed {self.fields['seed']}")
        return ", ".join(parts)

    # -- facts --

    def _access(self) -> dict:
        """The array, and the index of the element in it, of the access at fault."""
        if "array" not in self.fields:
            return {"array": None, "index": None}
        name, offset = self.fields["array"], int(self.fields["offset"])
        if self.fields.get("shared") == "1":
            index = self._shared_index(name, offset)
            return {"array": name, "index": index, "offset": offset, "write": self.fields["write"] == "1"}
        buffer = self.module.buffer(name)
        flat = offset // buffer.dtype.bytes
        return {"array": name, "flat_index": flat, "index": _unravel(flat, buffer.shape), "write": self.fields["write"] == "1"}

    def _shared_index(self, name: str, offset: int) -> tuple[int, ...] | None:
        """Index of the element at a byte of a shared array; None where the module has no such array, or it is a scalar."""
        found = next((s for s in self.module.shared if (s.kernel, s.name) == (self.kernel, name) and s.shape), None)
        return _unravel(offset // found.dtype.bytes, found.shape) if found else None

    def _element(self, details: Mapping) -> str:
        """The element as users write it."""
        if not details.get("array"):
            return "memory"
        if details["index"] is None:
            return f"byte {details['offset']} of {details['array']}"
        return f"{details['array']}[{', '.join(map(str, details['index']))}]"

    def _line(self) -> int | None:
        """The line of the text: given, or that of the program counter."""
        if int(self.fields.get("line", 0)):
            return int(self.fields["line"])
        for key in ("pc", "recent_pc"):
            if int(self.fields.get(key, 0)) and (line := self._text_line(int(self.fields[key]))):
                return line
        return None

    def _text_line(self, program_counter: int) -> int | None:
        """The innermost line that belongs to a node, else the innermost line of the text; None where no tool can tell."""
        lines = [number for file, number in _frames(self.program, program_counter - 1) if file == file_of(self.number)]
        return next((n for n in lines if self.module.nodes_at(n)), lines[0] if lines else None)

    def _int(self, key: str) -> int | None:
        return int(self.fields[key]) if key in self.fields else None

    def _triple(self, key: str) -> tuple[int, ...] | None:
        return tuple(map(int, self.fields[key].split(","))) if key in self.fields else None

    def _mask(self, key: str) -> str:
        return f"0x{int(self.fields.get(key, 0)):08x}"

    def _int_block(self) -> int:
        """The block's number, x fastest."""
        x, y, z = self._triple("block") or (0, 0, 0)
        gx, gy, _ = self.module.launches[self._int("launch") or 0].grid
        return x + gx * (y + gy * z)

    def _flat_thread(self, thread: int) -> tuple[int, int, int]:
        bx, by, _ = self.module.launches[self._int("launch") or 0].block
        return thread % bx, thread // bx % by, thread // bx // by


def _place(module: CudaModule, line: int) -> str:
    """A line of the text, quoted, with its nodes."""
    lines = module.text.splitlines()
    quoted = f": {lines[line - 1].strip()}" if 1 <= line <= len(lines) else ""
    nodes = module.nodes_at(line)
    return f"line {line}{quoted}" + (f"  [{', '.join(nodes)}]" if nodes else "")


def _unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major index of element `flat`; the first index may leave the array."""
    index: list[int] = []
    for extent in reversed(shape[1:]):
        index.append(flat % max(extent, 1))
        flat //= max(extent, 1)
    return (flat, *reversed(index))


def _frames(program: Path, address: int) -> list[tuple[str, int]]:
    """(File name, line) of an address, innermost inlined function first, by addr2line or llvm-symbolizer; empty without them."""
    if tool := shutil.which("addr2line"):
        command = [tool, "-i", "-e", str(program), hex(address)]
    elif tool := shutil.which("llvm-symbolizer"):
        command = [tool, "--functions=none", "--obj=" + str(program), hex(address)]
    else:
        return []
    answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
    found = [re.match(r"(.*?):(\d+)", line) for line in answer.splitlines()]
    return [(Path(m.group(1)).name, int(m.group(2))) for m in found if m]
