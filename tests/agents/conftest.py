import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import harness


@pytest.fixture
def place():
    with harness.Place() as made:
        yield made


@pytest.fixture
def clients():
    """Tests that run the real clients ask for this."""
    if harness.agents_bin() is None:
        pytest.skip("the clients are not installed: npm ci in tests/agents")
