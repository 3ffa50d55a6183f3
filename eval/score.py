#!/usr/bin/env python3
"""Scores the predictions of docmem-eval: ROUGE-L and, of multiple choice, the right letters.

    eval/score.py build/eval/small/*/predictions.jsonl --output build/eval/small

writes scores.json, which plot.py draws, and table.md, and prints the table. Means are over
questions; confidence intervals (95 %) come from drawing whole documents again, because questions
on one document share a cache and an adapter.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy
from rouge_score.rouge_scorer import RougeScorer

BASELINE_PPM = 1_000_000  # of BASE: nothing of the document is left
COLUMNS = ("run", "model", "dtype", "mode", "supervision", "ratio_ppm", "part")
PARTS = {True: "seen", False: "unseen"}
# A letter at the answer's beginning, or behind "The right answer is"; not the article A.
NAMED_LETTER = re.compile(r"\W*(?i:the (?:right |correct )?(?:answer|option) is\W*)?"
                          r"([A-Z])(?=[.,:;)\]*]|\W*$)")
_SCORER = RougeScorer(["rougeL"], use_stemmer=True)


def rouge_l(answer, references):
    """F-measure in per cent against the best of the reference answers."""
    return 100 * max(_SCORER.score(reference, answer)["rougeL"].fmeasure
                     for reference in references)


def chosen_letter(answer, options):
    """The option that an answer names: by its letter in front, else by being the only option whose
    whole text is in it; None where it names none."""
    letter = NAMED_LETTER.match(answer)
    if letter and letter.group(1) in options:
        return letter.group(1)
    folded = answer.casefold()
    named = [letter for letter, text in options.items() if text.casefold() in folded]
    return named[0] if len(named) == 1 else None


def read_predictions(paths):
    """The lines of the files, each with its run: the name of the file's folder."""
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield json.loads(line) | {"run": path.resolve().parent.name}
                except json.JSONDecodeError as error:
                    sys.exit(f"{path}:{number}: isn't JSON ({error.msg})")


def score(prediction):
    references = list(prediction["references"])
    scores = {"accuracy": None}
    if options := prediction.get("options"):
        correct = prediction["correct"]
        references.append(f"{correct}: {options[correct]}")
        scores["accuracy"] = 100.0 * (chosen_letter(prediction["answer"], options) == correct)
    scores["rouge_l"] = rouge_l(prediction["answer"], references)
    return scores


def interval(values, documents, resamples, seed):
    """Mean of the values and its 95 % interval when whole documents are drawn with replacement."""
    names = sorted(set(documents))
    index = {name: number for number, name in enumerate(names)}
    sums, counts = numpy.zeros(len(names)), numpy.zeros(len(names))
    for value, document in zip(values, documents, strict=True):
        sums[index[document]] += value
        counts[index[document]] += 1
    draws = numpy.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = numpy.quantile(means, [0.025, 0.975])
    return {"mean": float(sums.sum() / counts.sum()), "low": float(low), "high": float(high)}


def group_of(prediction):
    return (prediction["run"], prediction["model"]["name"], prediction["model"]["dtype"],
            prediction["mode"], prediction["supervision"] or "", prediction["ratio_ppm"],
            PARTS[prediction["seen"]])


def score_rows(predictions, resamples=1000, seed=0):
    """One row per run, mode, supervision, ratio and part of the questions (seen, unseen)."""
    groups = defaultdict(list)
    for prediction in predictions:
        groups[group_of(prediction)].append(prediction | score(prediction))
    rows = []
    for group, members in sorted(groups.items()):
        documents = [member["document"] for member in members]
        row = dict(zip(COLUMNS, group, strict=True))
        row["documents"], row["questions"] = len(set(documents)), len(members)
        row["rouge_l"] = interval([member["rouge_l"] for member in members], documents,
                                  resamples, seed)
        choices = [member for member in members if member["accuracy"] is not None]
        row["accuracy"] = interval([member["accuracy"] for member in choices],
                                   [member["document"] for member in choices],
                                   resamples, seed) if choices else None
        for size in ("cache_bytes", "adapter_bytes"):
            by_document = {member["document"]: member[size] for member in members}
            row[size] = sum(by_document.values()) / len(by_document)
        row["answer_tokens"] = sum(member["answer_tokens"] for member in members) / len(members)
        row["ended"] = 100 * sum(member["ended"] for member in members) / len(members)
        rows.append(row)
    return rows


def ratio_text(ppm):
    return f"{ppm / 1e6:g}"


def line_name(row):
    """What a line of a table or plot is called; the base model has no supervision."""
    return f"{row['mode']}, {row['supervision']}" if row["supervision"] else row["mode"]


def cell_text(scores):
    if isinstance(scores, float):
        return f"{scores:.1f}"
    return f"{scores['mean']:.1f} [{scores['low']:.1f}, {scores['high']:.1f}]"


def table(rows, measure):
    """Lines of a Markdown table: modes and supervisions by ratio."""
    ratios = sorted({row["ratio_ppm"] for row in rows})
    cells = {(line_name(row), row["ratio_ppm"]): cell_text(row[measure]) for row in rows}
    names = list(dict.fromkeys(line_name(row) for row in sorted(
        rows, key=lambda row: (row["supervision"], row["mode"]))))
    yield "| | " + " | ".join(f"ρ = {ratio_text(ppm)}" for ppm in ratios) + " |"
    yield "| --- |" + " --- |" * len(ratios)
    for name in names:
        yield f"| {name} | " + " | ".join(cells.get((name, ppm), "") for ppm in ratios) + " |"


def report(rows):
    """The tables of all runs, seen and unseen questions apart, as Markdown."""
    blocks = []
    for run in sorted({row["run"] for row in rows}):
        for part in ("unseen", "seen"):
            members = [row for row in rows if (row["run"], row["part"]) == (run, part)]
            if not members:
                continue
            size = next(row for row in members
                        if row["mode"] == "BASE" and row["ratio_ppm"] == BASELINE_PPM)
            title = (f"{run} ({size['model']}, {size['dtype']}), {part} questions: "
                     f"{size['questions']} on {size['documents']} documents")
            blocks.append("\n".join([f"ROUGE-L, {title}", "", *table(members, "rouge_l")]))
            choices = [row for row in members if row["accuracy"]]
            if choices:
                blocks.append("\n".join([f"Right letters in %, {title}", "",
                                         *table(choices, "accuracy")]))
            blocks.append("\n".join([f"Answers that the model ended by itself in %, {title}", "",
                                     *table(members, "ended")]))
    return "\n\n".join(blocks) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("predictions", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--resamples", type=int, default=1000, metavar="N",
                        help="for the confidence intervals (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples (%(default)s)")
    options = parser.parse_args()
    rows = score_rows(read_predictions(options.predictions), options.resamples, options.seed)
    if not rows:
        sys.exit("there are no predictions")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "scores.json").write_text(json.dumps(rows, indent=1) + "\n")
    text = report(rows)
    (options.output / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
