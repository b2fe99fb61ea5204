"""A small, strict reader of Prometheus' text format; it refuses what Prometheus would."""

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_UNESCAPED = {r"\\": "\\", r"\n": "\n", r"\"": '"'}
_ENDINGS = {"histogram": ("_bucket", "_sum", "_count")}


@dataclass
class Parsed:
    kind: str
    help: str
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Parsed]:
    """Families by name; AssertionError for anything out of order, duplicated or malformed."""
    assert text.endswith("\n")
    families: dict[str, Parsed] = {}
    lines = text[:-1].split("\n")
    current, pending = "", ""
    for line in lines:
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            assert _NAME.fullmatch(name), line
            assert name not in families, f"{name} comes twice"
            pending, current = words, name
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == current, line
            assert kind in {"counter", "gauge", "histogram"}, line
            assert (kind == "counter") == name.endswith("_total"), line
            families[name] = Parsed(kind, pending)
        else:
            _sample(line, current, families[current])
    for name, family in families.items():
        if family.kind == "histogram":
            _check_histogram(name, family)
    return families


def value(families: dict[str, Parsed], name: str, **labels: str) -> float:
    return families[name].samples[name, tuple(sorted(labels.items()))]


def _sample(line: str, current: str, family: Parsed) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match, f"not a sample: {line!r}"
    name, labels, number = match.groups()
    allowed = [current + end for end in _ENDINGS.get(family.kind, ("",))]
    assert name in allowed, f"{name} stands below {current}"
    key = (name, tuple(sorted(_labels(labels or "").items())))
    assert key not in family.samples, f"{key} comes twice"
    family.samples[key] = float(number)


def _labels(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        assert match, f"not labels: {text!r}"
        assert match[1] not in found, text
        found[match[1]] = re.sub(r"\\.", lambda m: _UNESCAPED[m[0]], match[2])
        at = match.end()
        assert match[3] == "," or at == len(text)
    return found


def _check_histogram(name: str, family: Parsed) -> None:
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for (sample, labels), number in family.samples.items():
        if sample.endswith("_bucket"):
            bound = float(dict(labels)["le"])
            rest = tuple(pair for pair in labels if pair[0] != "le")
            series.setdefault(rest, []).append((bound, number))
    for labels, buckets in series.items():
        assert buckets == sorted(buckets), name
        assert buckets[-1][0] == float("inf"), name
        assert family.samples[f"{name}_count", labels] == buckets[-1][1]
        assert f"{name}_sum" in {sample for sample, its in family.samples if its == labels}
