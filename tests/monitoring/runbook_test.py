"""The runbook has a section for each alert and none besides; alerts point to their sections."""

import itertools
import os
import re
import subprocess
from pathlib import Path

import deployed
import pytest

SEVERITIES = {"critical", "warning"}
BINARIES = Path(os.environ.get("DOCMEM_BIN_DIR", deployed.ROOT / "build/release/bin"))
PARTS = ["**Means.**", "**Check.**", "**Do.**"]


def sections():
    """Heading → text."""
    _, *found = re.split(r"^## ", deployed.RUNBOOK.read_text(), flags=re.MULTILINE)
    return dict(section.split("\n", 1) for section in found)


def test_alerts_and_sections_are_the_same_in_the_same_order():
    assert list(sections()) == [rule["alert"] for rule in deployed.alerts()]


@pytest.mark.parametrize("rule", deployed.alerts(), ids=deployed.name_of)
def test_an_alert_says_how_urgent_it_is_and_points_to_its_section(rule):
    assert rule["labels"]["severity"] in SEVERITIES
    assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert rule["annotations"]["summary"]


@pytest.mark.parametrize("name, text", sections().items(), ids=list(sections()))
def test_a_section_says_what_it_means_how_to_check_and_what_to_do(name, text):
    places = [text.find(part) for part in PARTS]
    assert -1 not in places and places == sorted(places), name
    for part, begin, end in zip(PARTS, places, [*places[1:], len(text)], strict=True):
        assert len(text[begin + len(part) : end].strip()) > 40, f"{name}: {part}"


def help_of(program, *command):
    return subprocess.run([BINARIES / program, *command, "--help"], check=True, timeout=60,
                          capture_output=True, text=True).stdout


def quoted(pattern):
    return sorted(set(re.findall(pattern, deployed.RUNBOOK.read_text())))


@pytest.mark.parametrize("words", quoted(r"`docmem\s([^`]*)`"))
def test_every_command_exists_with_its_options(words):
    command = re.sub(r"--address \S+", "", words).split()
    plain = list(itertools.takewhile(re.compile("[a-z]+$").match, command))
    if plain:
        text = help_of("docmem", *plain)
        assert f"docmem {' '.join(plain)}" in text
        assert all(option in text for option in command if option.startswith("--"))


def test_every_setting_exists():
    settings = help_of("docmemd")
    named = quoted(r"`(?:docmemd )?(--[a-z-]+)[^`]*`")
    assert len(named) > 5
    assert [name for name in named if not re.search(name + "[ ={]", settings)] == []


def test_every_panel_that_is_named_exists():
    titles = (deployed.GRAFANA / "dashboard.json").read_text()
    named = quoted(r"(?<!\*)\*([A-Z][^*]*)\*(?!\*)")
    assert len(named) > 10
    assert [name for name in named if f'"title": "{" ".join(name.split())}"' not in titles] == []


def test_links_inside_lead_to_sections():
    anchors = {heading.lower() for heading in sections()}
    assert set(quoted(r"\]\(#([^)]*)\)")) <= anchors
