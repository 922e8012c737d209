"""A bar chart as one SVG text: horizontal bars in panels, each with its deviation as a whisker."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH = 860
_LABEL_WIDTH = 260
_VALUE_WIDTH = 130
_BAR_HEIGHT = 16
_STEP = 24
_HEAD = 34
_COLOURS = ("#3465a4", "#c4640a", "#4a8a2c", "#8f3f97", "#a33030", "#2a8a8a")


class Bar(NamedTuple):
    """One value and its deviation; bars of one ``group`` share a colour."""

    label: str
    group: str
    value: float
    deviation: float = 0.0


class Panel(NamedTuple):
    """Bars on one scale under one title."""

    title: str
    bars: Sequence[Bar]


def bar_chart(title: str, panels: Sequence[Panel]) -> str:
    """Return an SVG document; panels without bars are left out."""
    shown = [panel for panel in panels if panel.bars]
    groups = list(dict.fromkeys(bar.group for panel in shown for bar in panel.bars))
    colours = {group: _COLOURS[i % len(_COLOURS)] for i, group in enumerate(groups)}
    parts = [_text(16, 24, title, size=16, weight="bold")]
    top = _HEAD
    for panel in shown:
        parts += _panel(panel, top, colours)
        top += _HEAD + _STEP * len(panel.bars)
    height = top + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _panel(panel: Panel, top: int, colours: dict[str, str]) -> list[str]:
    largest = max(bar.value + bar.deviation for bar in panel.bars)
    scale = (_WIDTH - _LABEL_WIDTH - _VALUE_WIDTH) / largest if largest > 0 else 0.0
    parts = [_text(16, top + 24, panel.title, size=13, weight="bold")]
    for index, bar in enumerate(panel.bars):
        parts += _bar(bar, top + _HEAD + _STEP * index, scale, colours[bar.group])
    return parts


def _bar(bar: Bar, top: int, scale: float, colour: str) -> list[str]:
    end = _LABEL_WIDTH + bar.value * scale
    middle, whisker = top + _BAR_HEIGHT / 2, bar.deviation * scale
    parts = [
        _text(_LABEL_WIDTH - 8, middle + 4, bar.label, anchor="end"),
        f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{bar.value * scale:.1f}"'
        f' height="{_BAR_HEIGHT}" fill="{colour}"/>',
        _text(end + whisker + 6, middle + 4, f"{bar.value:.1f}"),
    ]
    if whisker:
        parts.append(
            f'<line x1="{end - whisker:.1f}" x2="{end + whisker:.1f}" y1="{middle}" y2="{middle}"'
            ' stroke="black"/>'
        )
    return parts


def _text(
    x: float, y: float, text: str, *, size: int = 12, weight: str = "normal", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}"'
        f' text-anchor="{anchor}">{escape(text)}</text>'
    )
