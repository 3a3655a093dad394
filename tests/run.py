"""Runs nd7's tests and sums what every runner counted; started by ./test.

Each step says what it runs and how long it took. The last line is `N passed, N failed, N skipped`
and the exit status is 1 when anything failed. A runner that ran no test has failed.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("ND7_BUILD", ROOT / "build"))
CORES = os.cpu_count() or 2
SUITES = ("unit", "e2e", "net", "agents")  # folders of tests/ that pytest runs
RACY = ("base", "os", "session", "net", "gate")  # folders whose code runs in several threads
FUZZ_SECONDS_ALL = 60


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def __add__(self, other):
        return Count(self.passed + other.passed, self.failed + other.failed,
                     self.skipped + other.skipped)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def ran(self):
        return self.passed + self.failed + self.skipped


def say(text):
    print(text, flush=True)


def run(command, limit_s, quiet=False, **options):
    """The exit status; 124 when the time was over. Output goes to ours unless `quiet`: then it is
    kept and shown only when the command fails."""
    words = [str(word) for word in command]
    say("  $ " + " ".join(words).replace(str(ROOT) + "/", ""))
    kept = tempfile.TemporaryFile() if quiet else None
    # A session of its own, so that all it started can be ended and nothing else.
    child = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True,
                             stdout=kept, stderr=subprocess.STDOUT if quiet else None, **options)
    try:
        status = child.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        say(f"  ended after {limit_s} s")
        status = 124
    except KeyboardInterrupt:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    if kept:
        if status != 0:
            kept.seek(0)
            say(kept.read().decode(errors="replace")[-20000:])
        kept.close()
    return status


def tracked(*patterns):
    """Paths under version control, or all of them where this is no clone."""
    git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--", *patterns]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.decode().split("\0")
                if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and BUILD not in path.parents and
            any(fnmatch(path.relative_to(ROOT).as_posix(), pattern) for pattern in patterns)]


def configure(preset, *more):
    options = []
    if shutil.which("ccache"):
        options += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    return run(["cmake", "--preset", preset, "-B", BUILD / preset, *options, *more], 300, quiet=True)


def build(preset, *more, targets=(), limit_s=2400):
    if configure(preset, *more) != 0:
        return False
    return run(["ninja", "--quiet", "-C", BUILD / preset, *targets], limit_s, quiet=True) == 0


# ---- C++ unit tests

def gtest_counts(directory):
    """Cases of each gtest program, by its name, from the XML that it wrote."""
    counts = {}
    for path in directory.glob("*.xml"):
        suites = ElementTree.parse(path).getroot()
        total = int(suites.get("tests", 0))
        failed = int(suites.get("failures", 0)) + int(suites.get("errors", 0))
        skipped = len(suites.findall(".//testcase/skipped")) + int(suites.get("disabled", 0))
        name = re.sub(r"(_\d+)?\.xml$", "", path.name)
        counts[name] = counts.get(name, Count()) + Count(total - failed - skipped, failed, skipped)
    return counts


def scratch():
    """A directory for many small short-lived files: in memory where there is room, since a disk
    that is trimmed at each removal makes some tests a hundred times slower."""
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    return Path(tempfile.mkdtemp(prefix="nd7-tests-", dir=memory if roomy else None))


def ctest(preset, only=None, limit_s=900):
    """All tests that ctest knows; the cases of a gtest program are counted one by one."""
    results = scratch()
    command = ["ctest", "--test-dir", BUILD / preset, "--output-on-failure", "--timeout", "300",
               "--no-tests=error", "--output-junit", results / "ctest.xml"]
    if only:
        command += ["-R", only]
    for name in ("gtest", "tmp"):
        (results / name).mkdir()
    status = run(command, limit_s, env=dict(os.environ, TMPDIR=str(results / "tmp"),
                                            GTEST_OUTPUT=f"xml:{results}/gtest/"))
    count = Count()
    if (results / "ctest.xml").exists():
        cases = gtest_counts(results / "gtest")
        for test in ElementTree.parse(results / "ctest.xml").getroot().iter("testcase"):
            state = test.get("status")
            inside = cases.get("test_" + test.get("name").removeprefix("unit_"), Count())
            skipped = test.find("skipped")
            if state == "notrun" and "SKIP" in (skipped.get("message") if skipped is not None else ""):
                inside = Count(skipped=1)
            elif state not in ("run", "fail"):
                inside = Count(failed=1)  # a program that was not built is no reason to skip
            elif not inside.ran():
                inside = Count(passed=1) if state == "run" else Count(failed=1)
            elif state == "fail" and not inside.failed:
                inside += Count(failed=1)  # a sanitizer's or a crash's word after the last case
            count += inside
    shutil.rmtree(results, ignore_errors=True)
    if status != 0 and not count.failed:
        count += Count(failed=1)
    return count


def step_dev():
    return ctest("dev") if build("dev") else Count(failed=1)


def step_asan():
    return ctest("asan", limit_s=1800) if build("asan") else Count(failed=1)


def step_tsan():
    folders = [name for name in RACY if list((ROOT / "src" / name).glob("*_test.cc"))]
    if not build("tsan", targets=[f"test_{name}" for name in folders]):
        return Count(failed=1)
    return ctest("tsan", only=f"^unit_({'|'.join(folders)})$", limit_s=1800)


def step_release():
    """The program as it ships; the suites below run it."""
    return Count(passed=1) if build("release", "-DND7_TESTS=OFF") else Count(failed=1)


# ---- looks at the source

def step_format():
    """clang-format over every C++ file."""
    count = Count()
    for path in tracked("*.cc", "*.h"):
        looked = subprocess.run(["clang-format-14", "--dry-run", "--Werror", path], cwd=ROOT,
                                capture_output=True, text=True)
        if looked.returncode == 0:
            count += Count(passed=1)
        else:
            say(f"  clang-format-14 -i {path.relative_to(ROOT)}")
            count += Count(failed=1)
    return count


def step_tidy():
    """clang-tidy over the program; .clang-tidy names the checks."""
    if configure("tidy", "-DCMAKE_CXX_CLANG_TIDY=") != 0:
        return Count(failed=1)
    compiled = {entry["file"] for entry in
                json.loads((BUILD / "tidy" / "compile_commands.json").read_text())}
    files = [path for path in tracked("src/*.cc")
             if str(path) in compiled]

    def one(path):
        return path, subprocess.run(["clang-tidy-19", "--quiet", "-p", BUILD / "tidy", path],
                                    cwd=ROOT, capture_output=True, text=True, timeout=300)
    count = Count()
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        for path, result in pool.map(one, files):
            if result.returncode == 0:
                count += Count(passed=1)
            else:
                say(result.stdout or result.stderr)
                count += Count(failed=1)
    return count


def step_fuzz():
    """Each fuzzer over its corpus and then for a few seconds on its own inputs."""
    sources = sorted((ROOT / "tests" / "fuzz").glob("*.cc"))
    if not build("fuzz", targets=[f"fuzz_{source.stem}" for source in sources]):
        return Count(failed=1)
    programs = {path.name.removeprefix("fuzz_"): path for path in BUILD.glob("fuzz/**/fuzz_*")
                if path.is_file() and os.access(path, os.X_OK)}
    count = Count()
    seconds = max(2, FUZZ_SECONDS_ALL // max(1, len(sources)))
    for source in sources:
        if source.stem not in programs:
            say(f"  {source.stem}: the build has no fuzz_{source.stem}")
            count += Count(failed=1)
            continue
        with tempfile.TemporaryDirectory(prefix="nd7-fuzz-") as scratch:
            kept = ROOT / "tests" / "fuzz" / "corpus" / source.stem
            command = [programs[source.stem], f"-max_total_time={seconds}", "-timeout=10",
                       f"-artifact_prefix={scratch}/", scratch]
            if kept.is_dir():
                command.append(kept)
            status = run(command, seconds + 60, quiet=True)
            count += Count(passed=1) if status == 0 else Count(failed=1)
    return count


# ---- pytest

def pytest(suite, limit_s, *more, **variables):
    folder = ROOT / "tests" / suite
    if not list(folder.rglob("test_*.py")):
        say(f"  tests/{suite} holds no test yet")
        return Count(skipped=1)
    program = BUILD / "release" / "bin" / "nd7"
    if not program.exists():
        say(f"  no {program}: the release build failed")
        return Count(failed=1)
    handle, junit = tempfile.mkstemp(prefix="nd7-pytest-", suffix=".xml")
    os.close(handle)
    status = run(["/usr/bin/python3", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                  "--timeout", "300", "-o", "junit_family=xunit2", f"--junitxml={junit}",
                  *more, folder], limit_s,
                 env=dict(os.environ, ND7=str(program), PYTHONDONTWRITEBYTECODE="1", **variables))
    count = Count()
    if os.path.getsize(junit):
        for each in ElementTree.parse(junit).getroot().iter("testsuite"):
            failed = int(each.get("failures")) + int(each.get("errors"))
            skipped = int(each.get("skipped"))
            count += Count(int(each.get("tests")) - failed - skipped, failed, skipped)
    os.unlink(junit)
    if status != 0 and not count.failed:
        count += Count(failed=1)
    return count


def step_unit():
    return pytest("unit", 600)


def step_e2e():
    return pytest("e2e", 1500)


def step_net():
    return pytest("net", 900)


def step_agents():
    """The real clients, at the versions that tests/agents/package-lock.json pins."""
    folder = ROOT / "tests" / "agents"
    if not list(folder.glob("test_*.py")):
        say("  tests/agents holds no test yet")
        return Count(skipped=1)
    variables = {}
    if not os.environ.get("ND7_AGENTS"):
        stamp = folder / "node_modules" / ".package-lock.json"
        lock = folder / "package-lock.json"
        if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
            if run(["npm", "ci", "--prefix", folder, "--no-audit", "--no-fund"], 600, quiet=True):
                say("  the clients could not be installed")
                return Count(failed=1)
        variables["ND7_AGENTS"] = str(folder / "node_modules" / ".bin")
    return pytest("agents", 1200, **variables)


FULL = ("format", "dev", "release", "unit", "e2e", "agents", "net", "asan", "tsan", "fuzz", "tidy")
QUICK = ("format", "dev", "release", "unit", "e2e", "net")


def main():
    parser = argparse.ArgumentParser(prog="./test", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE",
                        help=f"only these, one or more of: {', '.join(FULL)}")
    parser.add_argument("--quick", action="store_true",
                        help="without agents, sanitizers, fuzzers and clang-tidy")
    options = parser.parse_args()
    for name in options.suites:
        if name not in FULL:
            parser.error(f"no suite '{name}'; there are {', '.join(FULL)}")
    names = options.suites or (QUICK if options.quick else FULL)
    if set(names) & set(SUITES) and "release" not in names:
        names = ["release", *names]  # what the suites run

    total, lines, started = Count(), [], time.monotonic()
    for name in names:
        say(f"== {name}")
        begun = time.monotonic()
        count = globals()["step_" + name]()
        if not count.ran():
            say("  no test ran")
            count = Count(failed=1)
        total += count
        lines.append(f"  {name:<8} {time.monotonic() - begun:6.0f} s  {count}")
        say(lines[-1])
    say(f"== all, {time.monotonic() - started:.0f} s")
    for line in lines:
        say(line)
    say(str(total))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
