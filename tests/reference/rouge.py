"""ROUGE-L of pairs of texts, from rouge-score without a stemmer."""

import random

from rouge_score.rouge_scorer import RougeScorer

from common import path, save_json

PAIRS = [
    ("", ""), ("", "an answer"), ("a reference", ""), ("...", "?!"),
    ("The GPL, the BSD and the Artistic licenses.", "the gpl, the bsd and the artistic licenses"),
    ("Version 1.2 of July 2004", "version 1-2 (july, 2004)"), ("don't", "don t"),
    ("a b c d e", "e d c b a"), ("a a a b", "a b a b a"), ("one two three", "one three"),
    ("naïve café", "naive cafe"), ("naïve café", "na ve caf"), ("Straße", "strasse"),
    ("300 \u212a", "300 K"), ("\u0130stanbul", "i stanbul"), ("\u0130stanbul", "istanbul"),
    ("ＦＵＬＬ width", "full width"), ("snake_case", "snake case"), ("x\u00a0y\u2003z", "x y z"),
    ("\u01c5", "d\u017e"), ("Ω ohm", "ω ohm"), ("tabs\tand\nlines", "tabs and lines"),
]


def make() -> None:
    draw = random.Random(7)
    words = ["lamp", "harbour", "blue", "the", "of", "12", "Aurora", "ferry,", "(old)", "Zoë"]
    pairs = list(PAIRS)
    for _ in range(60):
        pairs.append(tuple(" ".join(draw.choices(words, k=draw.randint(1, 25))) for _ in range(2)))
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    save_json(path("rouge/scores.json"), [
        {"reference": reference, "answer": answer,
         "rouge_l": scorer.score(reference, answer)["rougeL"].fmeasure}
        for reference, answer in pairs
    ])
