"""Fixtures of the end-to-end tests.

    ND7=build/dev/bin/nd7 python3 -m pytest tests/e2e          both accounts, about ten minutes
    ... --account user -k credentials                          one account, some tests
    ND7_RACE_SECONDS=60 ...                                    longer races (default 3)

ND7 is the program under test; without it, the dev preset's.
"""

import os
import pwd
import shutil
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import place as places  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--account", choices=["root", "user", "both"], default="both")
    parser.addoption("--rewrite", action="store_true", help="rewrite the transcripts")


def end_tidily(*_):
    raise KeyboardInterrupt("ended by SIGTERM")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, end_tidily)  # fixtures end what they started, users go
    config.addinivalue_line("markers", "native: does not need nd7, checks the tests themselves")
    config.addinivalue_line("markers", "one_account: once, as the ordinary user where there is one")


def pytest_generate_tests(metafunc):
    if "account" not in metafunc.fixturenames:
        return
    wanted = metafunc.config.getoption("--account")
    kinds = ["root", "user"] if os.geteuid() == 0 else ["user"]
    if wanted != "both":
        kinds = [k for k in kinds if k == wanted]
    if metafunc.definition.get_closest_marker("one_account"):
        kinds = kinds[-1:]
    metafunc.parametrize("account", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def tools():
    tools = places.Tools()
    yield tools
    tools.remove()


@pytest.fixture(scope="session")
def ordinary_user():
    if os.geteuid() != 0:
        entry = pwd.getpwuid(os.geteuid())
        home = Path(entry.pw_dir) / ("nd7-e2e-%d" % os.getpid())
        yield entry, home
        shutil.rmtree(home, ignore_errors=True)
        return
    name = places.make_user()
    yield pwd.getpwnam(name), Path(pwd.getpwnam(name).pw_dir)
    places.remove_user(name)


@pytest.fixture(scope="session")
def account(request):
    if request.param == "root":
        home = Path("/home/nd7e2e-root-%d" % os.getpid())
        yield places.Account("root", pwd.getpwuid(0), home)
        shutil.rmtree(home, ignore_errors=True)
    else:
        entry, home = request.getfixturevalue("ordinary_user")
        yield places.Account("user", entry, home)


@pytest.fixture
def bare_place(account, tools):
    """A place for tests that check themselves natively: nothing is asserted at its end."""
    place = places.Place(account, tools)
    yield place
    place.close()


@pytest.fixture
def place(account, tools):
    """A place with everything that must hold after any session: the home is as before, and every
    log verifies."""
    if tools.nd7 is None:
        pytest.fail("no nd7 at %s: build it, or set ND7" % places.nd7_source())
    place = places.Place(account, tools)
    with place.bystander():
        yield place
        place.close()
    changed = place.changed()
    assert not changed, "changed outside the project:\n" + "\n".join(changed)
    if place.session_ids():
        verified = place.nd7("verify", "--all")
        assert verified.status == 0, verified


@pytest.fixture
def race_seconds():
    return float(os.environ.get("ND7_RACE_SECONDS", "3"))
