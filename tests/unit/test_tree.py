"""What must hold for the files under version control."""

import os
import re
import subprocess

import pytest

from tree import ROOT, program, tracked

# Written in pieces, so that this file does not find itself.
HOSTS = [r"registry\." + r"npmjs\.org", r"registry\." + r"yarnpkg\.com", r"files\." + r"pythonhosted",
         r"pypi\." + r"org", r"deb\." + r"debian\.org", r"(index|static)\." + r"crates\.io",
         r"proxy\." + r"golang\.org", r"repo\d?\." + r"maven", r"https?://[\w.-]*" + r"artifact"]
PLACES = [r"(?<![\w./~-])/wo" + r"rk/(main|shared)\b", r"/tmp/" + r"npm\b", r"/tmp/build-" + r"\w",
          r"/root/\.pye" + r"nv"]


def texts():
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            yield path, data.decode(errors="replace")


def found(patterns, but=()):
    expression = re.compile("|".join(patterns))
    return [f"{path.relative_to(ROOT)}:{number}: {match[0]}"
            for path, text in texts() if path.relative_to(ROOT).as_posix() not in but
            for number, line in enumerate(text.splitlines(), 1)
            if (match := expression.search(line))]


def test_there_are_files():
    assert len(list(texts())) > 50


def test_names_no_package_registry():
    # The relay's and the policy's own examples may name hosts that agents really use; a registry
    # that we install from is named nowhere, so that mirrors work.
    assert not found(HOSTS)


def test_names_no_path_of_a_developers_machine():
    assert not found(PLACES)


def test_scripts_are_executable():
    wrong = [str(path.relative_to(ROOT)) for path, text in texts()
             if text.startswith("#!") and not os.access(path, os.X_OK)]
    assert not wrong


def test_no_file_has_conflict_marks():
    assert not found([r"^(<<<<<<<|>>>>>>>) "])


def test_sources_are_of_a_readable_size():
    """A unit is read in one sitting; tables may be longer."""
    tables = {"src/gate/legacy_numbers.h", "src/gate/syscalls.def", "src/core/credential_table.cc"}
    long = [f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines" for path, text in texts()
            if path.suffix in (".cc", ".h", ".def") and text.count("\n") > 700
            and path.relative_to(ROOT).as_posix() not in tables]
    assert not long


# ---- the pages

def links(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if not re.match(r"[a-z]+:|#", target):
            yield target.split("#")[0]


PAGES = sorted(path for path in tracked() if path.suffix == ".md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert [target for target in links(page) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_source_files_named_in_a_page_exist(page):
    folders = "|".join(each.name for each in (ROOT / "src").iterdir() if each.is_dir())
    named = re.findall(rf"`((?:src/)?(?:{folders})/[\w/]+\.(?:cc|h|def))`", page.read_text())
    missing = [name for name in named if not (ROOT / "src" / name.removeprefix("src/")).exists()]
    assert missing == []


def commands_in(page):
    """Words after `nd7` in code of a page: fenced blocks and inline code."""
    text = page.read_text()
    code = re.findall(r"```[^\n]*\n(.*?)```", text, re.S)
    code += re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    for piece in code:
        for line in piece.splitlines():
            if found := re.match(r"\s*(?:\$ )?nd7 ([a-z][a-z-]*)", line):
                yield found[1]


def known_commands():
    help_text = subprocess.run([program(), "--help"], capture_output=True, text=True,
                               check=True).stdout
    listed = help_text.split("commands:")[1].split("\n\n")[0]
    return set(re.findall(r"^  ([a-z-]+) ", listed, re.M)) | {"help", "hook"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "HACKING.md"])
def test_every_command_in_a_first_page_exists(name):
    used = set(commands_in(ROOT / name))
    if name == "README.md":
        assert "run" in used
    assert used <= known_commands()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "HACKING.md", "docs/README.md"])
def test_programs_of_the_tree_named_in_a_page_are_there(name):
    text = (ROOT / name).read_text()
    for tool in set(re.findall(r"(?<![\w/.])(\./(?:try|test)|(?:tools|bench|\.ci)/[a-z]+)\b", text)):
        assert os.access(ROOT / tool, os.X_OK), f"{name} names {tool}"
