"""Times and counts as people write them: three or four digits in the unit that fits, several times together in one; one block."""

from __future__ import annotations

from math import floor, isfinite, log10

_UNITS = (("s", 1e6), ("ms", 1e3), ("µs", 1.0), ("ns", 1e-3))


def time_text(us: float, digits: int = 3) -> str:
    """A time in nanoseconds, microseconds, milliseconds or seconds: ``time_text(16770)`` is ``"16.8 ms"``."""
    return times_text((us,), digits)[0]


def times_text(times_us: tuple[float, ...], digits: int = 3) -> tuple[str, ...]:
    """Times in the unit of the first, which alone names it: ``("16.8 ms", "16.5", "17.2")``."""
    name, size = _unit(times_us[0], digits)
    numbers = [digits_of(us / size, digits) for us in times_us]
    return (f"{numbers[0]} {name}", *numbers[1:])


def digits_of(value: float, digits: int) -> str:
    """A number with so many digits that count, and never an exponent."""
    if not isfinite(value) or value == 0:
        return f"{value:g}"
    places = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit(us: float, digits: int) -> tuple[str, float]:
    """The largest unit in which the time is at least 1, once rounded."""
    for name, size in _UNITS:
        if abs(us) / size >= 1 - 0.5 * 10.0**-digits:
            return name, size
    return _UNITS[-1] if us else ("µs", 1.0)


def counted(number: float, thing: str) -> str:
    """``1 block``, ``1,024 blocks``."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
