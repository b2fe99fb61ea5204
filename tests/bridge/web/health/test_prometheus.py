import pytest
from support.prometheus import parse, value

from bridge.runtime.status import Histogram
from bridge.web.health.prometheus import Family, render


def test_label_values_and_help_are_escaped():
    family = Family("seb_x", "gauge", "two\nlines \\ here").add(1.5, label='a"b\\c\nd')
    text = render([family])
    assert (
        text
        == '# HELP seb_x two\\nlines \\\\ here\n# TYPE seb_x gauge\nseb_x{label="a\\"b\\\\c\\nd"} 1.5\n'
    )
    assert value(parse(text), "seb_x", label='a"b\\c\nd') == 1.5


def test_a_family_without_samples_is_left_out():
    assert render([Family("seb_x", "gauge", "nothing")]) == ""


def test_a_histogram_counts_what_is_below_each_bound():
    histogram = Histogram()
    for seconds in (0.1, 0.2, 30, 10_000):
        histogram.observe(seconds)
    parsed = parse(render([Family("seb_h", "histogram", "h").add_histogram(histogram, sink="s")]))
    samples = parsed["seb_h"].samples
    assert samples["seb_h_bucket", (("le", "0.1"), ("sink", "s"))] == 1
    assert samples["seb_h_bucket", (("le", "60"), ("sink", "s"))] == 3
    assert samples["seb_h_bucket", (("le", "+Inf"), ("sink", "s"))] == 4
    assert samples["seb_h_sum", (("sink", "s"),)] == pytest.approx(10030.3)
