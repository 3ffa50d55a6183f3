#!/usr/bin/env python3
"""LongHealth's official file to the data format of docs/evaluation.md.

    git clone https://github.com/kbressem/LongHealth
    eval/convert_longhealth.py LongHealth/data/benchmark_v5.json --output longhealth.jsonl

One document a patient: the letters in their order, a line between them. The 20 questions of a patient
are multiple choice; the reference answer is the right option's text.
"""

import argparse
import json
import sys
from pathlib import Path

SOURCE = "kbressem/LongHealth:data/benchmark_v5.json"
SEPARATOR = "\n\n--- Document Separator ---\n\n"
LETTERS = "ABCDE"


class FormatError(Exception):
    """What isn't as LongHealth's file has it, with the place."""


def number_of(name):
    """The number at the end of "text_12"."""
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def convert_question(question, place):
    options = {letter: question[f"answer_{letter.lower()}"].strip() for letter in LETTERS}
    correct = question["correct"].strip()
    letters = [letter for letter, text in options.items() if text == correct]
    if not letters and correct.upper() in options:
        letters = [correct.upper()]
    if len(letters) != 1:
        raise FormatError(f"{place}: {len(letters)} options equal the right answer")
    return {"question": question["question"].strip(), "answers": [options[letters[0]]],
            "options": options, "correct": letters[0], "no": question["No"]}


def convert(benchmark):
    for name, patient in sorted(benchmark.items(), key=lambda item: number_of(item[0])):
        texts = sorted(patient["texts"].items(), key=lambda item: number_of(item[0]))
        yield {"id": f"longhealth/{name}", "title": f"LongHealth {name}",
               "text": SEPARATOR.join(text.strip() for _, text in texts),
               "qas": [convert_question(question, f"{name}, question {question['No']}")
                       for question in patient["questions"]],
               "source": SOURCE}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("benchmark", type=Path, help="benchmark_v5.json")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    try:
        records = list(convert(json.loads(options.benchmark.read_text(encoding="utf-8"))))
    except FormatError as error:
        sys.exit(str(error))
    except (OSError, KeyError, AttributeError, TypeError, json.JSONDecodeError) as error:
        sys.exit(f"this isn't LongHealth's file: {error!r}")
    with open(options.output, "w", encoding="utf-8") as output:
        for record in records:
            output.write(json.dumps(record, ensure_ascii=False) + "\n")
    print(f"{len(records)} documents, {sum(len(record['qas']) for record in records)} questions")


if __name__ == "__main__":
    main()
