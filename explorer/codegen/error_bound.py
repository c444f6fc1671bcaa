"""How far rounding may take a result: rules that propagate a bound through each operation, as C text.

A running error analysis (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.3): beside
every value goes a first-order bound of the error that a device computing in the program's own types can have made.

Sums are bounded for *any* order of summation, since schedules reorder them: the error of a sum of n terms is at most
``gamma * sum |terms|`` (section 4.2) with ``gamma_n = n u / (1 - n u)``.  That bound is reached by nothing real and is
above 1 for long sums, so the smaller of it and the probabilistic ``gamma~_n = exp(L sqrt(n) u + n u^2 / (1 - u)) - 1`` is
used: with rounding errors that are random with mean zero it holds except with probability at most
``2 exp(-L^2 (1 - u)^2 / 2)`` per sum (N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis",
SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4); ``L = 6`` makes that 3e-8.

For *random data* (inputs made from a seed) this is sharpened: the error is the sum of rounding errors proportional to the
partial sums, and the partial sums of exchangeable terms x are of the size ``sqrt(S^2 + Q)``, with S the whole sum and
``Q = sum x^2``, in whatever order; so the error is at most ``L u sqrt(n) sqrt(S^2 + Q)``.  Terms that cancel then have a bound
of the size of their sum (N. J. Higham, T. Mary, "Sharper probabilistic backward error analysis for basic linear algebra
kernels with random data", SIAM J. Sci. Comput. 42(5), 2020).  Data that was given can be in an order that is worse, so it
gets the bound above.
"""

from __future__ import annotations

from math import expm1, sqrt

from ..ir.dtype import DType
from ..ir.expr import Expr
from ..ir.program import Program, Statement
from ..ir.tree import leaves

CONFIDENCE = 6.0
"""The ``L`` of the probabilistic bound."""

SAFETY = 2.0
"""Factor on the first-order bound for the higher-order terms, and for derivatives taken at the reference's values."""

ROUNDINGS = {"fast_exp": 4, "fast_log": 6, "fast_div": 4, "exp": 4, "log": 2, "rsqrt": 4, "tanh": 4, "erf": 4, "pow": 16,
             "min": 0, "max": 0, "abs": 0, "neg": 0, "where": 0}  # fmt: skip
"""Relative error of an operation in units u (1 where not listed: correctly rounded).  From the maximum errors in ulp of
the CUDA C++ Programming Guide, "Mathematical Functions" (single precision: exp 2, log 1, rsqrt 2, tanh 2, erf 2, pow 8;
double precision: not larger), times two, as an ulp is at most 2 u.  Of the intrinsics ("Intrinsic Functions" there): __expf has
2 + 1.173 |x| ulp, whose second part stands in PROPAGATED; __logf 3 ulp, and 2^-21.41 near 1, which stands there too; __fdividef 2
ulp for divisors between 2^-126 and 2^126."""

SMALLEST = {"f16": 2.0**-14, "f64": 2.0**-1022}
"""The smallest normal numbers; that of the other types is 2**-126."""

PROPAGATED = {
    "add": "{e0} + {e1}",
    "sub": "{e0} + {e1}",
    "mul": "reference_scaled({v0}, {e1}) + reference_scaled({v1}, {e0}) + reference_scaled({e0}, {e1})",
    "div": "reference_scaled(1.0 / {v1}, {e0}) + reference_scaled({t} / {v1}, {e1})",
    "neg": "{e0}",
    "abs": "{e0}",
    "exp": "reference_scaled({t}, {e0})",
    "fast_exp": "reference_scaled({t}, {e0} + 1.4e-7 * fabs({v0}))",
    "fast_log": "reference_scaled(1.0 / {v0}, {e0}) + 3.6e-7",
    "fast_div": "reference_scaled(1.0 / {v1}, {e0}) + reference_scaled({t} / {v1}, {e1})",
    "log": "reference_scaled(1.0 / {v0}, {e0})",
    "sqrt": "({t} > 0 ? {e0} / (2.0 * {t}) : sqrt({e0}))",
    "rsqrt": "reference_scaled(0.5 * {t} / {v0}, {e0})",
    "tanh": "reference_scaled(1.0 - {t} * {t}, {e0})",
    "erf": "reference_scaled(1.1283791670955126 * exp(-{v0} * {v0}), {e0})",
    "pow": "reference_scaled({t} * {v1} / {v0}, {e0}) + reference_scaled({t} * log(fabs({v0})), {e1})",
    "min": "fmax({e0}, {e1})",
    "max": "fmax({e0}, {e1})",
    "where": "({e0} > 0 ? fabs((double){v1} - (double){v2}) + fmax({e1}, {e2}) : {v0} ? {e1} : {e2})",
    "and": "fmax({e0}, {e1})",
    "or": "fmax({e0}, {e1})",
    "not": "{e0}",
    **dict.fromkeys(("argmax_key", "argmin_key"), "({e0} > 0 ? (double)reference_key({v0} + {e0}, 0, 1) "
                    "- (double)reference_key({v0} - {e0}, 0, 1) + 8589934592.0 * {e0} : 0.0)"),
    **dict.fromkeys(("argmax_index", "argmin_index"), "({e0} == INFINITY ? {e0} : 0.0)"),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"),
                    "({e0} + {e1} > 0 && fabs((double){v0} - (double){v1}) <= {e0} + {e1})"),
}
"""The bound of an operation's result from the values ``v``, the bounds ``e`` of its operands and its own value ``t``: the sum of
|derivative| times bound.  A comparison that the operands' errors can turn has bound 1, which `where` makes a bound
of.  The bound of an argmax_key is that of its value; where two keys may change places, the larger has an infinite bound, and so
has its index."""

HELPERS = """\
/* |factor| * bound, where no error stays none whatever the factor */
static double reference_scaled(double factor, double bound) { return bound == 0.0 ? 0.0 : fabs(factor) * bound; }

/* relative error `units` of a value, at least `least` (below the normal numbers); 0, infinities and NaN round to themselves */
static double reference_rounded(double value, double units, double least) {
    return value != 0.0 && value - value == 0.0 ? fmax(fabs(value) * units, least) : 0.0;
}

/* rounding error of a sum of random terms, from the sum and its terms' squares */
static double reference_walk(double sum, double squares, double units) {
    return squares > 0.0 && sum - sum == 0.0 ? units * sqrt(sum * sum + squares) : 0.0;
}
"""


def unit(dtype: DType) -> float:
    """Unit roundoff in which a device computes or stores `dtype`; twice f64's, as the reference itself rounds there."""
    return 2 * dtype.digits if dtype.name == "f64" else dtype.digits


def rounding_error(value: str, dtype: DType, units: float) -> str:
    """C text of the error of a value that is rounded to a type, of relative size `units` where the value is normal.

    Below the smallest normal number, the numbers of a type lie as far apart as there (IEEE 754, "Binary formats"), so the error
    is at most what it is there: 2**-25 for f16.
    """
    return f"reference_rounded((double){value}, {units!r}, {dtype.digits * SMALLEST.get(dtype.name, 2.0**-126)!r})"


def gamma(terms: int, u: float) -> float:
    """Relative error of a sum of `terms` terms in any order, against the sum of their magnitudes; see the module's text."""
    deterministic = terms * u / (1 - terms * u) if terms * u < 1 else float("inf")
    probabilistic = expm1(min(CONFIDENCE * sqrt(terms) * u + terms * u * u / (1 - u), 700.0))
    return min(deterministic, probabilistic)


def walk(terms: int, u: float) -> float:
    """Factor of ``sqrt(S^2 + Q)`` in the bound for random data."""
    return CONFIDENCE * sqrt(terms) * u


def updates_per_cell(statement: Statement, program: Program) -> int:
    """The most updates that one cell of the statement's target gets: the extents of the dimensions that its index does not name.

    An upper bound where the domain is not a box, or where an index combines dimensions.
    """
    single = [e.terms[0][0] for e in statement.target.index if isinstance(e, Expr) and len(e.terms) == 1]
    named = {atom for atom in single if isinstance(atom, str)}
    count = 1
    for leaf, above in leaves(program.body):
        if leaf.statement == statement.name:
            for loop in above:
                count *= loop.extent if loop.id not in named else 1
    return max(count, 1)
