"""Which folder of src/ may include which: the arrows of docs/architecture.md."""

import re

import pytest

from tree import ROOT

ARROWS = {
    "base": {"base"},
    "core": {"base"},
    "os": {"core", "base"},
    "session": {"os", "core", "base"},
    "net": {"session", "os", "core", "base"},
    "gate": {"net", "session", "os", "core", "base"},
    "agents": {"core", "base"},
    "view": {"core", "base"},
    "cli": {"agents", "view", "gate", "net", "session", "os", "core", "base"},
}

WHY = """
Dependencies point one way: cli -> agents, view, gate, session, core; gate -> net, session, os,
core; net -> session, os, core; session -> os, core; agents -> core; view -> core; os -> core
(values only) and base; core -> base; base -> nothing. The trust question of this program is "which
code can touch the machine", and the answer is a folder: whoever has read os/, gate/, net/ and
core/policy.cc knows the cage. What is left can be wrong about a session but cannot let one out.
agents/ and view/ take values and return values, so they and core/ compile and are tested anywhere.
If you need the new arrow, the piece you reach for probably belongs one layer down."""

FOLDERS = sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir())


def sources(folder):
    return sorted(path for path in (ROOT / "src" / folder).rglob("*")
                  if path.suffix in (".h", ".cc", ".def"))


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line):
            yield number, found[1], found[2]


@pytest.mark.parametrize("folder", FOLDERS)
def test_includes_follow_the_arrows(folder):
    assert folder in ARROWS, f"src/{folder} is new: give it a row in ARROWS.{WHY}"
    allowed = ARROWS[folder] | {folder}
    wrong, seen = [], 0
    for path in sources(folder):
        for number, quote, name in includes(path):
            if quote != '"':
                continue
            seen += 1
            target = name.split("/")[0]
            if not (ROOT / "src" / name).is_file():
                wrong.append(f"{path.relative_to(ROOT)}:{number}: \"{name}\" is not written from src/")
            elif target not in allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{number}: new arrow {folder} -> {target}")
    assert seen, f"src/{folder} includes nothing of ours?"
    assert not wrong, "\n".join(wrong) + WHY


@pytest.mark.parametrize("folder", ["core", "agents", "view"])
def test_pure_folders_know_no_kernel(folder):
    """No <linux/*> and no <sys/*>; the tests of a folder may use what they like."""
    wrong = [f"{path.relative_to(ROOT)}:{number}: <{name}>"
             for path in sources(folder) if not path.name.endswith("_test.cc")
             for number, quote, name in includes(path)
             if quote == "<" and name.startswith(("linux/", "sys/", "asm/"))]
    assert not wrong, f"src/{folder} is pure: it compiles and is tested on any machine\n" + \
        "\n".join(wrong)


def test_cmake_links_are_the_same_arrows():
    """A folder that links another without an arrow would hide the next wrong include."""
    text = (ROOT / "src" / "CMakeLists.txt").read_text()
    rows = dict(re.findall(r"^nd7_folder\((\w+)([^)]*)\)", text, re.M))
    assert set(rows) == set(ARROWS) == set(FOLDERS)
    for folder, libraries in rows.items():
        linked = set(re.findall(r"\bnd7_(\w+)", libraries))
        assert linked <= ARROWS[folder], f"{folder} links {linked - ARROWS[folder]}"
