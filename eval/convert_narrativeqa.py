#!/usr/bin/env python3
"""NarrativeQA's official files to the data format of docs/evaluation.md.

    git clone https://github.com/google-deepmind/narrativeqa
    eval/convert_narrativeqa.py narrativeqa --set test --text story --output narrativeqa_test.jsonl

The folder holds documents.csv, qaps.csv and, for --text summary, third_party/wikipedia/summaries.csv;
for --text story also tmp/ID.content, which the data set's own download_stories.sh fetches (--stories
names another folder). Stories are used from their start to their end marker, as documents.csv gives
them; HTML is reduced to its text. Documents whose story is absent are named on standard error.
"""

import argparse
import csv
import html.parser
import json
import re
import sys
from pathlib import Path

SOURCE = "google-deepmind/narrativeqa"
BLOCKS = {"p", "div", "br", "pre", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "title"}
HIDDEN = {"script", "style", "head"}


class TextOfHtml(html.parser.HTMLParser):
    """The text of a page, a line feed for every block."""

    def __init__(self):
        super().__init__()
        self.pieces = []
        self.hidden = 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in HIDDEN
        if tag in BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in HIDDEN and self.hidden > 0

    def handle_data(self, data):
        if not self.hidden:
            self.pieces.append(data)


def plain_text(raw):
    if re.search(r"<(html|pre|body)\b", raw[:5000], re.IGNORECASE):
        page = TextOfHtml()
        page.feed(raw)
        raw = "".join(page.pieces)
    text = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    text = re.sub(r"[^\S\n]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def find(text, marker, first):
    """Where a marker's words stand next to each other, whatever lies between them; None if not."""
    words = re.findall(r"\w+", marker)
    if not words:
        return None
    found = re.compile(r"\W+".join(map(re.escape, words))).search(text, first)
    return found.span() if found else None


def between_markers(text, start, end):
    """From the start marker to the end marker; a marker that isn't found doesn't cut."""
    begin = find(text, start, 0)
    first = begin[0] if begin else 0
    last = find(text, end, first)
    return text[first:last[1]] if last else text[first:]


def read_csv(path):
    csv.field_size_limit(1 << 30)
    with open(path, encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def read_story(path, document):
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    return between_markers(plain_text(text), document["story_start"], document["story_end"])


def questions_by_document(folder):
    questions = {}
    for row in read_csv(folder / "qaps.csv"):
        answers = list(dict.fromkeys(row[key].strip() for key in ("answer1", "answer2")))
        question = {"question": row["question"].strip(),
                    "answers": [answer for answer in answers if answer]}
        if question["question"] and question["answers"]:
            questions.setdefault(row["document_id"], []).append(question)
    return questions


def texts_by_document(folder, stories, kind, documents):
    if kind == "summary":
        summaries = read_csv(folder / "third_party/wikipedia/summaries.csv")
        return {row["document_id"]: row["summary"].strip() for row in summaries}
    texts = {}
    for document in documents:
        path = stories / f"{document['document_id']}.content"
        if path.is_file():
            texts[document["document_id"]] = read_story(path, document)
    return texts


def convert(folder, wanted_set, kind, stories=None):
    """The records of a set, and the ids of those documents whose text is absent."""
    documents = [row for row in read_csv(folder / "documents.csv") if row["set"] == wanted_set]
    questions = questions_by_document(folder)
    texts = texts_by_document(folder, stories or folder / "tmp", kind, documents)
    records, absent = [], []
    for document in documents:
        name = document["document_id"]
        if name not in questions:
            continue
        if not texts.get(name):
            absent.append(name)
            continue
        records.append({"id": f"narrativeqa-{kind}/{name}", "title": document["wiki_title"],
                        "text": texts[name], "qas": questions[name], "source": SOURCE,
                        "split": wanted_set, "kind": document["kind"], "text_kind": kind})
    return records, absent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="checkout of NarrativeQA's repository")
    parser.add_argument("--set", default="test", choices=("train", "valid", "test"))
    parser.add_argument("--text", default="story", choices=("story", "summary"))
    parser.add_argument("--stories", type=Path, metavar="FOLDER", help="default: tmp in the checkout")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    try:
        records, absent = convert(options.folder, options.set, options.text, options.stories)
    except (OSError, KeyError) as error:
        sys.exit(f"these aren't NarrativeQA's files: {error}")
    if not records:
        sys.exit(f"no {options.text} of the {options.set} set was found")
    with open(options.output, "w", encoding="utf-8") as output:
        for record in records:
            output.write(json.dumps(record, ensure_ascii=False) + "\n")
    if absent:
        print(f"without text, left out: {', '.join(absent)}", file=sys.stderr)
    print(f"{len(records)} documents, {sum(len(record['qas']) for record in records)} questions")


if __name__ == "__main__":
    main()
