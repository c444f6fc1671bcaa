"""Error bounds of sums in any order, against the exact sum, per unit of the terms' magnitudes.

The computed sum of terms ``x`` is off by at most ``bound * sum(|x|)``.  With every addition rounded once, by a relative error
of at most ``u``, a term that goes through ``h`` additions is off by at most ``gamma_h = h u / (1 - h u)`` (N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2): what counts is the height of the tree of
additions, ``n`` one after the other, about ``log2 n`` in pairs.  A compensated sum keeps the rounding errors and adds them up
beside (section 4.3): ``2 u + O(n u^2)``, whatever the order.
"""

from __future__ import annotations

from math import ceil, inf, log2

METHODS = ("plain", "pairwise", "kahan")
"""How one thread adds its terms: one after the other, in pairs of pairs, or with the rounding errors beside (Kahan)."""


SUMS = METHODS[1:]
"""Those that need storage of their own."""


def gamma(height: int, u: float) -> float:
    """Bound of a sum whose terms go through at most `height` additions; infinite where the theory ends (``h u >= 1``)."""
    return height * u / (1 - height * u) if height * u < 1 else inf


def tree_height(terms: int) -> int:
    """Additions in a row in a balanced tree."""
    return ceil(log2(terms)) if terms > 1 else 0


def sum_bound(serial: int, above: int, u: float, method: str = "plain") -> float:
    """Bound of a sum that each thread starts with `serial` terms of its own, `above` additions high from there on.

    Parameters
    ----------
    serial, above : int
    u : float
        Unit roundoff of the type that is added in.
    method : str
        One of :data:`METHODS`, of the terms of one thread.
    """
    if method == "kahan":  # the sum of a thread: 2 u of its own, and one rounding when it leaves its remainder behind
        own = min(gamma(serial, u), 2 * u + 2 * serial * u * u) if serial * u < 1 else inf
        return own + gamma(above, u) * (1 + own) if own < inf else inf
    own = min(serial, serial.bit_length() + 1) if method == "pairwise" else serial  # levels, and the start
    return gamma(own + above, u)
