"""Documents for the tests: sentences drawn by seed, so that every seed is another text."""

import random

_WHO = ["The keeper", "A ferry", "Nobody", "The mayor", "Every clock", "My aunt", "The ninth map"]
_DOES = ["repairs", "forgets", "paints", "measures", "sells", "hides", "remembers", "weighs"]
_WHAT = ["the blue door", "12 lanterns", "a wet letter", "the harbour wall", "its own shadow",
         "3 silver keys", "the last page", "an old engine"]
_WHEN = ["before noon", "in 1987", "twice a week", "when it rains", "without asking", "by hand"]


def document(seed, sentences=12):
    """About 30 tokens of the tiny models for each sentence."""
    draw = random.Random(seed).choice
    lines = [
        f"{draw(_WHO)} {draw(_DOES)} {draw(_WHAT)} {draw(_WHEN)}." for _ in range(sentences)
    ]
    return f"Report {seed}. " + " ".join(lines)
