"""Reads the PNG files that Lacuna writes: 8 bits, red, green, blue. Everything else in one is an error."""
import struct
import zlib


def read(data):
    """(width, height, rows of (r, g, b))"""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, chunks = 8, []
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] != zlib.crc32(kind + body):
            raise ValueError(f"{kind}: its checksum is wrong")
        chunks.append((kind, body))
        at += 12 + size
    if [kind for kind, _ in chunks] != [b"IHDR", b"IDAT", b"IEND"]:
        raise ValueError([kind for kind, _ in chunks])
    width, height, *form = struct.unpack(">IIBBBBB", chunks[0][1])
    if form != [8, 2, 0, 0, 0]:
        raise ValueError(form)
    raw, row_bytes = zlib.decompress(chunks[1][1]), 3 * width
    if len(raw) != height * (row_bytes + 1):
        raise ValueError(len(raw))
    rows, above = [], bytes(row_bytes)
    # all bytes of a row are added at once, as one number each: the lower seven bits carry into the eighth, and that is added without a carry
    low, high = (int.from_bytes(bytes([bits]) * row_bytes, "big") for bits in (127, 128))
    for at in range(0, len(raw), row_bytes + 1):
        row = raw[at + 1:at + 1 + row_bytes]
        if raw[at] == 2:
            a, b = int.from_bytes(row, "big"), int.from_bytes(above, "big")
            row = (((a & low) + (b & low)) ^ ((a ^ b) & high)).to_bytes(row_bytes, "big")
        elif raw[at] != 0:
            raise ValueError(f"filter {raw[at]}")
        rows.append(list(zip(row[0::3], row[1::3], row[2::3])))
        above = row
    return width, height, rows
