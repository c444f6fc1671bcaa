"""C identifiers from ids: the user's names, made unique and kept away from everything that C++, CUDA and the text itself define.

A name stays as it is unless something else may own it, and then it ends in ``_``.  Who owns what is told by the form of a name
wherever there is one: macros are in capitals, the implementation's names begin with ``_`` or hold ``__``, CUDA's begin with
``cuda``.  What has no form of its own is a word of the language, or a name that the text calls; the latter are read off the
tables and the library that it is written from.  No macro of a header ends in one ``_`` (the tests ask the preprocessor).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from ..ir.dtype import DTYPES
from ..ir.operations import OPERATIONS
from .device import defined_names
from .foreign_names import is_declared

_WORDS = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch char char8_t
char16_t char32_t class co_await co_return co_yield compl concept const consteval constexpr constinit const_cast continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reflexpr register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch synchronized
template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""
"""Keywords of C, C++ and both compilers' extensions (ISO C++23 [lex.key], ISO C23 6.4.1)."""

_TEXT = """
threadIdx blockIdx blockDim gridDim warpSize dim3 cooperative_groups min max abs half nv_bfloat16 vec size_t ptrdiff_t
shared_memory main entry self_check std
"""
"""What the text, its neighbours in a program and CUDA's own headers name without a form of its own."""

_MACROS = ("linux unix i386 sun sparc mips arm vax errno assert stdin stdout stderr L_tmpnam L_ctermid L_cuserid P_tmpdir "
           "math_errhandling")
"""Macros in small letters that stand for something without an argument: the compilers' own, and those of the headers."""

_FORMS = re.compile(r"""
    _[A-Z].* | .*__.*                                                                     # the implementation's ([lex.name])
    | (?=\w*[A-Z]\w*[A-Z])[A-Z][A-Z0-9_]{2,}(?:l|f[0-9]*x?)?                              # macros
    | (?:cuda|cu|CU)[A-Z].* | (?i:simt)\w*                                                # CUDA's, and the CPU device's
    | (?:make_)?(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]                  # vector types
    """, re.VERBOSE)


@cache
def reserved() -> frozenset[str]:
    """Words of the language, and what the text calls; found when a name is first asked for."""
    spelled = " ".join(text for row in OPERATIONS.values() for text in row.cuda.values())
    called = re.findall(r"(?<![\w.])[A-Za-z_]\w*", f"{spelled} {' '.join(d.cuda for d in DTYPES.values())}")
    return frozenset((*_WORDS.split(), *_TEXT.split(), *_MACROS.split(), *called)) | defined_names()


def identifier(text: str) -> str:
    """`text` with everything but letters, digits and ``_`` replaced: ``k.i`` becomes ``k_i``."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{name}" if not name or name[0].isdigit() else name


def is_free(name: str) -> bool:
    """Whether nobody but a program can have given an identifier its meaning."""
    return name not in reserved() and not _FORMS.fullmatch(name)


def free(name: str) -> str:
    """An identifier that :func:`is_free`: the name itself, or one like it that ends in ``_``."""
    return name if is_free(name) else identifier(re.sub("_+", "_", name.strip("_"))) + "_"


@dataclass
class Names:
    """Unique identifiers within one kernel (or module)."""

    taken: set[str] = field(default_factory=set[str])

    def take(self, wanted: str) -> str:
        """The identifier for `wanted`, or the first of ``wanted_2``, ``wanted_3`` … that is not taken."""
        base = name = free(identifier(wanted))
        count = 1
        while name in self.taken:
            count += 1
            name = f"{base}{'' if base.endswith('_') else '_'}{count}"
        self.taken.add(name)
        return name


def kernel_identifier(names: Names, kernel_id: str) -> str:
    """The name of a kernel's function, which has C linkage: never one of the libraries'."""
    name = identifier(kernel_id)
    foreign = is_declared(name) or not is_free(name) or name.startswith(("_", "launch_"))
    return names.take(f"{name}_kernel" if foreign else name)
