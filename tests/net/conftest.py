import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import world as world_module  # noqa: E402


@pytest.fixture
def make_world(tmp_path):
    """World(**options), taken down at the end of the test."""
    reason = world_module.skip_reason()
    if reason:
        pytest.skip(reason)
    made = []

    def make(**options):
        one = world_module.World(tmp_path / str(len(made)), **options)
        one.__enter__()
        made.append(one)
        return one

    yield make
    for one in made:
        one.__exit__(None, None, None)
