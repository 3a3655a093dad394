"""Where the source is and what of it is under version control."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def program():
    """The nd7 under test, as ./test built it."""
    path = Path(os.environ["ND7"])
    assert path.is_file(), f"{path}: build the release preset"
    return path


def tracked():
    """Files under version control; of a source archive, all but builds."""
    git = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
                         cwd=ROOT, capture_output=True)
    if git.returncode == 0:
        names = [ROOT / name for name in git.stdout.decode().split("\0") if name]
    else:
        names = [path for path in ROOT.rglob("*") if not
                 {"build", "node_modules", ".git", "__pycache__"} & set(path.relative_to(ROOT).parts)]
    return [path for path in names if path.is_file() and not path.is_symlink()]
