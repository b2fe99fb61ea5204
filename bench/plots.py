"""Plots of figures as SVG, for light and dark: each ratio, its spread, and the bar as a line."""

import math
from collections.abc import Sequence
from html import escape

from bench.figure import Figure

_ROW, _TOP, _AXIS, _LETTER = 26, 44, 470, 7.2
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px } .small { font-size: 11px; fill: #6e7781 }
.middle { text-anchor: middle }
.grid { stroke: #d0d7de } .one { stroke: #6e7781 } .bar { stroke: #24292f; stroke-width: 2 }
.spread { stroke: #0969da; stroke-width: 2; opacity: .5 } .dot { fill: #0969da }
.missed { fill: none; stroke: #0969da; stroke-width: 2 } .beside { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #8d96a0 } .grid { stroke: #30363d } .one { stroke: #8d96a0 }
  .bar { stroke: #e6edf3 } .spread, .missed { stroke: #58a6ff } .dot { fill: #58a6ff }
}
"""
_AXIS_TITLE = "the bridge by its baseline, logarithmic"
_LEGEND = (
    "dot: the median · line through it: lowest to highest"
    " · upright line: the bar · hollow dot: misses its bar · gray dot: has none"
)


class _Scale:
    """A logarithmic axis that shows all values, to the right of the longest name."""

    def __init__(self, values: Sequence[float], names: Sequence[str]) -> None:
        self.left = 24 + _LETTER * max(len(name) for name in names)
        shown = [value for value in values if 0 < value < math.inf] or [1.0]
        self.low = max((step for step in _STEPS if step <= min(*shown, 1.0)), default=_STEPS[0])
        self.high = min((step for step in _STEPS if step >= max(*shown, 2.0)), default=_STEPS[-1])

    def at(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return self.left + share * _AXIS

    @property
    def right(self) -> float:
        return self.left + _AXIS

    @property
    def ticks(self) -> list[float]:
        return [step for step in _STEPS if self.low <= step <= self.high]


def draw(group: str, figures: Sequence[Figure]) -> str:
    """One row for each figure of a group."""
    values = [value for each in figures for value in (each.ratio, *each.spread, each.bar)]
    scale = _Scale(values, [each.name for each in figures])
    height = _TOP + _ROW * len(figures) + 44
    width = scale.right + 28 + _LETTER * max(len(_value(each)) for each in figures)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{escape(group)}: the bridge by its baseline</title><style>{_STYLE}</style>",
        f'<text class="title" x="8" y="22">{escape(group)}</text>',
        f'<text class="small" x="{scale.left:.0f}" y="22">{_AXIS_TITLE}</text>',
        *_grid(scale, height),
        *(part for row, each in enumerate(figures) for part in _row(scale, row, each)),
        f'<text class="small" x="8" y="{height - 6}">{_LEGEND}</text>',
    ]
    return "\n".join([*parts, "</svg>\n"])


def _grid(scale: _Scale, height: int) -> list[str]:
    lines = []
    for tick in scale.ticks:
        x, kind = scale.at(tick), "one" if tick == 1 else "grid"
        lines.append(
            f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{height - 38}"/>'
        )
        lines.append(f'<text class="small middle" x="{x:.1f}" y="{height - 24}">{tick:g}</text>')
    return lines


def _row(scale: _Scale, row: int, figure: Figure) -> list[str]:
    y = _TOP + _ROW * row + _ROW / 2
    low, high = (scale.at(value) for value in figure.spread)
    kind = "beside" if math.isinf(figure.bar) else "dot" if figure.met else "missed"
    name, value = escape(figure.name), escape(_value(figure))
    parts = [
        f'<text text-anchor="end" x="{scale.left - 12:.0f}" y="{y + 4}">{name}</text>',
        f'<line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>',
        f'<circle class="{kind}" cx="{scale.at(figure.ratio):.1f}" cy="{y}" r="5"/>',
        f'<text x="{scale.right + 14:.0f}" y="{y + 4}">{value}</text>',
    ]
    if not math.isinf(figure.bar):
        x = scale.at(figure.bar)
        parts.append(f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 9}" y2="{y + 9}"/>')
    return parts


def _value(figure: Figure) -> str:
    digits = f"{figure.ratio:.2f}" if figure.ratio >= 0.1 else f"{figure.ratio:.1g}"
    return f"{digits} {figure.unit}" if figure.absolute else digits
