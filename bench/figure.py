"""A figure: what the bridge took, what its baseline took, and the bar for the ratio."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

NO_BAR = math.inf
"""For a figure that only stands beside another, as wall time beside CPU time."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; the samples are taken in turns, without the warm-up round.

    With `absolute`, there is no baseline: the bar is for the median of the bridge itself. With
    `at_least`, the ratio has to reach the bar instead of staying below it.
    """

    group: str
    name: str
    baseline: Sequence[float]
    bridge: Sequence[float]
    unit: str
    bar: float
    at_least: bool = False
    cpu: bool = True
    note: str = ""
    absolute: bool = False

    @property
    def ratio(self) -> float:
        """The median of the bridge by that of the baseline; without a baseline, the median."""
        median = statistics.median(self.bridge)
        if self.absolute:
            return median
        below = statistics.median(self.baseline)
        return median / below if below else float("inf")

    @property
    def met(self) -> bool:
        return self.ratio >= self.bar if self.at_least else self.ratio <= self.bar

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest ratio that any two samples of the same round have."""
        if self.absolute:
            return min(self.bridge), max(self.bridge)
        rounds = list(zip(self.bridge, self.baseline, strict=False))
        ratios = [bridge / baseline if baseline else float("inf") for bridge, baseline in rounds]
        return min(ratios), max(ratios)
