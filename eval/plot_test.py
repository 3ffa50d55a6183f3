"""What the plots' lines consist of; drawing itself needs matplotlib, which the tests don't have."""

import plot


def row(mode, supervision, ratio_ppm, part="unseen", mean=1.0):
    return {"run": "r", "mode": mode, "supervision": supervision, "ratio_ppm": ratio_ppm,
            "part": part, "rouge_l": {"mean": mean, "low": mean - 1, "high": mean + 1},
            "cache_bytes": 3.0, "adapter_bytes": 4.0}


ROWS = [row("BASE", "", 1_000_000, mean=2.0), row("BASE", "", 0, mean=9.0),
        row("BASE", "", 0, part="seen"), row("ADAPTER_PREFILL", "RAW_CONTEXT", 0),
        row("ADAPTER_PREFILL", "CONTEXT_QA", 0)]


def test_a_line_rises_by_ratio_within_its_part():
    line = plot.series(ROWS, "unseen", "BASE", "RAW_CONTEXT")
    assert [point["ratio_ppm"] for point in line] == [0, 1_000_000]
    assert plot.values(line) == [9.0, 2.0, 8.0, 1.0, 10.0, 3.0]


def test_a_line_of_an_adapter_is_of_one_supervision():
    assert len(plot.series(ROWS, "unseen", "ADAPTER_PREFILL", "RAW_CONTEXT")) == 1
    assert plot.series(ROWS, "unseen", "ADAPTER_PREFILL", "SYNTHETIC_QA") == []


def test_only_what_was_evaluated_gets_a_panel():
    assert plot.present(ROWS, "supervision", plot.SUPERVISIONS) == ["RAW_CONTEXT", "CONTEXT_QA"]
    assert plot.parts_of(ROWS) == ["unseen", "seen"]
    assert plot.parts_of(ROWS[:2]) == ["unseen"]


def test_a_documents_bytes_are_those_of_cache_and_adapter():
    assert plot.total_bytes(ROWS[0]) == 7.0
