"""Strings that tokenizers disagree about: chosen by hand, and drawn by seed over all of Unicode 14.

Mixed strings are too many to be committed: mixed.json says how to draw them again.

Python 3.11's unicodedata is Unicode 14.0, the version that DocMem's regular expressions know.
"""

import random
import sys
import unicodedata

from tokenizers import normalizers

assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version

CONTROL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "<repo_name>",
    "<empty_output>",
    "<left>",
    "<right>",
    "<both>",
    "<word>",
    "<caf\u00e9>",
]
SPACES = " \t\n\r\x0b\x0c\x85\u00a0\u1680\u180e\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
DIGITS = (
    "0123456789\u0663\u0967\u0e53\u2074\u2155\u2167\u2460\u3007\u4e09\U0001d7d8\U00011c5a\U00010107"
)
VIETNAMESE = "Ti\u1ebfng Vi\u1ec7t c\u00f3 nhi\u1ec1u d\u1ea5u, t\u1eeb \u0110\u1ed3ng B\u1eafc \u0111\u1ebfn C\u00e0 Mau."
HANGUL = "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc744 \uc790\ubaa8\ub85c \ub098\ub208\ub2e4."
EMOJI = [
    "\U0001f469\u200d\U0001f52c\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f44b\U0001f3fd \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3 #\ufe0f\u20e3",
    "\U0001f1e9\U0001f1ea\U0001f1ef\U0001f1f5\U0001f1e9",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
]


def control_strings() -> list[str]:
    result = ["".join(CONTROL), " ".join(CONTROL), "\n".join(CONTROL)]
    for token in CONTROL:
        result += [
            token,
            f"a{token}b",
            f"  {token}  end",
            f"x {token}\t\n{token}y",
            f"{token}{token}",
            token[:-1],
            token[1:],
            token.upper(),
            token.replace("|", "| ", 1),
            f"1{token}2",
            f"_{token}_",
        ]
    result += [
        "<|im_<|im_end|>end|>",
        "<|im_start|>system\nDo as I say.<|im_end|>\n<|im_start|>assistant\n",
        "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>",
        "<cafe\u0301>",
        "a <cafe\u0301> b",
    ]
    return result


def text_strings() -> list[str]:
    nfd = [
        unicodedata.normalize("NFD", text)
        for text in (VIETNAMESE, HANGUL, "\u00c5ngstr\u00f6m \u1e69 \u01d5")
    ]
    return (
        nfd
        + EMOJI
        + [
            "",
            " ",
            "a",
            "\n",
            "\x00",
            "\x7f\x80\x9f",
            "\ufffd",
            "\ufeffBOM",
            VIETNAMESE,
            HANGUL,
            "The harbour's clock doesn't stop; they'll say WE'VE said I'D'VE, can't'm 'S'T'RE \u2019s.",
            "'s't're've'm'll'd 'S 'LL 'x",
            "\u017f's \u212a'\u017f '\u017f",
            "don\u2019t  stop\u2026 \u00abici\u00bb \u201ethere\u201c",
            "line one\r\nline two\r\n\r\n  indented\r\ttabbed\n\n\n",
            "a \n b\t\t\nc   \n   d\r\r\ne \r\n",
            " \u00a0 \u3000x\u2003\u2003y ",
            "trailing   ",
            "   leading",
            "a    b",
            "\t\tif (x):\n\t\t    return  y\n",
            SPACES,
            "x".join(SPACES),
            "  ".join(SPACES),
            "0 1 12 123 1234 12345 1234567890 3.14 -7 1e-9 0x1F 10,000",
            "a1b22c333d4444",
            DIGITS,
            " ".join(DIGITS),
            "\u00bd\u00b2\u2460\u2167",
            "a\u0301\u0302\u0323\u0307 e\u0323\u0302 \u0301 q\u0307\u0323",
            "\u0344\u0958\ufb1d\u2adc \u212b\u2126",
            "\u1100\u1161\u11a8\u1100\u1161 \uac00\u11a8",
            "\u0e17\u0e14\u0e2a\u0e2d\u0e1a\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
            "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645 \u0661\u0662\u0663",
            "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
            "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f",
            "\u56f3\u66f8\u9928\u306e\u6642\u8a08\u306f\u6b62\u307e\u3063\u305f\u3002\uff11\uff12\uff13\uff21\uff22",
            "\U00020000\U0002a6d6\U00030000 \U0001f0a1\U0001d400\U00010330",
            "\ue000\uf8ff\U000f0000\U0010fffd",
            "https://example.org/a?b=c&d=%20#e",
            "snake_case camelCase __dunder__ a.b->c::d ==> != <= ||",
            "if(a[0]==b{c}){return'x';}//\n",
            "#" * 7 + "!?!?...---***",
            "\u20ac100 \u00a35 $3.50 \u20bf1",
            "unreachable docmemory unreachabledocmemory a unreachable",
            "\u00df\u1e9e\u0130\u0131\u01c5\u01f2 \u0345\u0370",
            "soft\u00adhyphen zero\u200bwidth word\u2060joiner",
            "\u202eright to left\u202c",
            '\\u0041 \\n "quoted" \\\\',
            "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334a\u0328\u0321\u0324\u0348l\u0321\u035a\u0333g\u0355\u0323o\u031e",
        ]
    )


def run_strings() -> list[str]:
    """Long runs of one character or one pattern."""
    units = [
        "a",
        "A",
        "_",
        "-",
        "=",
        " ",
        "\n",
        "\r\n",
        "\t",
        " \n",
        "0",
        "9",
        "\u4e2d",
        "\uac00",
        "\u0301",
        "\U0001f600",
        "ab",
        "a ",
        "aGVsbG8",
        "'s",
    ]
    result = [unit * (300 // len(unit)) for unit in units]
    return result + ["x" + " " * count + "y" for count in (1, 2, 3, 4, 15, 16, 17, 64)]


def assigned() -> list[int]:
    """Every code point that Unicode 14 assigns (private use included), without surrogates."""
    return [
        c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")
    ]


def ranges(points: list[int]) -> list[list[int]]:
    """Closed ranges of ascending code points."""
    result = []
    for point in points:
        if result and result[-1][1] == point - 1:
            result[-1][1] = point
        else:
            result.append([point, point])
    return result


def random_strings(seed: int, count: int) -> list[str]:
    """Strings of 1 to 14 pieces from ten kinds, four in ten of them over all assigned code points."""
    rng = random.Random(seed)
    points = assigned()
    marks = [chr(c) for c in points if unicodedata.combining(chr(c))]
    by_plane = [[c for c in points if c >> 16 == plane] for plane in (0, 1, 2, 3, 14)]
    kinds = [
        lambda: chr(rng.choice(points)),
        lambda: chr(rng.choice(rng.choice(by_plane))),
        lambda: chr(rng.choice(by_plane[0])),
        lambda: chr(rng.randrange(0x20, 0x7F)),
        lambda: rng.choice("aeiouAEIOU") + rng.choice(marks) * rng.randrange(1, 3),
        lambda: rng.choice(SPACES) * rng.randrange(1, 4),
        lambda: chr(rng.randrange(0x1100, 0x11FA)) + chr(rng.randrange(0x1161, 0x1176)),
        lambda: rng.choice(DIGITS) * rng.randrange(1, 5),
        lambda: rng.choice(CONTROL),
        lambda: rng.choice(
            ["the ", "'re", " and", "\r\n", "docmemory", " unreachable", "Ti\u1ebf"]
        ),
    ]
    weights = [14, 8, 14, 20, 10, 10, 5, 7, 4, 8]
    return [
        "".join(rng.choices(kinds, weights)[0]() for _ in range(rng.randrange(1, 15)))
        for _ in range(count)
    ]


def normalised_alike(point: int) -> bool:
    """Whether the library's NFC, whose tables are of Unicode 9, orders and composes this one as Unicode 14 does."""
    nfd = unicodedata.normalize("NFD", chr(point))
    texts = [nfd, f"\u0301{nfd}", f"{nfd}\u0334"]
    library = normalizers.NFC()
    return all(library.normalize_str(t) == unicodedata.normalize("NFC", t) for t in texts)


def kinds() -> list[list]:
    """What mixed strings are made of, by kind: texts, and closed ranges of code points.

    Marks that the library doesn't know are left out. A kind that stands twice is twice as likely.
    """
    points = [c for c in assigned() if normalised_alike(c)]
    planes = [ranges([c for c in points if c >> 16 == plane]) for plane in (0, 1, 2, 3, 14, 15, 16)]
    ascii_letters = [[0x41, 0x5A], [0x61, 0x7A]]
    marks = ranges([c for c in points if unicodedata.combining(chr(c))])
    jamo = [[0x1100, 0x1112], [0x1161, 0x1175], [0x11A8, 0x11C2], [0xAC00, 0xD7A3]]
    spaces = [space * count for space in SPACES for count in (1, 2, 3)]
    digits = [digit * count for digit in DIGITS for count in (1, 2, 3, 4)]
    tokens = CONTROL + ["<cafe\u0301>", "harbour"]
    words = ["the ", " and", "'re", "'S", "_", "\r\n", "docmemory", " unreachable", "Ti\u1ebf"]
    vowels = [vowel + mark for vowel in "aeiouAEIOU" for mark in "\u0301\u0302\u0323\u0308"]
    return [
        *planes,
        planes[0],
        ascii_letters,
        ascii_letters,
        ascii_letters,
        [[0x20, 0x7E]],
        marks,
        marks,
        vowels,
        jamo,
        spaces,
        [" "],
        digits,
        tokens,
        tokens,
        words,
    ]


def splitmix64(seed: int):
    """Endless numbers of 64 bits that tokenizer_reference_test.cc draws too."""
    mask = 2**64 - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        mixed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        yield mixed ^ (mixed >> 31)


def mixed_strings(seed: int, count: int) -> list[str]:
    """Strings of 1 to 16 pieces: every piece is one of a kind, each entry of kinds() as likely."""
    numbers = splitmix64(seed)
    pieces = [
        [
            piece
            for entry in kind
            for piece in (
                [entry] if isinstance(entry, str) else map(chr, range(entry[0], entry[1] + 1))
            )
        ]
        for kind in kinds()
    ]

    def choose(choices):
        return choices[next(numbers) % len(choices)]

    return [
        "".join(choose(choose(pieces)) for _ in range(choose(range(1, 17)))) for _ in range(count)
    ]


def all_strings() -> tuple[list[str], list[str]]:
    return control_strings() + text_strings() + run_strings(), random_strings(81, 1100)
