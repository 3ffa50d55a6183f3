"""What the demo prints: steps with progress, answers beside references, the table of results."""

import os
import shutil
import sys

MIN_COLUMNS = 80
MAX_COLUMNS = 100
PLAIN_PROGRESS_STEPS = 4


class Terminal:
    """Standard output. Colours and a moving progress bar only where it is a terminal."""

    def __init__(self):
        self._tty = sys.stdout.isatty()
        self._colour = self._tty and "NO_COLOR" not in os.environ
        self.columns = min(max(shutil.get_terminal_size().columns, MIN_COLUMNS), MAX_COLUMNS)

    def bold(self, text):
        return self._coloured("1", text)

    def dim(self, text):
        return self._coloured("2", text)

    def green(self, text):
        return self._coloured("32", text)

    def red(self, text):
        return self._coloured("31", text)

    def step(self, text):
        self.line(f"{self.green('==>')} {self.bold(text)}")

    def line(self, text=""):
        print(text, flush=True)

    def progress(self, done, total, what):
        if self._tty:
            width = self.columns - len(what) - 16
            bar = ("█" * (width * done // total)).ljust(width, "░")
            print(f"\r    {bar} {done:>3}/{total} {what} ", end="", flush=True)
            if done == total:
                print("\r" + " " * (self.columns - 1) + "\r", end="", flush=True)
        elif done * PLAIN_PROGRESS_STEPS // total != (done - 1) * PLAIN_PROGRESS_STEPS // total:
            self.line(f"    {done}/{total} {what}")

    def _coloured(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self._colour else text


def megabytes(count):
    return f"{count / 1e6:.2f} MB"


def one_line(text, width):
    """`text` without line breaks, cut to `width` columns."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def print_answers(terminal, questions, ways, answers):
    """Each question with its reference and the answer of each way. answers[way][question]."""
    label = max(len(way.name) for way in ways)
    for number, item in enumerate(questions):
        kind = "" if item["seen"] else terminal.dim(" (new words)")
        terminal.line(f"\n  {terminal.bold(item['question'])}{kind}")
        text = one_line(item["answer"], terminal.columns - label - 12)
        terminal.line(f"    {'reference':{label}}        {terminal.green(text)}")
        for way in ways:
            answer = answers[way.name][number]
            text = one_line(answer.text, terminal.columns - label - 12) or "(empty)"
            terminal.line(f"    {way.name:{label}}  {answer.rouge_l:3.0f}   {text}")


def print_table(terminal, rows, full_bytes):
    """One row per way. Bytes are those in memory; `of full` compares with the full KV cache."""
    cells = [["", "ROUGE-L", "new words", "cache", "adapter", "together", "of full", "1st token"]]
    for row in rows:
        together = row["cache_bytes"] + row["adapter_bytes"]
        cells.append(
            [
                row["name"],
                f"{row['trained']:.1f}",
                f"{row['new']:.1f}",
                megabytes(row["cache_bytes"]),
                megabytes(row["adapter_bytes"]) if row["adapter_bytes"] else "–",
                megabytes(together),
                f"{100 * together / full_bytes:.1f} %",
                f"{1000 * row['first_token_seconds']:.0f} ms",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells)]
    for number, line in enumerate(cells):
        text = line[0].ljust(widths[0])
        text += "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:]))
        terminal.line("  " + (text if number else terminal.bold(text)))
    note = "ROUGE-L: questions as trained; new words: some of them asked in other words"
    terminal.line(terminal.dim(f"  {note}"))
