"""deploy/systemd: systemd understands the unit, which is closed up, and docmemd agrees with it."""

import configparser
import shutil
import subprocess
import tomllib

import pytest
from contradictions import STOP_SECONDS
from deployment import DOCMEMD, ROOT

SYSTEMD = ROOT / "deploy/systemd"
UNIT = (SYSTEMD / "docmemd.service").read_text()
EXPOSURE = "15"  # tenths, of 100; the unit has 13

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze: apt-get install systemd")


class Unit(configparser.RawConfigParser):
    """A unit file; of a key that comes again, the last value."""

    def __init__(self, text):
        super().__init__(strict=False)
        self.optionxform = str
        self.read_string(text)

    def seconds(self, key):
        return int(self["Service"][key].removesuffix("s"))


def analyse(folder, text, command, *options):
    """What systemd-analyze says of the unit with the program that was built."""
    unit = folder / "docmemd.service"
    unit.write_text(text.replace("/usr/bin/docmemd", str(DOCMEMD)))
    return subprocess.run(["systemd-analyze", "--no-pager", command, *options, unit],
                          capture_output=True, text=True)


def settings():
    printed = subprocess.run([DOCMEMD, "--config", SYSTEMD / "docmem.toml", "--check-config"],
                             check=True, capture_output=True, text=True, env={})
    return tomllib.loads(printed.stdout)


@needs_systemd
def test_systemd_understands_every_line(tmp_path):
    done = analyse(tmp_path, UNIT, "verify")
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_a_misspelt_key_would_be_named(tmp_path):
    done = analyse(tmp_path, UNIT.replace("RestartSec=", "RestartSecs="), "verify")
    assert "RestartSecs" in done.stderr


@needs_systemd
def test_the_unit_is_closed_up(tmp_path):
    done = analyse(tmp_path, UNIT, "security", "--offline=yes", f"--threshold={EXPOSURE}")
    assert done.returncode == 0, done.stdout


@needs_systemd
@pytest.mark.parametrize("line", ["DynamicUser=yes", "SystemCallFilter=@system-service",
                                  "CapabilityBoundingSet=", "RestrictNamespaces=yes"])
def test_an_opened_unit_would_be_refused(tmp_path, line):
    assert UNIT.count(line + "\n") == 1
    done = analyse(tmp_path, UNIT.replace(line + "\n", ""), "security", "--offline=yes",
                   f"--threshold={EXPOSURE}")
    assert done.returncode != 0


def test_the_daemon_has_time_to_drain():
    needed = settings()["drain_seconds"] + STOP_SECONDS
    assert Unit(UNIT).seconds("TimeoutStopSec") >= needed


def test_documents_go_where_the_service_may_write():
    assert settings()["data"] == f"/var/lib/{Unit(UNIT)['Service']['StateDirectory']}"


def test_a_wrong_setting_isnt_tried_again():
    refused = subprocess.run([DOCMEMD, "--drain-seconds", "-1"], capture_output=True, env={})
    assert str(refused.returncode) == Unit(UNIT)["Service"]["RestartPreventExitStatus"]
