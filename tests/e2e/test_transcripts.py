"""Transcripts (tests/transcripts/*.txt): commands and exactly what they print.

    # comment                 kept
    $ command                 run by bash in the project; stdout and stderr together
    & command                 started in the background; a session, ended with the transcript
    output
    ? 2                       the exit status, when it is not 0

What differs from run to run is written as a placeholder: ~ for the home, <ID>, <ID8> for a session,
<TIME>, <DATE>, <DURATION>, <HASH>, <UID>, <HOST>, <PID>. `--rewrite` writes what happens now.
"""

import re
import socket

import pytest

from place import ROOT, Log

FILES = sorted((ROOT / "tests" / "transcripts").glob("*.txt"))


def placeholders(text, place):
    for exact, name in ((str(place.tools.nd7), "nd7"), (str(place.home), "~"),
                        ("\0" if place.account.is_root else place.account.name, "<USER>"), (socket.gethostname(), "<HOST>")):
        text = text.replace(exact, name)
    for pattern, name in (
            (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "<ID>"),
            (r"\b[0-9a-f]{8}-[0-9a-f]{4}\b", "<ID8>"),
            (r"\b[0-9a-f]{64}\b", "<HASH>"), (r"\bkey [0-9a-f]{16}\b", "key <KEY>"),
            (r"/tmp/nd7-\d+", "/tmp/nd7-<UID>"),
            (r"\b20\d\d-\d\d-\d\dT[\d:.]+Z", "<TIME>"),
            (r"\b\d+ (entries|bytes)\b", r"<N> \1"), (r"\bentry \d+\b", "entry <N>"),
            (r"\b20\d\d-\d\d-\d\d\b", "<DATE>"),
            (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "<TIME>"), (r"\b\d\d:\d\d\b", "<TIME>"),
            (r" +\d+(\.\d+)? ?(ms|s)\b", " <DURATION>"),
            (r"\bpid \d+\b", "pid <PID>"), (r"\b(sh|bash|dash): \d+: ", r"\1: <N>: ")):
        text = re.sub(pattern, name, text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def blocks(text):
    """(head lines, command or None, rest) of a transcript."""
    found, command, kept = [], None, []
    for line in text.splitlines():
        if line.startswith(("$ ", "& ", "# ")) or (not line and command is None):
            if command is not None:
                found.append((command, kept))
                command, kept = None, []
            if line.startswith(("$ ", "& ")):
                command = line
            else:
                found.append((None, [line]))
        else:
            kept.append(line)
    if command is not None:
        found.append((command, kept))
    return found


@pytest.mark.one_account
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_transcript(place, path, request):
    written = path.read_text()
    happened = []
    for command, _ in blocks(written):
        if command is None:
            happened.append(_[0])
            continue
        happened.append(command)
        if command.startswith("& "):
            words = re.match(r"& nd7 run (.*?)-- (.*)", command)
            assert words, "only sessions run in the background: %s" % command
            place.start(words.group(2), *words.group(1).split())
            continue
        ran = place.native(["bash", "-c", "exec 2>&1; " + command[2:]])
        happened += placeholders(ran.out, place).splitlines()
        if ran.status != 0:
            happened.append("? %d" % ran.status)
        for session_id in place.session_ids():
            if not any(s.id == session_id for s in place.running):
                Log(place, session_id).settle()
    now = "\n".join(happened) + "\n"
    if request.config.getoption("--rewrite"):
        path.write_text(now)
        return
    assert now == written
