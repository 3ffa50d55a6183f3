"""Text made by seed from word lists: training material for the tokenizers."""

import random

SUBJECTS = """The archive|A lighthouse|Our committee|The second engine|Every passenger|This paragraph
Nobody|The old bridge|Her neighbour|A small orchestra|The river|Some engineers|The librarian|Winter""".replace(
    "\n", "|"
).split(
    "|"
)
VERBS = """describes|carries|doesn't like|measured|will repair|has forgotten|keeps|couldn't find|paints
answers|is waiting for|they'll remember|counts|rewrites|we've moved|compresses""".replace(
    "\n", "|"
).split(
    "|"
)
OBJECTS = """a document of 37 pages|the blue door|about 1024 tokens|an unusual question|the answer|two maps
every letter from 1987|the station clock|a list of names|its own shadow|the harbour|3.14159 litres of water
the key and the value|a memory|what the adapter learned|nothing at all""".replace(
    "\n", "|"
).split(
    "|"
)
ENDINGS = [
    ".",
    ".",
    "!",
    "?",
    ";",
    ", because it rained.",
    " (see page 12).",
    ":\n\t- first\n\t- second",
    "...\n\n",
]
FOREIGN = [
    "Der Zug fährt um 8:45 Uhr über die Brücke.",
    "La lumière du phare était très faible.",
    "El niño preguntó por qué el río no corría.",
    "Документ хранит память о городе.",
    "図書館の時計は止まっていた。",
    "오래된 다리 위에 눈이 내렸다.",
    "Cuốn sách kể về một ngôi làng nhỏ.",
    "गाँव की नदी बहुत शांत है।",
    "الجسر القديم فوق النهر.",
    "Η βιβλιοθήκη άνοιξε νωρίς.",
    "😀 🎻 👩‍🔧 ok",
]
CODE = [
    "for (int i = 0; i < count; ++i) {\n    total += values[i];\n}\n",
    "def answer(question):\n    return memory.get(question, None)\n",
    '{"name": "docmem", "ratio": 0.9, "tokens": [1, 2, 3]}\n',
    "https://example.org/a/b?c=d&e=f#g\n",
]


def sentence(rng: random.Random) -> str:
    return f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)}{rng.choice(ENDINGS)}"


def paragraphs(seed: int, count: int) -> list[str]:
    """`count` paragraphs of English with some code and lines in other languages between them."""
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        parts = [sentence(rng) for _ in range(rng.randrange(2, 7))]
        if rng.random() < 0.3:
            parts.append(rng.choice(FOREIGN))
        if rng.random() < 0.2:
            parts.append(rng.choice(CODE))
        result.append(" ".join(parts))
    return result
