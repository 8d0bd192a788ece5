"""The growth curve as an SVG, drawn by hand: no plotting library is needed for two panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

WIDTH: Final = 460
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 46, 74
COLOURS: Final = ("#1f5fa8", "#c2571a", "#3a8a4a", "#7a4aa0")
STYLE: Final = "font-family:system-ui,sans-serif;font-size:12px"


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line through (chunks, value)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over one logarithmic axis of chunks; values start at 0."""

    title: str
    unit: str
    curves: Sequence[Curve]


def draw_growth(points: Sequence[Mapping[str, Any]]) -> str:
    """The picture of a growth section's points: searches on the left, publishes on the right."""
    searches = Panel(
        "Search, p50",
        "ms",
        _curves(points, {"product": "search_p50_ms", "raw Weaviate + embedding": "raw_p50_ms"}),
    )
    publishes = Panel(
        "Publish",
        "s",
        _curves(points, {"100 changed chunks": "publish_s", "hash scan of all": "hash_scan_s"}),
    )
    return draw((searches, publishes))


def _curves(points: Sequence[Mapping[str, Any]], keys: Mapping[str, str]) -> list[Curve]:
    found = [
        Curve(name, [(p["chunks"], p[key]) for p in points if p[key] is not None])
        for name, key in keys.items()
    ]
    return [curve for curve in found if curve.points]


def draw(panels: Sequence[Panel]) -> str:
    """Panels side by side."""
    width = WIDTH * len(panels)
    body = "\n".join(
        f'<g transform="translate({number * WIDTH} 0)">\n{_panel(panel)}\n</g>'
        for number, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}"'
        f' width="{width}" height="{HEIGHT}" style="{STYLE}">\n'
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _panel(panel: Panel) -> str:
    chunks = sorted({x for curve in panel.curves for x, _ in curve.points})
    top = _ceiling(max(y for curve in panel.curves for _, y in curve.points))
    low, high = math.log10(chunks[0]), math.log10(chunks[-1])
    spread = (high - low) or 1.0

    def x_of(value: float) -> float:
        return LEFT + (math.log10(value) - low) / spread * (WIDTH - LEFT - RIGHT - 40) + 20

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, 22, f"{panel.title} ({panel.unit})", weight="bold")]
    for step in range(5):
        value = top * step / 4
        parts.append(_line([(LEFT, y_of(value)), (WIDTH - RIGHT, y_of(value))], "#dddddd", 1))
        parts.append(_text(LEFT - 6, y_of(value) + 4, f"{value:g}", anchor="end"))
    for value in chunks:
        shown = f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
        parts.append(_text(x_of(value), HEIGHT - BOTTOM + 18, shown, anchor="middle"))
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - BOTTOM + 36, "chunks", anchor="middle"))
    for number, curve in enumerate(panel.curves):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_of(x), y_of(y)) for x, y in curve.points]
        parts.append(_line(places, colour, 2))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(_legend(number, curve.name, colour))
    return "\n".join(parts)


def _legend(number: int, name: str, colour: str) -> str:
    x, y = LEFT + number * 170, HEIGHT - 16
    return _line([(x, y - 4), (x + 18, y - 4)], colour, 3) + _text(x + 24, y, name)


def _line(places: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{shown}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
        f' fill="#222222">{escape(text)}</text>'
    )


def _ceiling(value: float) -> float:
    """A round number not below ``value``: 1, 2, 4 or 8 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= value)
