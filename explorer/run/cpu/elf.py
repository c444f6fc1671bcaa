"""Where the shared arrays of a compiled kernel lie: the symbols of one section of an ELF file."""

from __future__ import annotations

import struct
from pathlib import Path


def symbols_in_section(path: Path, section: str) -> tuple[tuple[str, int, int], ...]:
    """Data symbols of `section` as (mangled name, offset in the section, size in bytes), by offset.

    Reads 64-bit little-endian ELF (System V ABI, chapter 4); any other file format gives no symbols.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return ()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry) for i in range(count)]
    names_at = headers[names_index][4]
    wanted = next((i for i, h in enumerate(headers) if _text(data, names_at + h[0]) == section), None)
    symbol_table = next((h for h in headers if h[1] == 2), None)  # SHT_SYMTAB
    if wanted is None or symbol_table is None:
        return ()
    strings_at = headers[symbol_table[6]][4]
    found = []
    for at in range(symbol_table[4], symbol_table[4] + symbol_table[5], 24):
        name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", data, at)
        if index == wanted and info & 15 == 1 and size:  # STT_OBJECT
            found.append((_text(data, strings_at + name), value - headers[wanted][3], size))
    return tuple(sorted(found, key=lambda s: s[1]))


def _text(data: bytes, at: int) -> str:
    """The zero-terminated string at an offset."""
    return data[at : data.index(b"\0", at)].decode()
