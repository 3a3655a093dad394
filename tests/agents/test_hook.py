"""`nd7 hook`: the protocol with a session, the record without one, and its promise never to fail or
to hold up its host."""

import json
import os
import resource
import socket
import subprocess
import threading
import time

import pytest

import harness

EVENT = {"session_id": "s-1", "cwd": "/p", "hook_event_name": "PreToolUse", "tool_name": "Bash",
         "tool_input": {"command": "touch x"}, "tool_use_id": "t1"}


@pytest.fixture
def state(tmp_path):
    return tmp_path / "nd7"


def hook(tmp_path, payload, agent="claude", timeout=30, **options):
    if isinstance(payload, dict):
        payload = json.dumps(payload).encode() + b"\n"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    began = time.monotonic()
    ran = subprocess.run([harness.nd7(), "hook", agent], input=payload, env=env, cwd=tmp_path,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, **options)
    return ran, time.monotonic() - began


def entries(state, session="s-1"):
    text = (state / "sessions" / session / "events.ndjson").read_bytes()
    assert text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()]


class Session(threading.Thread):
    """Plays the supervisor: takes one call and answers with `reply` (None: never answers)."""

    def __init__(self, reply, read=True):
        super().__init__(daemon=True)
        self.reply, self.read = reply, read
        self.header, self.payload = None, b""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind("\0nd7.hook.%d" % os.getuid())
        self.socket.listen(8)

    def run(self):
        connection, _ = self.socket.accept()
        self.connection = connection
        if not self.read:
            return
        file = connection.makefile("rb")
        self.header = json.loads(file.readline())
        self.payload = file.read(self.header["bytes"])
        if self.reply is not None:
            connection.sendall(self.reply)
            connection.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_hands_the_payload_to_the_session_and_prints_its_answer(tmp_path, state):
    answer = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"nd7: é\\n"}}'
    with Session((json.dumps({"print": answer}) + "\n").encode()) as session:
        payload = json.dumps(EVENT).encode() + b"\n"
        ran, _ = hook(tmp_path, payload)
    assert ran.returncode == 0
    assert ran.stdout == answer.encode() and ran.stderr == b""
    assert session.payload == payload
    assert session.header == {"v": 1, "agent": "claude", "bytes": len(payload), "ppid": os.getpid()}
    assert not state.exists()


@pytest.mark.parametrize("reply", [b"", b"{", b"{}\n", b'{"print":7}\n', b"\0\0\n", b'{"print":""}\n'])
def test_prints_nothing_when_the_answer_is_none(tmp_path, state, reply):
    with Session(reply):
        ran, _ = hook(tmp_path, EVENT)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert not state.exists()


@pytest.mark.parametrize("event, limit", [("PreToolUse", 6), ("SessionEnd", 1.9), ("Interrupt", 1.9)])
@pytest.mark.parametrize("read", [True, False])
def test_does_not_wait_for_a_session_that_does_not_answer(tmp_path, event, limit, read):
    with Session(None, read):
        payload = dict(EVENT, hook_event_name=event, tool_input={"command": "x" * 2_000_000})
        ran, seconds = hook(tmp_path, dict(sorted(payload.items())))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert limit - 1.2 < seconds < limit


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_another_users_listener_is_no_session(tmp_path, state):
    who = harness.account()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The credentials are those of the moment of listen().
    listener.bind("\0nd7.hook.0")
    os.seteuid(who.pw_uid)
    try:
        listener.listen(8)
    finally:
        os.seteuid(0)
    try:
        ran, _ = hook(tmp_path, EVENT)
        listener.setblocking(False)
        connection, _ = listener.accept()
        assert connection.recv(100) == b""
    finally:
        listener.close()
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert len(entries(state)) == 1


def test_without_a_session_it_records(tmp_path, state):
    before = time.time_ns()
    ran, _ = hook(tmp_path, EVENT)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    hook(tmp_path, dict(EVENT, hook_event_name="PostToolUse"))
    first, second = entries(state)
    assert list(first) == ["v", "session_id", "seq", "ts", "mono", "host", "source", "kind", "prev",
                           "body", "hash"]
    assert (first["kind"], second["kind"]) == ("tool_call", "tool_result")
    assert first["body"] == dict(EVENT, argv=["touch x"], hook_ppid=os.getpid())
    assert before < first["ts"] < time.time_ns()
    assert second["prev"] == first["hash"]
    meta = json.loads((state / "sessions" / "s-1" / "meta.json").read_text())
    assert meta["agent"] == "claude" and meta["agent_session"] == "s-1"
    assert meta["started_ns"] == first["ts"]
    assert (state / "sessions" / "s-1").stat().st_mode & 0o777 == 0o700


def test_fifty_at_once_leave_fifty_entries(tmp_path, state):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    running = []
    for number in range(50):
        process = subprocess.Popen([harness.nd7(), "hook", "claude"], stdin=subprocess.PIPE, env=env)
        process.stdin.write(json.dumps(dict(EVENT, tool_use_id="t%d" % number)).encode())
        running.append(process)
    for process in running:
        process.stdin.close()
    assert [process.wait(30) for process in running] == [0] * 50
    log = entries(state)
    assert [entry["seq"] for entry in log] == list(range(50))
    assert {entry["body"]["tool_use_id"] for entry in log} == {"t%d" % n for n in range(50)}
    for before, after in zip(log, log[1:]):
        assert after["prev"] == before["hash"]


@pytest.mark.parametrize("payload", [
    b"", b"\n", b"{", b"[]", b"null", b"\0" * 100, b"\xff\xfe{}", b'{"hook_event_name":"Stop"',
    b'{"hook_event_name":"Stop","hook_event_name":"Stop"}',
    b'{"hook_event_name":"Stop","a":"\\ud800"}', b'{"hook_event_name":"Stop","a":NaN}',
    b'{"hook_event_name":"Stop","a":' + b"[" * 10000 + b"]" * 10000 + b"}",
])
def test_malformed_payloads_are_recorded_as_such(tmp_path, state, payload):
    for agent in ("claude", "codex"):
        ran, _ = hook(tmp_path, payload, agent)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        entry, = entries(state, "unknown-" + agent)
        assert entry["kind"] == "hook"
        assert entry["body"]["malformed"] is True and entry["body"]["length"] == len(payload)


@pytest.mark.parametrize("session", ["../../../etc/x", "a/b", "..", "", "x" * 200, 7])
def test_a_session_id_never_becomes_a_path(tmp_path, state, session):
    hook(tmp_path, dict(EVENT, session_id=session))
    assert os.listdir(state / "sessions") == ["unknown-claude"]
    assert sorted(os.listdir(tmp_path)) == ["nd7"]


def test_huge_input_is_read_to_the_end_with_bounded_memory(tmp_path, state):
    size = 400 << 20
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    process = subprocess.Popen([harness.nd7(), "hook", "codex"], stdin=subprocess.PIPE, env=env,
                               preexec_fn=limit)
    chunk = b"x" * (1 << 20)
    for _ in range(size >> 20):
        process.stdin.write(chunk)          # would raise BrokenPipeError
    process.stdin.close()
    assert process.wait(30) == 0
    entry, = entries(state, "unknown-codex")
    assert entry["body"]["malformed"] is True
    assert len(json.dumps(entry)) < 200_000


def test_a_long_file_body_is_cut_with_its_hash(tmp_path, state):
    content = "0123456789" * 100_000
    hook(tmp_path, dict(EVENT, tool_name="Write", tool_input={"file_path": "a", "content": content}))
    body = entries(state)[0]["body"]
    assert body["tool_input"]["content"] == content[:64 << 10]
    assert body["paths"] == ["/p/a"]
    assert body["cut"][0]["at"] == "/tool_input/content"
    assert body["cut"][0]["length"] == len(content)


def test_nothing_makes_it_fail(tmp_path):
    nowhere = {"PATH": "/usr/bin", "HOME": "/nonexistent", "XDG_STATE_HOME": "/proc/nd7"}
    for arguments in (["hook"], ["hook", "nobody"], ["hook", "claude"], ["hook", "claude", "more"]):
        ran = subprocess.run([harness.nd7(), *arguments], input=json.dumps(EVENT).encode(),
                             env=nowhere, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b""), arguments
    # With stdout, stdin and stderr closed.
    closed = subprocess.run(["/bin/sh", "-c", 'exec "$0" hook claude <&- >&- 2>&-', harness.nd7()],
                            env=nowhere, timeout=30)
    assert closed.returncode == 0


def test_debug_says_what_went_wrong(tmp_path):
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": "/proc/nd7", "ND7_DEBUG": "1"}
    ran = subprocess.run([harness.nd7(), "hook", "claude"], input=json.dumps(EVENT).encode(),
                         env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert ran.stderr.startswith(b"nd7: hook: ")


def test_a_host_that_holds_the_pipe_open_is_not_waited_for(tmp_path):
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen([harness.nd7(), "hook", "claude"], stdin=subprocess.PIPE, env=env)
    began = time.monotonic()
    assert process.wait(20) == 0
    assert 4 < time.monotonic() - began < 7
    process.stdin.close()


def test_it_is_quick(tmp_path):
    def median(command):
        times = []
        for _ in range(60):
            began = time.perf_counter()
            subprocess.run(command, input=json.dumps(EVENT).encode(), stdout=subprocess.DEVNULL,
                           env={"PATH": "/usr/bin", "HOME": str(tmp_path),
                                "XDG_STATE_HOME": str(tmp_path)})
            times.append(time.perf_counter() - began)
        return sorted(times)[len(times) // 2] * 1000
    # The goal is 3 ms; the bound leaves room for a busy machine and sees a runaway all the same.
    net = median([harness.nd7(), "hook", "claude"]) - median(["/bin/true"])
    assert net < 15, "%.1f ms" % net
