"""The C functions that the float64 reference calls: indices, quotients, minima and maxima, keys."""

from __future__ import annotations

FAULTS = "static long long reference_faults = 0; /* data-dependent indices out of range; -1 when memory ran out */\n"
INDEXING = """\
static long long reference_index(long long index, long long extent) {
    if (index >= 0 && index < extent) return index;
    ++reference_faults;
    return 0;
}

/* for values that may not be chosen */
static long long reference_clamped(long long index, long long extent) { return index >= 0 && index < extent ? index : 0; }

/* quotient and remainder rounded towards minus infinity, by > 0 */
static long long reference_div(long long a, long long by) { return a / by - (a % by < 0); }

static long long reference_mod(long long a, long long by) { return a % by + (a % by < 0 ? by : 0); }

/* the same of any integers: 0 by 0, and what does not fit wraps */
static long long reference_ratio(long long a, long long by) {
    if (by == 0) return 0;
    if (by == -1) return (long long)(0ULL - (unsigned long long)a);
    return a / by - (a % by != 0 && (a < 0) != (by < 0));
}

static long long reference_rest(long long a, long long by) {
    if (by == 0 || by == -1) return 0;
    return a % by + (a % by != 0 && (a < 0) != (by < 0) ? by : 0);
}

/* shifts by any number: too far, or by a negative one, leaves 0 or the sign */
static long long reference_left(long long a, long long by) {
    return by >= 0 && by < 64 ? (long long)((unsigned long long)a << by) : 0;
}

static long long reference_right(long long a, long long by) { return by >= 0 && by < 64 ? a >> by : a < 0 ? -1 : 0; }

static unsigned long long reference_down(unsigned long long a, long long by) { return by >= 0 && by < 64 ? a >> by : 0; }

static long long reference_min(long long a, long long b) { return a < b ? a : b; }

static long long reference_max(long long a, long long b) { return a > b ? a : b; }

static double reference_lower(double a, double b) { return a < b || a != a ? a : b; }

static double reference_upper(double a, double b) { return a > b || a != a ? a : b; }

/* argmax_key (largest = 1) and argmin_key of a value that is an f32 */
static long long reference_key(double value, long long index, int largest) {
    union { float number; int bits; } f32;
    long long rank;
    f32.number = value != 0.0 ? (float)value : largest ? 0.0f : -0.0f;
    rank = f32.bits < 0 ? f32.bits ^ 0x7fffffff : f32.bits;
    if (value != value) rank = largest ? 0x7fffffffLL : -0x80000000LL;
    return rank * 0x100000000LL + (largest ? 0xffffffffLL - index : index);
}
"""
