"""C identifiers from ids: the user's names, made unique and kept away from what C++ and CUDA define."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .device import defined_names

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
threadIdx blockIdx blockDim gridDim warpSize dim3 min max abs llabs exp log sqrt rsqrt tanh erf pow fabs fmin fmax half vec
INFINITY NAN NULL size_t shared_memory main unix linux max_nan min_nan argmax_key argmin_key
"""
RESERVED = frozenset(_WORDS.split()) | defined_names()

_LIBRARY = """
acos asin atan atan2 cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax fmin fmod frexp gamma hypot index
j0 j1 jn ldexp lgamma log log10 log1p log2 logb modf norm pow powf remainder remquo rint rnorm round rsqrt scalb sin sincos
sinh sqrt tan tanh tgamma trunc y0 y1 yn abs labs div exit free malloc calloc rand read write open close link remove rename
select signal send recv system time clock wait sleep printf puts memcpy memset memmove strlen bcopy bzero daemon pipe sync
"""
_LIBRARY_NAMES = frozenset(_LIBRARY.split())


def identifier(text: str) -> str:
    """`text` with everything but letters, digits and ``_`` replaced: ``k.i`` becomes ``k_i``."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{name}" if not name or name[0].isdigit() else name


@dataclass
class Names:
    """Unique identifiers within one kernel (or module)."""

    taken: set[str] = field(default_factory=lambda: set(RESERVED))

    def take(self, wanted: str) -> str:
        """The identifier for `wanted`, or the first of ``wanted_2``, ``wanted_3`` … that is free."""
        name = identifier(wanted)
        if name.startswith("__") or name in RESERVED:
            name = name.lstrip("_") + "_"
        base, count = name, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


def kernel_identifier(names: Names, kernel_id: str) -> str:
    """The name of a kernel's function, which has C linkage: never one of the C library's."""
    name = identifier(kernel_id)
    return names.take(f"{name}_kernel" if name in _LIBRARY_NAMES or name in RESERVED else name)
