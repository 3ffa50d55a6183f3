"""Scores agree with rouge-score; intervals are clustered and reproducible; letters are read."""

import json

import pytest
import score
from rouge_score.rouge_scorer import RougeScorer


def prediction(**fields):
    return {"document": "d1", "question": 0, "references": ["the red house"], "answer": "red house",
            "mode": "BASE", "supervision": None, "ratio_ppm": 1_000_000, "seen": False, "run": "r",
            "model": {"name": "m", "dtype": "float32"}, "cache_bytes": 10, "adapter_bytes": 0,
            "answer_tokens": 3, "ended": True} | fields


@pytest.mark.parametrize(("answer", "references"), [
    ("She was running home.", ["he runs home", "she ran to her home"]),
    ("in 1911", ["1911"]),
    ("", ["nothing"]),
    ("The ships' captain", ["the captain of the ship"]),
])
def test_rouge_l_is_the_best_of_the_references(answer, references):
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    best = scorer.score_multi(references, answer)["rougeL"].fmeasure
    assert score.rouge_l(answer, references) == pytest.approx(100 * best)


OPTIONS = {"A": "Iron", "B": "Aspirin 100 mg", "C": "Aspirin"}


@pytest.mark.parametrize(("answer", "letter"), [
    ("B", "B"), ("B: Aspirin 100 mg", "B"), ("(C) Aspirin", "C"), ("**A**", "A"), ("E", None),
    ("She takes iron.", "A"), ("A doctor gave aspirin", "C"), ("Aspirin 100 mg", None), ("", None),
    ("The correct answer is B.", "B"), ("the answer is: **C**", "C"), ("A's", None), ("b", None),
])
def test_an_option_is_named_by_its_letter_or_its_whole_text(answer, letter):
    assert score.chosen_letter(answer, OPTIONS) == letter


def test_multiple_choice_is_scored_by_letter_and_by_words():
    scores = score.score(prediction(options=OPTIONS, correct="C", references=["Aspirin"],
                                    answer="C: Aspirin"))
    assert scores == {"accuracy": 100.0, "rouge_l": 100.0}
    assert score.score(prediction())["accuracy"] is None


def test_intervals_are_reproducible_by_seed_and_clustered_by_document():
    values = [0.0] * 10 + [100.0] * 10
    one_by_one = [str(number) for number in range(20)]
    clustered = ["a"] * 10 + ["b"] * 10
    first = score.interval(values, one_by_one, 500, seed=1)
    assert first == score.interval(values, one_by_one, 500, seed=1)
    assert first != score.interval(values, one_by_one, 500, seed=2)
    assert first["mean"] == 50.0
    assert 20 < first["low"] < 50 < first["high"] < 80
    # Two documents say less than twenty: drawing one of them twice is likely.
    assert score.interval(values, clustered, 500, seed=1) == {
        "mean": 50.0, "low": 0.0, "high": 100.0}


def test_means_are_over_questions():
    interval = score.interval([0.0, 0.0, 0.0, 100.0], ["a", "a", "a", "b"], 100, seed=0)
    assert interval["mean"] == 25.0


def test_rows_keep_ratios_modes_supervisions_and_seen_questions_apart():
    rows = score.score_rows([
        prediction(),
        prediction(document="d2", cache_bytes=30, answer="the red house"),
        prediction(seen=True),
        prediction(ratio_ppm=0),
        prediction(mode="ADAPTER_PREFILL", supervision="RAW_CONTEXT", adapter_bytes=5),
    ])
    assert len(rows) == 4
    [row] = [row for row in rows if row["documents"] == 2]
    assert (row["mode"], row["ratio_ppm"], row["part"]) == ("BASE", 1_000_000, "unseen")
    assert row["questions"] == 2
    assert row["cache_bytes"] == 20
    assert row["rouge_l"]["mean"] == pytest.approx((80 + 100) / 2)
    [adapter] = [row for row in rows if row["supervision"]]
    assert adapter["adapter_bytes"] == 5
    assert adapter["accuracy"] is None


def test_the_report_has_a_table_per_part_with_the_baseline():
    rows = score.score_rows([
        prediction(), prediction(ratio_ppm=500_000), prediction(seen=True),
        prediction(mode="ADAPTER_PREFILL", supervision="RAW_CONTEXT", ratio_ppm=500_000),
    ])
    text = score.report(rows)
    assert "ROUGE-L, r (m, float32), unseen questions: 1 on 1 documents" in text
    assert "seen questions: 1 on 1 documents" in text
    assert "| | ρ = 0.5 | ρ = 1 |" in text
    assert "| BASE | 80.0 [80.0, 80.0] | 80.0 [80.0, 80.0] |" in text
    assert "| ADAPTER_PREFILL, RAW_CONTEXT | 80.0 [80.0, 80.0] |  |" in text
    assert "Right letters" not in text


def test_the_report_says_how_many_answers_ended_by_themselves():
    text = score.report(score.score_rows([
        prediction(ended=ended) for ended in (True, True, True, False)]))
    assert "Answers that the model ended by itself in %, r (m, float32), unseen questions" in text
    assert text.rstrip().endswith("| BASE | 75.0 |")


def test_the_report_has_the_letters_of_multiple_choice():
    text = score.report(score.score_rows([
        prediction(options=OPTIONS, correct="A", references=["Iron"], answer="B")]))
    assert "Right letters in %" in text
    assert "| BASE | 0.0 [0.0, 0.0] |" in text


def test_predictions_carry_the_name_of_their_run(tmp_path):
    folder = tmp_path / "fairy"
    folder.mkdir()
    (folder / "predictions.jsonl").write_text(json.dumps(prediction()) + "\n")
    [read] = score.read_predictions([folder / "predictions.jsonl"])
    assert read["run"] == "fairy"


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "predictions.jsonl"
    path.write_text("{}\n{\n")
    with pytest.raises(SystemExit, match=":2: isn't JSON"):
        list(score.read_predictions([path]))
