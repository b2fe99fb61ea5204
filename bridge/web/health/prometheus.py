"""The text format of Prometheus: families of samples, as lines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bridge.runtime.status import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})

Labels = Mapping[str, str]


@dataclass(slots=True)
class Family:
    """One metric with its samples; in a histogram, each sample has its own suffix."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> "Family":
        self.samples.append(("", labels, value))
        return self

    def add_histogram(self, histogram: Histogram, **labels: str) -> "Family":
        """Add a histogram. In Prometheus, each bucket includes all buckets below it."""
        below = 0
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            below += count
            self.samples.append(("_bucket", {**labels, "le": _number(bound)}, below))
        self.samples.append(("_sum", labels, histogram.total))
        self.samples.append(("_count", labels, below))
        return self


def render(families: Iterable[Family]) -> str:
    """The families as text; those without a sample are left out."""
    return "".join(_family(each) for each in families if each.samples)


def _family(family: Family) -> str:
    lines = [
        f"# HELP {family.name} {family.help.translate(_HELP_ESCAPES)}",
        f"# TYPE {family.name} {family.kind}",
        *(f"{family.name}{end}{_labels(labels)} {_number(n)}" for end, labels, n in family.samples),
    ]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
