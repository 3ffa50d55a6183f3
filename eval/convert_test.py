"""The converters on tiny files of the official shape."""

import csv
import json
import sys

import convert_longhealth
import convert_narrativeqa
import pytest


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def document(name, wanted_set="test", kind="gutenberg", start="Once upon a", end="ever after."):
    return {"document_id": name, "set": wanted_set, "kind": kind, "story_url": "http://x/y",
            "story_file_size": 100, "wiki_url": "http://w", "wiki_title": f"Tale {name}",
            "story_word_count": 9, "story_start": start, "story_end": end}


def pair(name, question, answer1, answer2, wanted_set="test"):
    return {"document_id": name, "set": wanted_set, "question": question, "answer1": answer1,
            "answer2": answer2, "question_tokenized": "-", "answer1_tokenized": "-",
            "answer2_tokenized": "-"}


@pytest.fixture
def narrativeqa(tmp_path):
    write_csv(tmp_path / "documents.csv", [
        document("d1"), document("d2", kind="movie"), document("d3", wanted_set="train"),
        document("d4")])
    write_csv(tmp_path / "qaps.csv", [
        pair("d1", "Who sang, and why?", "The \"bird\"", "a bird"),
        pair("d1", "Where?", "home", "home"),
        pair("d2", "What fell?", "snow", "Snow"),
        pair("d3", "Who?", "nobody", "no one", "train")])
    write_csv(tmp_path / "third_party/wikipedia/summaries.csv", [
        {"document_id": name, "set": "test", "summary": f" {name} is a tale,\nshort.",
         "summary_tokenized": "-"} for name in ("d1", "d2", "d3", "d4")])
    stories = tmp_path / "tmp"
    stories.mkdir()
    (stories / "d1.content").write_bytes(
        "\ufeffLicence of the book.\r\n\r\n\r\nOnce  upon\r\na time a bird sang at home, "
        "happily ever after.\r\nEnd of the file.".encode())
    (stories / "d2.content").write_text(
        "<html><head><title>x</title><script>if (a < b) {}</script></head><body><pre>Once upon a "
        "time\n<b>SNOW</b> fell &amp; melted ever after.\nfooter</pre></body></html>")
    return tmp_path


def test_summaries_become_documents_with_both_annotators_answers(narrativeqa):
    records, absent = convert_narrativeqa.convert(narrativeqa, "test", "summary")
    assert absent == []
    assert [record["id"] for record in records] == [
        "narrativeqa-summary/d1", "narrativeqa-summary/d2"]
    assert records[0]["text"] == "d1 is a tale,\nshort."
    assert records[0]["title"] == "Tale d1"
    assert records[0]["qas"] == [
        {"question": "Who sang, and why?", "answers": ["The \"bird\"", "a bird"]},
        {"question": "Where?", "answers": ["home"]}]


def test_stories_are_cut_to_their_markers_and_freed_from_html(narrativeqa):
    records, absent = convert_narrativeqa.convert(narrativeqa, "test", "story")
    assert absent == []
    assert records[0]["text"] == "Once  upon\na time a bird sang at home, happily ever after"
    assert records[1]["text"] == "Once upon a time\nSNOW fell & melted ever after"


def test_a_story_that_is_absent_is_named(narrativeqa):
    (narrativeqa / "tmp/d2.content").unlink()
    records, absent = convert_narrativeqa.convert(narrativeqa, "test", "story")
    assert [record["id"] for record in records] == ["narrativeqa-story/d1"]
    assert absent == ["d2"]


def test_markers_that_arent_there_dont_cut():
    assert convert_narrativeqa.between_markers("all of it", "some words", "other words") == (
        "all of it")


def test_the_set_is_chosen(narrativeqa):
    records, _ = convert_narrativeqa.convert(narrativeqa, "train", "summary")
    assert [record["id"] for record in records] == ["narrativeqa-summary/d3"]


def test_narrativeqa_is_written_as_json_lines(narrativeqa, monkeypatch, capsys):
    output = narrativeqa / "out.jsonl"
    monkeypatch.setattr(sys, "argv", ["convert", str(narrativeqa), "--text", "summary",
                                      "--output", str(output)])
    convert_narrativeqa.main()
    assert len([json.loads(line) for line in output.read_text().splitlines()]) == 2
    assert capsys.readouterr().out == "2 documents, 3 questions\n"


def test_other_files_than_narrativeqas_are_refused(tmp_path, monkeypatch):
    write_csv(tmp_path / "documents.csv", [{"id": "d1"}])
    monkeypatch.setattr(sys, "argv", ["convert", str(tmp_path), "--output", "x"])
    with pytest.raises(SystemExit, match="aren't NarrativeQA's files"):
        convert_narrativeqa.main()


def longhealth_question(number, correct):
    return {"No": number, "question": " Which drug?", "answer_a": "Iron", "answer_b": "Zinc ",
            "answer_c": "Lead", "answer_d": "Tin", "answer_e": "None", "correct": correct,
            "answer_location": {"text_0": {"start": [0.1], "end": [0.2]}}}


def longhealth(**changes):
    patient = {"name": "A", "birthday": "1970-01-01", "diagnosis": "x",
               "texts": {"text_0": "First letter.\n", "text_10": "Last.", "text_2": "Middle."},
               "questions": [longhealth_question(0, "Zinc"), longhealth_question(1, "e")]}
    return {"patient_10": patient, "patient_02": patient | changes}


def test_a_patients_letters_are_one_document_in_order():
    records = list(convert_longhealth.convert(longhealth()))
    assert [record["id"] for record in records] == [
        "longhealth/patient_02", "longhealth/patient_10"]
    parts = records[0]["text"].split(convert_longhealth.SEPARATOR)
    assert parts == ["First letter.", "Middle.", "Last."]


def test_the_right_option_is_known_by_text_and_letter():
    [first, second] = next(convert_longhealth.convert(longhealth()))["qas"]
    assert first == {"question": "Which drug?", "answers": ["Zinc"], "correct": "B", "no": 0,
                     "options": {"A": "Iron", "B": "Zinc", "C": "Lead", "D": "Tin", "E": "None"}}
    assert second["correct"] == "E"
    assert second["answers"] == ["None"]


def test_an_answer_that_is_no_option_is_named():
    benchmark = longhealth(questions=[longhealth_question(7, "Gold")])
    with pytest.raises(convert_longhealth.FormatError, match="patient_02, question 7: 0 options"):
        list(convert_longhealth.convert(benchmark))


def test_longhealth_is_written_as_json_lines(tmp_path, monkeypatch, capsys):
    source, output = tmp_path / "benchmark_v5.json", tmp_path / "out.jsonl"
    source.write_text(json.dumps(longhealth()))
    monkeypatch.setattr(sys, "argv", ["convert", str(source), "--output", str(output)])
    convert_longhealth.main()
    assert len(output.read_text().splitlines()) == 2
    assert capsys.readouterr().out == "2 documents, 4 questions\n"
    source.write_text("[]")
    with pytest.raises(SystemExit, match="isn't LongHealth's file"):
        convert_longhealth.main()
