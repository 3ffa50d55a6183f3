"""Nothing outside of the root is read, whatever its links say."""

import os

import pytest
from sbom_root import Root, SbomError
from sbom_testing import write


@pytest.fixture
def root(tmp_path):
    write(tmp_path, {"secret": "outside", "root/etc/name": "inside"})
    return Root(tmp_path / "root")


@pytest.mark.parametrize("target", ["/etc/name", "../etc/name", "../../../../etc/name", "./name"])
def test_a_link_starts_at_the_root_and_stays_in_it(root, tmp_path, target):
    write(tmp_path / "root", {"etc/link": f"->{target}"})
    assert root.resolve("etc/link") == "etc/name"
    assert root.text("etc/link") == "inside"


@pytest.mark.parametrize("target", ["../../secret", "{outside}/secret", "../../../../etc/passwd"])
def test_a_link_out_of_the_root_leads_nowhere(root, tmp_path, target):
    write(tmp_path / "root", {"etc/link": f"->{target.format(outside=tmp_path)}"})
    assert root.resolve("etc/link") is None
    assert root.text("etc/link") is None


def test_folders_that_are_links_are_held_to_it_too(root, tmp_path):
    write(tmp_path / "root", {"out": f"->{tmp_path}", "in": "->/etc"})
    assert root.text("out/secret") is None
    assert root.names("out") == []
    assert root.text("in/name") == "inside"
    assert root.names("in") == ["name"]


def test_dots_end_at_the_root(root):
    assert root.text("../secret") is None
    assert root.text("/../../etc/./name") == "inside"


def test_a_ring_of_links_ends(root, tmp_path):
    write(tmp_path / "root", {"a": "->b", "b": "->a", "c": "->c/c"})
    assert [root.resolve(name) for name in "abc"] == [None, None, None]


def test_only_regular_files_are_opened(root, tmp_path):
    os.mkfifo(tmp_path / "root/pipe")
    assert [root.text(name) for name in ["pipe", "etc", "absent", "etc/name/x"]] == [None] * 4


def test_a_file_that_is_too_large_is_named(root):
    assert root.text("etc/name", max_bytes=6) == "inside"
    with pytest.raises(SbomError, match="/etc/name has more than 5 bytes"):
        root.text("etc/name", max_bytes=5)


def test_a_root_that_isnt_there_is_named(tmp_path):
    with pytest.raises(SbomError, match="absent is no folder"):
        Root(tmp_path / "absent")
