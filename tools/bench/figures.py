"""Functions that the scripts of this folder share: running commands, a dataset of noise, tables, line charts."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def run(command, **more):
    """Returns the output of a command. If the command fails, the script exits with the command's error message."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: expected exit code 0, got {done.returncode} "
                 f"({' '.join(map(str, command))}): {done.stderr[-2000:]}")
    return done.stdout


def npy(type_name, shape, values):
    """Returns the contents of a .npy file with these values."""
    head = f"{{'descr': '{type_name}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values


def write_noise(precast, path, samples, px, classes=10):
    """Writes a dataset of raw images [px, px, 3] of noise; loading raw pixels takes as long for noise as for photos."""
    source = path.with_suffix(".npz")
    noise = random.Random(0)
    images = b"".join(noise.randbytes(px * px * 3) for _ in range(samples))
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("image.npy", npy("|u1", (samples, px, px, 3), images))
        labels = struct.pack(f"<{samples}q", *(i % classes for i in range(samples)))
        archive.writestr("label.npy", npy("<i8", (samples,), labels))
    run([precast, "write", source, path, "--image.mode=raw"])
    source.unlink()


def markdown(rows):
    """Returns a Markdown table; the first row is the header."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def line_chart(title, x_label, y_label, series):
    """Returns a line chart of {name: [(x, y)]} as SVG; both axes begin at 0."""
    width, height, left, top, below = 640, 360, 70, 40, 60
    right = width - 190
    x_max = max(x for points in series.values() for x, _ in points)
    y_max = 1.1 * max(y for points in series.values() for _, y in points)

    def to_pixels(x, y):
        return left + (right - left) * x / x_max, height - below - (height - below - top) * y / y_max

    def text(x, y, words, anchor="middle", more=""):
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>',
             text(left, 20, title, "start", 'font-size="14"'), text((left + right) / 2, height - 15, x_label),
             text(left, top - 8, y_label, "start")]
    for i in range(5):
        x_value, y_value = x_max * i / 4, y_max * i / 4
        x, y = to_pixels(x_value, y_value)
        parts += [f'<path d="M{left} {y:.1f}H{right}" stroke="#ddd"/>', text(left - 6, y + 4, f"{y_value:.4g}", "end"),
                  text(x, height - below + 18, f"{x_value:.4g}")]
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        coordinates = [to_pixels(x, y) for x, y in sorted(points)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in coordinates]
        parts.append(text(right + 12, top + 18 * i, name, "start", f'fill="{colour}"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def write_results(args, result, table, chart):
    """Prints the table; writes the files that --json and --svg name."""
    print(table)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=2) + "\n")
    if args.svg:
        pathlib.Path(args.svg).write_text(chart)


def add_arguments(parser):
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path, help="default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write all measurements")
    parser.add_argument("--svg", metavar="FILE", help="write a chart")
