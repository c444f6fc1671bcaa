"""How far rounding may take a result: a bound beside every value, as C text.  How an operation propagates it, and what it adds,
stands in the operation's row (:mod:`explorer.ir.operations`).

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

What is *exact* has no error.  A correctly rounded operation on exact operands whose result its type holds does not round, so
it adds nothing.  And a sum is exact in any order if its terms are exact, all are multiples of a power of two ``g``, and their
magnitudes add up to at most ``2^p g``, with ``p`` the digits of the type: no partial sum then needs more than ``p`` bits.  Beside
the cells of sums stand the sum of magnitudes and ``1 / g`` (the *fineness*).  On small integers the bound of most programs is
therefore 0, and the comparison is bit for bit.

What is larger than the largest number of its type is an infinity on a device, and the number it is here: nothing bounds its
error.  A quotient by it is known all the same, as it is near 0.
"""

from __future__ import annotations

import sys
from math import expm1, sqrt

from ...ir.dtype import DType
from ...ir.expr import Expr
from ...ir.program import Program, Statement
from ...ir.tree import leaves

CONFIDENCE = 6.0
"""The ``L`` of the probabilistic bound."""

SAFETY = 2.0
"""Factor on the first-order bound for the higher-order terms, and for derivatives taken at the reference's values."""

SMALLEST = {"f8e4m3": 2.0**-6, "f8e5m2": 2.0**-14, "f16": 2.0**-14, "f64": 2.0**-1022}
"""The smallest normal numbers; that of the other types is 2**-126."""

LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38}
"""The largest numbers of types above which a device has infinities."""

HELPERS = """\
/* what a type that has `largest` as its largest number makes of a larger one; NaN stays */
static double reference_saturated(double value, double largest) {
    return value > largest ? largest : value < -largest ? -largest : value;
}

/* |factor| * bound: no error stays none whatever the factor, an unknown one unknown; the factor of what is NaN is NaN */
static double reference_scaled(double factor, double bound) {
    return bound == 0.0 || factor != factor ? 0.0 : factor == 0.0 && bound == INFINITY ? INFINITY : fabs(factor) * bound;
}

/* the bound of what an infinite operand makes infinite, or 0: none while the other one, of error `db`, keeps its sign */
static double reference_infinite(double da, double b, double db) { return da < INFINITY && db < fabs(b) ? 0.0 : INFINITY; }

/* the bound of a * b, whose errors are `da` and `db` */
static double reference_product(double a, double da, double b, double db) {
    if (a * b != a * b) return 0.0;
    if (fabs(a) == INFINITY) return reference_infinite(da, b, db);
    if (fabs(b) == INFINITY) return reference_infinite(db, a, da);
    return reference_scaled(a, db) + reference_scaled(b, da) + reference_scaled(da, db);
}

/* the bound of a / b */
static double reference_quotient(double a, double da, double b, double db) {
    if (a / b != a / b) return 0.0;
    if (fabs(a) == INFINITY) return reference_infinite(da, b, db);
    if (fabs(b) == INFINITY) return reference_infinite(da, b, db);
    if (db == INFINITY && fabs(b) > 3.4028234663852886e38) return (fabs(a) + da) / 3.4028234663852886e38;
    return reference_scaled(1.0 / b, da) + reference_scaled(a / b / b, db);
}

/* the bound of t = a to the power b */
static double reference_power(double t, double a, double da, double b, double db) {
    if (t != t || da + db == 0.0) return 0.0;
    if (fabs(a) == INFINITY) return reference_infinite(da, b, db);
    if (fabs(b) == INFINITY) return reference_infinite(db, fabs(a) - 1.0, da);
    if (a == 0.0) return b > db ? pow(da, b - db) : INFINITY;
    return reference_scaled(t / a * b, da) + reference_scaled(t * log(fabs(a)), db);
}

/* the bound of a sine or cosine, whose derivative is given: of second order beside it, and never above 2 */
static double reference_wave(double derivative, double bound) {
    if (bound == 0.0 || bound == INFINITY) return bound;
    return fmin(2.0, reference_scaled(derivative, bound) + 0.5 * bound * bound);
}

/* the bound of a function of this derivative, whose second one is nowhere above `curvature` and whose values span `most` */
static double reference_bent(double derivative, double bound, double curvature, double most) {
    if (bound == 0.0 || derivative != derivative) return 0.0;
    return bound == INFINITY ? most : fmin(most, reference_scaled(derivative, bound) + 0.5 * curvature * bound * bound);
}

/* the bound of a function of positive numbers, whose derivative is given: unknown where the operand may have no other sign */
static double reference_positive(double derivative, double value, double bound) {
    return bound > 0.0 && fabs(value) <= bound ? INFINITY : reference_scaled(derivative, bound);
}

/* the bound of fmod(a, b): that of a - n b, and all of b where the quotient n may be another */
static double reference_wrapped(double a, double da, double b, double db) {
    double rest = fabs(fmod(a, b)), times = fabs(trunc(a / b)), error;
    if (da + db == 0.0 || rest != rest) return 0.0;
    error = da + reference_scaled(times, db);
    if (fabs(a) + 2.0 * da < fabs(b) - 2.0 * db) return da;
    return rest > 2.0 * error && rest + 2.0 * error < fabs(b) - 2.0 * db ? error : error + fabs(b) + db;
}

/* the bound of t = exp(x * scale - m) by a fused multiply-add of x, fl(scale * log2 e) and -fl(m * log2 e), both rounded
   towards zero and so none above the largest f32, and a power of two that is 0 where it is not normal */
static double reference_fused(double t, double x, double dx, double scale, double ds, double m, double dm, double tiny) {
    double product = x * scale, apart = product - m, error = reference_product(x, dx, scale, ds) + dm;
    if (t != t) return 0.0;
    if (fabs(product) == INFINITY || fabs(m) == INFINITY) return error < INFINITY ? 0.0 : INFINITY;
    error += 1.4e-7 * (fabs(product) + fabs(m)) + 7.5e-8 * fabs(apart) + 1e-45 * fabs(x);
    error += (fabs(scale) > 2.3e38 ? 0.31 * fabs(product) : 0.0) + (fabs(m) > 2.3e38 ? 0.31 * fabs(m) : 0.0);
    return (error < 1.0 ? reference_scaled(t, expm1(error)) : exp(apart + error)) + (t < 2.0 * tiny ? tiny : 0.0);
}

/* an f32 without the low 13 bits of its significand */
static double reference_shortened(double value) {
    union { float number; unsigned bits; } short_one;
    short_one.number = (float)value;
    short_one.bits &= 0xffffe000u;
    return value == value ? (double)short_one.number : value;
}

/* the bound of an argmax_key or argmin_key of a value */
static double reference_keyed(double value, double bound) {
    if (bound <= 0) return 0.0;
    return (double)reference_key(value + bound, 0, 1) - (double)reference_key(value - bound, 0, 1) + 8589934592.0 * bound;
}

/* how far two values are apart that may be equal infinities */
static double reference_apart(double a, double b) { return a == b ? 0.0 : fabs(a - b); }

/* relative error `units` of a value, at least `least` (below the normal numbers); 0, infinities and NaN round to themselves,
   and what is above the `largest` number to an infinity */
static double reference_rounded(double value, double units, double least, double largest) {
    if (value == 0.0 || value - value != 0.0) return 0.0;
    return fabs(value) > largest ? INFINITY : fmax(fabs(value) * units, least);
}

/* the same of a correctly rounded operation in f32: none where the operands are exact and f32 holds the result */
static double reference_single(double value, double error, double units, double least) {
    return error == 0.0 && (double)(float)value == value ? 0.0
           : reference_rounded(value, units, least, 3.4028234663852886e38);
}

/* the same in a type of which integers up to `most` and multiples of `tiny` are numbers */
static double reference_rounds(double value, double error, double units, double least, double largest, double most,
                               double tiny) {
    union { double number; unsigned long long bits; } power;
    long long digits;
    double grain;
    if (value == 0.0 || value - value != 0.0) return 0.0;
    if (fabs(value) > largest) return INFINITY;
    power.number = value;
    digits = (long long)((power.bits & 0xfffffffffffffULL) | 0x10000000000000ULL);
    power.bits &= 0x7ff0000000000000ULL;
    grain = power.number * (double)(digits & -digits) / 4503599627370496.0;
    return error == 0.0 && fabs(value) < most * grain && grain >= tiny ? 0.0 : fmax(fabs(value) * units, least);
}

/* one over the largest power of two that an exact value is a multiple of: 0 for 0, infinity for what is not exact */
static double reference_fineness(double value, double error) {
    union { double number; unsigned long long bits; } power;
    long long digits;
    if (value - value != 0.0) return 0.0;
    if (error > 0.0) return INFINITY;
    if (value == 0.0) return 0.0;
    power.number = value;
    digits = (long long)((power.bits & 0xfffffffffffffULL) | 0x10000000000000ULL);
    power.bits &= 0x7ff0000000000000ULL;
    return 4503599627370496.0 / (power.number * (double)(digits & -digits));
}

/* rounding error of a sum in any order, from the sum of its terms' magnitudes: none where no partial sum needs to round */
static double reference_summed(double sum, double size, double fineness, double units, double most, double largest) {
    if (size > largest && sum - sum == 0.0) return INFINITY;
    return size == 0.0 || sum - sum != 0.0 || size * fineness <= most ? 0.0 : units * size;
}

/* rounding error of a sum of random terms, from the sum and its terms' squares */
static double reference_walk(double sum, double squares, double units, double largest) {
    double size = sqrt(sum * sum + squares);
    return squares > 0.0 && sum - sum == 0.0 ? (size > largest ? INFINITY : units * size) : 0.0;
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
    return f"reference_rounded((double){value}, {units!r}, {dtype.digits * smallest(dtype)!r}, {largest(dtype)!r})"


def smallest(dtype: DType) -> float:
    """The smallest normal number of a type."""
    return SMALLEST.get(dtype.name, 2.0**-126)


def largest(dtype: DType) -> float:
    """The largest number of a type from which on a device has an infinity: types of 8 bits keep what they have no room for."""
    return LARGEST.get(dtype.name, sys.float_info.max)


def digits_of(dtype: DType) -> float:
    """Up to which integers are exact in a type; fewer of f64's, as the reference itself rounds there and must be known not to."""
    return 2.0**40 if dtype.name == "f64" else 1.0 / dtype.digits


def correct_rounding(value: str, error: str, dtype: DType, units: float) -> str:
    """C text of the rounding error of a correctly rounded result, whose operands' errors amount to `error`."""
    least = dtype.digits * smallest(dtype)
    if dtype.name == "f32":
        return f"reference_single((double){value}, {error}, {units!r}, {least!r})"
    tiny = 2 * least if dtype.name != "f64" else 2.0**-1000
    return (f"reference_rounds((double){value}, {error}, {units!r}, {least!r}, {largest(dtype)!r}, {digits_of(dtype)!r}, "
            f"{tiny!r})")


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
