"""The machine code of every schedule, measured, and compared with that of another version of the code generator.  Needs no GPU.

    python benchmarks/sass.py --write NAME                       # measure this tree: results/NAME.json
    python benchmarks/sass.py --against v1.0                     # compare it with another commit
    python benchmarks/sass.py --against results/NAME.json        # or with what was written
    python benchmarks/sass.py --against v1.0 --write NAME        # and write the table, results/NAME.md
    python benchmarks/sass.py --against v1.0 --texts softmax     # how the CUDA texts differ, of cases with that in their names

The schedules are those of `sass_texts.py`, which runs in each tree by itself.  The texts of both go through one NVRTC, and
nvdisasm (from the wheel `nvidia-cuda-nvdisasm`) reads what it makes.  A text is compiled once; explorer's cache keeps the result.
Exits with 1 where a case has more registers or spills, is refused or gone, or the geometric mean of instructions is above 1.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sass_table import Case, Comparison, Counts, Measured  # noqa: E402
from explorer.errors import CompileError, CompilerMissing  # noqa: E402
from explorer.run.nvrtc.compiler import compile_text, nvrtc_version  # noqa: E402
from explorer.run.nvrtc.library import wheel_folders  # noqa: E402

ARCH = "sm_90"
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_WORD = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
Texts = Mapping[str, Mapping[str, Any]]
"""By case: `text` and `dynamic`, the bytes of dynamic shared memory by kernel; neither where there is no text."""


def sass(dump: str) -> dict[str, tuple[int, str]]:
    """Each kernel's instructions, `NOP`s aside, and the hash of its machine code, from what ``nvdisasm -c -hex`` prints."""
    found = {}
    for section in dump.split("//---------------------"):
        if name := re.match(r" \.text\.(\S+)", section):
            instructions, code = _INSTRUCTION.findall(section), _WORD.findall(section)
            assert len(code) == 2 * len(instructions), f"{name[1]}: {len(code)} words for {len(instructions)} instructions"
            found[name[1]] = sum(i != "NOP" for i in instructions), _hash("".join(code))
    return found


def whole(cubin: bytes) -> bytes:
    """The cubin with its last byte, a zero: CuPy cuts it off, and nvdisasm does not read a file without it."""
    segments, sections = struct.unpack_from("<QQ", cubin, 0x20)
    segment_bytes, segment_count, section_bytes, section_count = struct.unpack_from("<HHHH", cubin, 0x36)
    end = max(segments + segment_bytes * segment_count, sections + section_bytes * section_count)
    return cubin + b"\0" if len(cubin) == end - 1 else cubin


def disassembler() -> Path:
    """The wheel's ``nvdisasm``."""
    for path in (path for folder in wheel_folders() for path in sorted((folder / "bin").glob("nvdisasm*"))):
        return path
    raise CompilerMissing("nvdisasm is not on this machine.", hint="pip install nvidia-cuda-nvdisasm")


def counted(text: str) -> dict[str, Counts]:
    """The kernels of one text, without their dynamic shared memory; none where NVRTC refuses it."""
    try:
        compiled = compile_text(text, ARCH)
    except CompileError:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(whole(compiled.cubin))
        dump = subprocess.run([disassembler(), "-c", "-hex", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    code = sass(dump)
    return {name: Counts(code[name][0], need.registers, need.spill_store_bytes + need.spill_load_bytes,
                         need.static_shared_bytes, 0, code[name][1]) for name, need in compiled.kernels.items()}


def texts(tree: Path) -> Texts:
    """What a tree's own generator makes of its own schedules."""
    done = subprocess.run([sys.executable, HERE / "sass_texts.py"], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
                          stdout=subprocess.PIPE, text=True, check=True)
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    found = {case["case"]: case for case in cases}
    assert len(found) == len(cases), "two cases have one name"
    return found


def texts_at(commit: str) -> Texts:
    """What a commit's generator makes, in a worktree that is removed afterwards."""
    worktree = ("git", "-C", str(ROOT), "worktree")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        subprocess.run([*worktree, "add", "--quiet", "--detach", tree, commit], check=True)
        try:
            return texts(tree)
        finally:
            subprocess.run([*worktree, "remove", "--force", tree], check=True)


def measured(*trees: Texts) -> list[Measured]:
    """The trees' machine code; each text is compiled once."""
    every = list(dict.fromkeys(case["text"] for tree in trees for case in tree.values() if "text" in case))
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        kernels = dict(zip(every, pool.map(counted, every, chunksize=4), strict=True))
    tools = {"arch": ARCH, "nvrtc": ".".join(map(str, nvrtc_version())), "nvdisasm": version("nvidia-cuda-nvdisasm")}
    return [Measured(tools, {name: _case(case, kernels) for name, case in tree.items()}) for tree in trees]


def _case(case: Mapping[str, Any], kernels: Mapping[str, Mapping[str, Counts]]) -> Case:
    if "text" not in case:
        return Case("", {})
    found = kernels[case["text"]]
    return Case(_hash(case["text"]), {k: replace(v, dynamic_shared=case["dynamic"].get(k, 0)) for k, v in found.items()})


def differences(before: Texts, after: Texts, word: str) -> Iterator[str]:
    """Lines that differ in the texts of the cases with a word in their names."""
    for name in (n for n in after if word in n and n in before):
        was, now = (side[name].get("text", "").splitlines() for side in (before, after))
        yield from difflib.unified_diff(was, now, f"{name}, before", f"{name}, after", n=2, lineterm="")


def described(commit: str = "") -> str:
    """A commit's short hash; without one, that of this tree."""
    asked = ("rev-parse", "--short", commit) if commit else ("describe", "--always", "--dirty", "--exclude=*")
    done = subprocess.run(["git", "-C", str(ROOT), *asked], capture_output=True, text=True, check=False)
    return done.stdout.strip() or commit or "this tree"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="NAME", help="write results/NAME.json, and with --against results/NAME.md")
    parser.add_argument("--against", metavar="FILE_OR_COMMIT", help="what this tree is compared with")
    parser.add_argument("--texts", metavar="WORD", help="print the texts' differences of the cases with this in their names")
    chosen = parser.parse_args()
    file = Path(chosen.against) if chosen.against and Path(chosen.against).is_file() else None
    commit = chosen.against if not file else None
    if chosen.texts and not commit:
        parser.error("--texts compares with a commit: a file keeps no texts")
    saved, after = Measured.load(file) if file else None, described()
    then, now = texts_at(commit) if commit else {}, texts(ROOT)
    if chosen.texts:
        print("\n".join(differences(then, now, chosen.texts)))
        return 0
    *earlier, mine = measured(then, now) if commit else measured(now)
    if chosen.write:
        mine.save(HERE / "results" / f"{chosen.write}.json")
    if not chosen.against:
        print(f"{len(mine.cases)} cases of {after}, {sum(not case.kernels for case in mine.cases.values())} of them refused")
        return 0
    compared = Comparison(saved or earlier[0], mine)
    if compared.before.tools != mine.tools:
        parser.error(f"{file} was measured with {compared.before.tools}, and here are {mine.tools}: compare with its commit")
    page = compared.page(f"`{described(commit) if commit else chosen.against}`", f"`{after}`")
    if chosen.write:
        (HERE / "results" / f"{chosen.write}.md").write_text(page, encoding="utf-8")
    print(page)
    return 0 if compared else 1


if __name__ == "__main__":
    sys.exit(main())
