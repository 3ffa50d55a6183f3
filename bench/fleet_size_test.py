"""What bench/fleet_size.py says of bytes is what the daemon's files have."""

import io
import json
import os
from pathlib import Path

import fleet_size
import pytest

MODEL = os.environ["DOCMEM_SMOLLM2"]
POINTS = [(0.01, 0.4), (0.1, 0.8)]


def smollm2():
    return json.loads((Path(MODEL) / "config.json").read_text())


def test_bytes_are_those_of_smollm2():
    # docs/evaluation-tables.md: what the daemon stored, without the files' headers.
    config = smollm2()
    assert fleet_size.cache_bytes(config, 1) == 30 * 3 * (2 * 2 * 64 + 4)
    assert fleet_size.adapter_bytes(config, 3) == pytest.approx(1_831_680, rel=0.01)


def test_budgets_of_replicas_add_up():
    one = fleet_size.found_in(POINTS, 1000, 10, [1])
    other = fleet_size.found_in(POINTS, 1000, 1, [10])
    assert one == other == [pytest.approx(0.4), pytest.approx(0.6)]


def test_a_tier_counts_only_what_the_faster_ones_lack():
    assert fleet_size.found_in(POINTS, 1000, 1, [10, 100, 1000]) == [
        pytest.approx(0.4), pytest.approx(0.4), pytest.approx(0.2), 0]
    assert fleet_size.found_in(POINTS, 1000, 1, [100, 10]) == [
        pytest.approx(0.8), 0, pytest.approx(0.2)]


def test_hit_rates_are_read_and_interpolated():
    table = io.StringIO("trace,policy,budget_share,hit_rate\n"
                        "zipf,lru,0.01,0.1\nzipf,greedy-dual-size,0.1,0.8\n"
                        "zipf,greedy-dual-size,0.01,0.4\n")
    assert fleet_size.hit_rates(table, "zipf") == POINTS
    assert fleet_size.hit_rate(POINTS, 0.01 * 10 ** 0.5) == pytest.approx(0.6)
    assert fleet_size.hit_rate(POINTS, 0.001) == pytest.approx(0.2)  # a tenth of the budget: half
    assert fleet_size.hit_rate(POINTS, 2) == 1
    with pytest.raises(SystemExit, match="other"):
        fleet_size.hit_rates(io.StringIO("trace,policy,budget_share,hit_rate\n"), "other")
