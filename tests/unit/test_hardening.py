"""What the shipped program was built with, read from the file itself."""

import re
import subprocess

import pytest

from tree import program


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, program()], capture_output=True, text=True,
                          check=True).stdout


def test_is_position_independent():
    assert re.search(r"^\s*Type:\s+DYN\b", readelf("-h"), re.M)
    assert re.search(r"\(FLAGS_1\).*\bPIE\b", readelf("-d"))


def test_relocations_are_read_only_and_bound_at_start():
    assert re.search(r"^\s*GNU_RELRO\b", readelf("-l"), re.M)
    dynamic = readelf("-d")
    assert re.search(r"\(FLAGS\).*\bBIND_NOW\b", dynamic) or "(BIND_NOW)" in dynamic
    assert re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic)
    assert "(TEXTREL)" not in dynamic


def test_stack_and_segments_are_not_both_writable_and_executable():
    segments = readelf("-l")
    flags = re.findall(r"^\s*(LOAD|GNU_STACK)\s+(?:0x\w+\s+){5}([RWE ]{3})", segments, re.M)
    assert any(kind == "GNU_STACK" for kind, _ in flags)
    for kind, each in flags:
        assert not ("W" in each and "E" in each), f"{kind} is {each}"
    stack = [each for kind, each in flags if kind == "GNU_STACK"]
    assert "E" not in stack[0]


@pytest.mark.parametrize("symbol, option", [
    (r"__\w+_chk\b", "_FORTIFY_SOURCE"),
    (r"__stack_chk_fail\b", "-fstack-protector-strong"),
])
def test_checks_are_compiled_in(symbol, option):
    assert re.search(r"UND\s+" + symbol, readelf("--dyn-syms")), f"no trace of {option}"


def test_branch_targets_are_marked():
    """Functions begin with endbr64. The note that says so is missing, because Debian's crt1.o has
    none, so the kernel does not enforce it; a libc that is built for it would."""
    if "x86-64" not in readelf("-h").lower():
        pytest.skip("-fcf-protection is of x86")
    assert program().read_bytes().count(b"\xf3\x0f\x1e\xfa") > 500


def test_loads_nothing_by_a_path_of_its_own():
    """A RUNPATH would let whoever can write there run code in the supervisor."""
    dynamic = readelf("-d")
    assert "(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic


def test_does_not_carry_the_path_it_was_built_in():
    from tree import ROOT
    assert str(ROOT).encode() + b"/src/" not in program().read_bytes()
