"""Draws docs/images/trace-NAME.svg from trace-NAME.tsv, the spans of a recorded trace: `make pictures`."""

import csv
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
ROW, LABELS, BARS, TIMES = 22, 250, 520, 90  # pixels


def draw(text: str) -> str:
    """Return the picture of spans: each a bar over the time of the first one."""
    spans = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    scale, height = BARS / max(int(span["took_ms"]) for span in spans), ROW * len(spans) + 10
    size = f'viewBox="0 0 {LABELS + BARS + TIMES} {height}" font-family="sans-serif" font-size="12"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}><rect width="100%" height="100%" fill="#fff"/>']
    for number, span in enumerate(spans):
        y, name, took = ROW * number + 5, span["span"], int(span["took_ms"])
        x, width = LABELS + int(span["began_ms"]) * scale, max(2.0, took * scale)
        color = "#d97706" if name.startswith("chat ") else "#93c5fd" if int(span["depth"]) < 2 else "#2563eb"
        shown = f"{took:,} ms" if took < 10_000 else f"{took / 1000:,.0f} s"
        lines += [
            f'<text x="{8 + 14 * int(span["depth"])}" y="{y + 14}">{escape(name)}</text>',
            f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{ROW - 8}" rx="2" fill="{color}"/>',
            f'<text x="{LABELS + BARS + 8}" y="{y + 14}" fill="#555">{shown}</text>',
        ]
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    for source in IMAGES.glob("trace-*.tsv"):
        source.with_suffix(".svg").write_text(draw(source.read_text()))
