"""Event files of TensorBoard, made from the format's public description: records of TFRecord that hold protocol buffers."""
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, wire, data):
    return varint(number << 3 | wire) + (varint(len(data)) if wire == 2 else b"") + data


def real64(number, value):
    return field(number, 1, struct.pack("<d", value))


def real32(number, value):
    return field(number, 5, struct.pack("<f", value))


def whole(number, value):
    return field(number, 0, varint(value))


def event(at_s, step, inside):
    return record(real64(1, at_s) + whole(2, step) + inside)


def version(at_s):
    return record(real64(1, at_s) + field(3, 2, b"brain.Event:2"))


def summary(*values):
    return field(5, 2, b"".join(field(1, 2, value) for value in values))


def scalar(tag, value):
    """As torch.utils.tensorboard and TensorFlow 1 write one."""
    return field(1, 2, tag.encode()) + real32(2, value)


def tensor(tag, value, packed=False):
    """As tf.summary of TensorFlow 2 writes one."""
    number = field(6, 2, struct.pack("<d", value)) if packed else field(4, 2, struct.pack("<d", value))
    plugin = field(9, 2, field(1, 2, field(1, 2, b"scalars")))
    return field(1, 2, tag.encode()) + plugin + field(8, 2, whole(1, 2) + field(2, 2, b"") + number)


HALF, BFLOAT16 = 19, 14


def half_bits(kind, value):
    """The 16 bits of a number in half precision, or of one as bfloat16 (rounded down)."""
    return struct.unpack("<H", struct.pack("<e", value))[0] if kind == HALF else struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def small_tensor(tag, kind, bits, how):
    """A tensor of 16 bits a number: in its content, or in half_val, packed or not."""
    number = {"content": lambda: field(4, 2, struct.pack("<H", bits)), "packed": lambda: field(13, 2, varint(bits)), "alone": lambda: whole(13, bits)}[how]()
    return field(1, 2, tag.encode()) + field(8, 2, whole(1, kind) + field(2, 2, b"") + number)


def halves(start_s):
    """Scalars as a training in half precision writes them with tf.summary: each kind in each form, the smallest and the largest, and what is none."""
    out = version(start_s)
    at = 0
    for kind, name in ((HALF, "half"), (BFLOAT16, "bfloat16")):
        for how in ("content", "packed", "alone"):
            for value in (1.5, -0.15625, 0.0):
                at += 1
                out += event(start_s + at, at, summary(small_tensor(f"{name}/{how}", kind, half_bits(kind, value), how)))
    for tag, kind, bits in (("half/smallest", HALF, 0x0001), ("half/largest", HALF, 0x7BFF), ("half/infinite", HALF, 0x7C00), ("half/no number", HALF, 0x7E01),
                            ("half/below zero", HALF, 0x83FF), ("bfloat16/infinite", BFLOAT16, 0xFF80)):
        at += 1
        out += event(start_s + at, at, summary(small_tensor(tag, kind, bits, "content")))
    # more than 16 bits, another type's number in half_val, a byte too many
    wrong = (small_tensor("wrong", HALF, 0x13E00, "alone"), small_tensor("wrong", 1, 0x3E00, "packed"),
             field(1, 2, b"wrong") + field(8, 2, whole(1, HALF) + field(4, 2, b"\0\x3e\0")))
    return out + event(start_s + at + 1, at + 1, summary(*wrong))


def picture(tag, size):
    return field(1, 2, tag.encode()) + field(4, 2, whole(1, 8) + whole(2, 8) + field(4, 2, b"\x89PNG" + bytes(size)))


def training(start_s, steps, step_s=0.5):
    """A run that logs its loss at each step, an accuracy at each tenth, and a picture."""
    out = version(start_s) + event(start_s, 0, summary(picture("samples", 2000)))
    for i in range(steps):
        values = [scalar("train/loss", 2.0 / (1 + i))]
        if i % 10 == 9:
            values.append(tensor("val/accuracy", 1 - 0.5 / i, packed=i % 20 == 9))
        out += event(start_s + step_s * (i + 1), i, summary(*values))
    return out
