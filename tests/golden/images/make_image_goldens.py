#!/usr/bin/env python3
"""Writes image files of every kind that a source may contain, and the results of Pillow's convert("RGB").

    make_image_goldens.py

Writes files/NAME.EXT, cases.json and expected.npy [cases, 19, 27, 3] to the folder of this script. It needs Pillow
(tools/peers/setup). It encodes the PNGs itself, because Pillow can write only some kinds of them.
"""
import io
import itertools
import json
import pathlib
import struct
import zlib

import numpy as np
import PIL
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
HEIGHT, WIDTH = 19, 27
ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}


def picture(channels, highest=255, seed=0):
    """Returns a smooth picture with some noise: [HEIGHT, WIDTH, channels]."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [x / WIDTH, y / HEIGHT, (x + y) / (WIDTH + HEIGHT), (x - y) / WIDTH % 1]
    noise = np.random.default_rng(seed).uniform(-.05, .05, (HEIGHT, WIDTH, channels))
    return np.rint(np.clip(np.stack(planes[:channels], -1) + noise, 0, 1) * highest).astype(np.int64)


def packed_rows(samples, bits):
    """Returns the rows of a PNG with filter 0. Samples have `bits` bits, the most significant bit first."""
    rows = b""
    for row in samples.reshape(samples.shape[0], -1):
        if bits == 16:
            data = row.astype(">u2").tobytes()
        else:
            flags = (row[:, None] >> np.arange(bits - 1, -1, -1)) & 1
            data = np.packbits(flags.reshape(-1).astype(np.uint8)).tobytes()
        rows += b"\0" + data
    return rows


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(kind, bits, interlaced=False, extra=()):
    samples = picture(CHANNELS[kind], (1 << bits) - 1)
    parts = [samples[top::down, left::right] for top, left, down, right in ADAM7] if interlaced else [samples]
    rows = b"".join(packed_rows(part, bits) for part in parts if part.size)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, kind, 0, 0, int(interlaced))
    chunks = [chunk(b"IHDR", header)]
    if kind == PALETTE:
        colours = np.random.default_rng(1).integers(0, 256, ((1 << bits), 3), dtype=np.uint8)
        chunks.append(chunk(b"PLTE", colours.tobytes()))
    chunks += [chunk(*one) for one in extra]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def saved(mode, format, **options):
    channels = {"L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    pixels = picture(channels).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode).save(out, format, **options)
    return out.getvalue()


def exif(orientation, order):
    """Returns a TIFF header with two entries, of which the second one is the orientation."""
    entries = (struct.pack(order + "HHIHH", 0x0100, 3, 1, WIDTH, 0)
               + struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0))
    mark = b"II" if order == "<" else b"MM"
    return b"Exif\0\0" + mark + struct.pack(order + "HIH", 42, 8, 2) + entries + struct.pack(order + "I", 0)


def png_cases():
    for kind, name in ((GREY, "grey"), (RGB, "rgb"), (PALETTE, "palette"), (GREY_ALPHA, "grey_alpha"), (RGBA, "rgba")):
        depths = {GREY: (1, 2, 4, 8, 16), PALETTE: (1, 2, 4, 8)}.get(kind, (8, 16))
        for bits, interlaced in itertools.product(depths, (False, True)):
            yield f"{name}_{bits}{'_interlaced' if interlaced else ''}.png", png(kind, bits, interlaced)
    yield "grey_8_transparent.png", png(GREY, 8, extra=[(b"tRNS", b"\0\x40")])
    yield "rgb_8_transparent.png", png(RGB, 8, extra=[(b"tRNS", b"\0\x40\0\x40\0\x40")])
    yield "palette_8_transparent.png", png(PALETTE, 8, extra=[(b"tRNS", bytes(range(200)))])
    yield "gamma.png", png(RGB, 8, extra=[(b"gAMA", struct.pack(">I", 100000))])
    yield "turned.png", png(RGB, 8, extra=[(b"eXIf", exif(6, "<")[6:])])


def jpeg_cases():
    yield "grey.jpg", saved("L", "JPEG", quality=85)
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        yield f"rgb_{name}.jpg", saved("RGB", "JPEG", quality=85, subsampling=subsampling)
    yield "progressive.jpg", saved("RGB", "JPEG", quality=85, progressive=True)
    yield "grey_progressive.jpg", saved("L", "JPEG", quality=85, progressive=True)
    yield "stored_as_rgb.jpg", saved("RGB", "JPEG", quality=85, keep_rgb=True)
    cmyk = saved("CMYK", "JPEG", quality=85)
    yield "cmyk.jpg", cmyk
    at = cmyk.index(b"Adobe\0") + 11
    yield "ycck.jpg", cmyk[:at] + b"\2" + cmyk[at + 1:]
    for orientation, order in ((1, "<"), (6, ">"), (8, "<"), (3, ">"), (9, "<")):
        file = saved("RGB", "JPEG", quality=85, exif=exif(orientation, order))
        yield f"turned_{orientation}{'le' if order == '<' else 'be'}.jpg", file
    plain = saved("RGB", "JPEG", quality=85)
    assert plain[2:4] == b"\xff\xe0"
    without = plain[:2] + plain[4 + int.from_bytes(plain[4:6], "big"):]
    yield "without_app0.jpg", without
    yield "fill_bytes.jpg", plain[:2] + b"\xff\xff" + plain[2:]
    yield "trailing.jpg", plain + b"\0trailing bytes"
    yield "without_eoi.jpg", plain[:-2]


def webp_cases():
    yield "lossy.webp", saved("RGB", "WEBP", quality=80)
    yield "lossless.webp", saved("RGB", "WEBP", lossless=True)
    yield "lossy_alpha.webp", saved("RGBA", "WEBP", quality=80)
    yield "lossless_alpha.webp", saved("RGBA", "WEBP", lossless=True, exact=True)
    yield "turned.webp", saved("RGB", "WEBP", quality=80, exif=exif(5, "<"))
    frames = [Image.fromarray(picture(3, seed=seed).astype(np.uint8)) for seed in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], duration=40, lossless=True)
    yield "animated.webp", out.getvalue()


def main():
    cases, expected = [], []
    for name, file in itertools.chain(png_cases(), jpeg_cases(), webp_cases()):
        (HERE / "files" / name).write_bytes(file)
        image = Image.open(io.BytesIO(file))
        try:
            pixels = np.asarray(image.convert("RGB"))
            refused = ""
        except OSError as error:
            pixels, refused = np.zeros((HEIGHT, WIDTH, 3), np.uint8), str(error)
        assert pixels.shape == (HEIGHT, WIDTH, 3)
        cases.append({"file": name, "mode": image.mode, "orientation": int(image.getexif().get(0x0112, 0)),
                      "refused": refused})
        expected.append(pixels)
    np.save(HERE / "expected.npy", np.stack(expected))
    text = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "cases.json").write_text(f'{{"pillow": "{PIL.__version__}", "cases": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
