"""The runbook has a section for each alert and none besides; alerts point to their sections."""

import re

import deployed
import pytest

SEVERITIES = {"critical", "warning"}
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
