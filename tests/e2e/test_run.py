"""`nd7 run` as a command: exit status, environment, descriptors, refusals at start, its log."""

import json
import os
import signal
import subprocess
import time

import pytest

from judge import STILL, judge
from place import ROOT, Log, descendants, processes_of, wait_for

# The policy file is a unit of its own; its tests wake up with it.
needs_policy_file = pytest.mark.skipif(not (ROOT / "src/core/policy_text.cc").exists(),
                                       reason="the policy file is not built yet")



@pytest.mark.parametrize("status", [0, 1, 2, 77, 124, 255])
def test_status_is_the_programs(place, status):
    assert place.run("exit %d" % status).status == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP])
def test_status_of_a_signal(place, number):
    """128+n, as the shell says of a program that ended so."""
    ran = place.native(["sh", "-c", "%s run -- sh -c 'kill -%d $$'; echo $?" %
                        (place.tools.nd7, number)])
    assert ran.out.split()[-1] == str(128 + number), ran


def test_not_found_is_127(place):
    ran = place.run(["no-such-program-here"])
    assert ran.status == 127 and "no-such-program-here" in ran.err, ran
    assert ran.session is None


def test_not_executable_is_126(place):
    place.write("project/plain", "text\n", 0o644)
    assert place.run(["./plain"]).status == 126


def test_wrong_usage_is_125(place):
    for arguments in (["run"], ["run", "--no-such-option", "true"], ["run", "--port", "x", "true"]):
        ran = place.nd7(*arguments)
        assert ran.status == 125 and ran.err.startswith("nd7"), (arguments, ran)


def test_options_of_the_program_are_its_own(place):
    ran = place.nd7("run", "echo", "--help", "--allow", "x")
    assert ran.out == "--help --allow x\n", ran


def test_streams_pass_through(place):
    ran = place.run("cat; echo error >&2", stdin="in\u00fct\n")
    assert ran.out == "in\u00fct\n" and "error\n" in ran.err


def test_arguments_and_directory_are_kept(place):
    ran = place.run(["python3", "-c", "import sys, os; print(sys.argv[1:], os.getcwd())",
                     "", "a b", "\n", "--", "$HOME"])
    assert ran.out == "%r %s\n" % (["", "a b", "\n", "--", "$HOME"], place.project), ran


def test_quiet_when_nothing_was_refused(place):
    ran = place.run("true")
    assert ran.status == 0 and ran.out == ""
    # a word about what cannot be enforced here is all that may be said
    assert all("not enforced" in line for line in ran.err.splitlines()), ran


def test_an_agent_without_hooks_gets_a_line_on_stderr(place):
    ran = place.run("echo x > ~/canary.txt; true")
    assert "canary.txt" in ran.err and "nd7 allow" in ran.err and "nd7:" in ran.err, ran


def test_refusal_is_told_when_the_pipe_hides_it(place):
    """The failing program's own stderr is gone; the person still hears of it at the end."""
    ran = place.run("touch ~/nd7-test 2>/dev/null | cat; true")
    assert "nd7: 1 distinct thing was refused" in ran.err, ran


def test_explain_starts_nothing(place):
    ran = place.nd7("run", "--explain", "--allow", place.home / "data", "--", "touch", "made")
    assert ran.status == 0 and "~/project" in ran.out and "~/data" in ran.out, ran
    assert not (place.project / "made").exists()
    assert place.session_ids() == set()


@needs_policy_file
@pytest.mark.parametrize("text,where", [
    ("[files]\nwrit = []\n", ":2:"), ("[files]\nwrite = [3]\n", ":2:"),
    ("[files]\ndeny_read = [\"a[\"]\n", ":2:"), ("[nonsense]\n", ":1:"), ("[files\n", ":1:"),
])
def test_errors_of_the_policy_file_stop_the_start(place, text, where):
    place.write(".config/nd7/policy.toml", text)
    ran = place.run(["true"])
    assert ran.status == 125 and "policy.toml" in ran.err and where in ran.err, ran


@needs_policy_file
def test_policy_file_is_obeyed(place):
    place.write(".config/nd7/policy.toml",
                "[files]\nwrite = [\"~/data\"]\ndeny_write = [\"**/migrations/\"]\n"
                "[env]\npass = [\"GITHUB_TOKEN\"]\n")
    place._directory(place.project / "db" / "migrations")
    place.expect_changes("data")
    ran = place.run("echo x > ~/data/f; echo x > db/migrations/1.sql; echo $GITHUB_TOKEN" + STILL,
                    env={"GITHUB_TOKEN": "from-policy"})
    judge(ran, [place.project / "db/migrations/1.sql"])
    assert (place.home / "data/f").read_text() == "x\n" and "from-policy" in ran.out


@needs_policy_file
def test_project_policy_only_narrows(place):
    place.write("project/.nd7.toml", "[files]\nwrite = [\"~/data\"]\ndeny_write = [\"keep/\"]\n")
    place._directory(place.project / "keep")
    ran = place.run("echo x > ~/data/f; echo x > keep/f; echo x >> .nd7.toml" + STILL)
    if ran.status == 125:  # refusing to start on a file that widens is as good
        assert ".nd7.toml" in ran.err
        return
    judge(ran, [place.home / "data/f", place.project / "keep/f", place.project / ".nd7.toml"])


def test_descriptors_above_2_are_closed(place):
    script = ("exec 5<~/.bashrc 6>~/made; %s run -- sh -c 'ls /proc/self/fd | wc -l; "
              "readlink /proc/self/fd/5 /proc/self/fd/6; echo x >&6'; true" % place.tools.nd7)
    place.expect_changes("made")
    ran = place.native(["bash", "-c", script])
    assert ran.out.split() == ["4"], ran  # 0, 1, 2 and the one of ls
    log = Log(place, place.session_ids().pop())
    assert len(log.entries("start")[0]["body"]["fds_closed"]) == 2


def test_standard_streams_that_are_closed(place):
    """A closed stream must not become the first file that is opened."""
    ran = place.native(["bash", "-c", "%s run -- sh -c 'exec 3>made; ls -l /proc/self/fd/' <&- >&2"
                        % place.tools.nd7])
    assert ran.status in (0, 125), ran


def test_datagram_socket_as_stream_is_refused(place):
    import socket
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    process = place.popen([place.tools.nd7, "run", "--", "true"], stdin=a,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 125 and "socket" in err, err


def test_umask_limits_and_nice_are_kept(place):
    ask = "umask; ulimit -n; ulimit -c; nice"
    native = place.native(["bash", "-c", "umask 027; ulimit -n 200; ulimit -c 0; nice -n3 bash -c '%s'"
                           % ask])
    inside = place.native(["bash", "-c", "umask 027; ulimit -n 200; ulimit -c 0; nice -n3 %s run -- "
                           "bash -c '%s'" % (place.tools.nd7, ask)])
    assert inside.out == native.out, (inside, native)


def test_signal_dispositions_are_kept(place):
    ask = "import signal; print([int(signal.getsignal(n) == signal.SIG_IGN) for n in range(1, 32)])"
    native = place.native(["bash", "-c", "trap '' USR1 HUP; python3 -c '%s'" % ask])
    inside = place.native(["bash", "-c", "trap '' USR1 HUP; %s run -- python3 -c '%s'" %
                           (place.tools.nd7, ask)])
    assert inside.out == native.out, (inside, native)


def test_background_processes_end_with_the_session(place):
    """A server started in the background, also one that forked twice into a session of its own, is
    gone when the session is over; and it is on record."""
    before = processes_of(place.account.uid)
    ran = place.run("sleep 300 & setsid sleep 301 & (setsid sh -c 'sleep 302 & sleep 303' &) ; "
                    "sleep 0.3; echo started")
    assert ran.out == "started\n"
    def left():
        return [p for p in processes_of(place.account.uid) - before
                if b"sleep\0" in read(p)]
    def read(pid):
        try:
            return open("/proc/%d/cmdline" % pid, "rb").read()
        except OSError:
            return b""
    wait_for(lambda: not left(), 5, lambda: "the end of %r" % [read(p) for p in left()])


def test_log_of_a_small_session(place):
    ran = place.run("echo hello > f; mkdir d; mv f d/g; ln -s g d/l; chmod 600 d/g; rm d/l; "
                    "cat README >/dev/null; python3 -c pass; exit 3")
    assert ran.status == 3
    entries = ran.session.entries()
    assert [e["seq"] for e in entries] == list(range(len(entries)))
    assert entries[0]["kind"] == "start" and "end" in [e["kind"] for e in entries[-3:]]
    for entry in entries:
        assert list(entry) == ["v", "session_id", "seq", "ts", "mono", "host", "source", "kind",
                               "prev", "body", "hash"], entry
        assert entry["v"] == 1 and entry["session_id"] == ran.session.id
    assert all(b["prev"] == a["hash"] for a, b in zip(entries, entries[1:]))
    bodies = {}
    for entry in entries:
        bodies.setdefault(entry["kind"], []).append(entry["body"])
        if entry["source"] == "effect:kernel":
            for member in ("pid", "start", "op", "result", "call", "join", "how"):
                assert member in entry["body"], entry
    p = str(place.project)
    assert [b for b in bodies["write"] if b["path"] == p + "/f" and b["mode"] == "created"]
    assert [b for b in bodies["mkdir"] if b["path"] == p + "/d"]
    assert [b for b in bodies["rename"] if b["from"] == p + "/f" and b["to"] == p + "/d/g"]
    assert [b for b in bodies["symlink"] if p + "/d/l" in (b.get("to"), b.get("path"), b.get("from"))]
    assert [b for b in bodies["meta"] if b["path"] == p + "/d/g"]
    assert [b for b in bodies["remove"] if b["path"] == p + "/d/l"]
    assert [b for b in bodies["read"] if b["path"] == p + "/README"]
    assert [b for b in bodies["exec"] if b["argv"][:2] == ["python3", "-c"]]
    assert bodies["exit"], "exits are on record"
    assert "refused" not in bodies


def test_sessions_says_ended_at_once(place):
    """No settling: when `nd7 run` has returned, its session is over."""
    for _ in range(5):
        assert place.nd7("run", "true").status == 0
        rows = place.nd7("sessions", "--json").json()
        assert {r["state"] for r in rows} == {"ended"}, rows


def test_sessions_lists_it(place):
    ran = place.run("true")
    rows = place.nd7("sessions", "--json").json()
    assert [r["id"] for r in rows] == [ran.session.id] and rows[0]["state"] == "ended"
    assert rows[0]["project"] == str(place.project)
    assert place.nd7("show", ran.session.id[:20]).status == 0


def test_lying_names_are_one_entry_each(place):
    """LG12, LG13: newlines, quotes, bytes that are no UTF-8."""
    ran = place.run(["python3", "-c", r"""
import os
for name in (b'a\n{"kind":"end"}', b'q"\\t\t', b'\xff\xfe', b'\xed\xa0\x80', b'x' * 255):
    open(name, 'w').close()
    try: open(os.path.expanduser('~').encode() + b'/' + name, 'w')
    except PermissionError: pass
"""])
    assert ran.status == 0, ran
    assert len(ran.session.refused()) == 5
    written = [e["body"] for e in ran.session.entries("write")]
    assert len([b for b in written if b.get("mode") == "created" and
                "pycache" not in str(b.get("path"))]) == 5, written
    assert any("path_b64" in b for b in written)
    assert ran.session.verify().status == 0
    shown = place.nd7("show", ran.session.id)
    assert shown.status == 0 and '\n{"kind"' not in shown.out


def test_one_flipped_byte_is_found(place):
    ran = place.run("echo x > f")
    log = ran.session.directory / "events.ndjson"
    data = bytearray(log.read_bytes())
    position = data.index(b'"created"') + 2
    data[position] ^= 1
    log.write_bytes(bytes(data))
    verified = ran.session.verify()
    assert verified.status == 1, verified
    data[position] ^= 1
    log.write_bytes(bytes(data))
    assert ran.session.verify().status == 0


def test_log_is_closed_from_inside(place):
    """LG01: the own log and directory cannot be touched or read."""
    ran = place.run("for f in ~/.local/state/nd7/sessions/$(basename $TMPDIR)/events.ndjson; do "
                    "echo x >> $f; truncate -s0 $f; rm -f $f; mv $f $f.x; chmod 0 $f; cat $f | head -c 5; done; "
                    "rm -rf ~/.local/state/nd7; mv ~/.local ~/x; mv ~/.local/state ~/.local/s; "
                    "touch ~/.local/state/nd7/keys/x; ls ~/.local/state/nd7/keys" + STILL)
    judge(ran, [ran.session.directory / "events.ndjson", place.state, place.state / "keys"])


def test_supervisor_killed_ends_everything(place):
    """SIGKILL of the supervisor: no process of the session lives on, and the log says torn."""
    session = place.start("echo ready; (sleep 301 & setsid sleep 302 & wait) & "
                          "while :; do echo x > f; sleep 0.05; done")
    session.wait_out("ready")
    time.sleep(0.5)
    made = descendants(session.process.pid)
    assert len(made) >= 4, made
    # the supervisor: the child of front that has the same program
    front = session.process.pid
    children = [int(p) for p in open("/proc/%d/task/%d/children" % (front, front)).read().split()]
    supervisors = [p for p in children if os.readlink("/proc/%d/exe" % p).endswith("/nd7")]
    assert len(supervisors) == 1, (front, children)
    os.kill(supervisors[0], signal.SIGKILL)
    ran = session.wait(20)
    assert ran.status == 125, ran
    wait_for(lambda: not [p for p in made if alive(p)], 5,
             lambda: "the end of %r" % [p for p in made if alive(p)])
    rows = place.nd7("sessions", "--json").json()
    assert [r["state"] for r in rows if r["id"] == session.id] == ["torn"]
    assert session.verify().status == 0


def test_front_killed_ends_everything(place):
    session = place.start("echo ready; setsid sleep 302 & while :; do sleep 0.05; done")
    session.wait_out("ready")
    made = descendants(session.process.pid)
    assert len(made) >= 4, made
    os.kill(session.process.pid, signal.SIGKILL)
    session.process.wait(10)
    wait_for(lambda: not [p for p in made if alive(p)], 8,
             lambda: "the end of %r" % [p for p in made if alive(p)])


def alive(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_signals_to_front_reach_the_program(place):
    session = place.start("trap 'echo got-term; exit 5' TERM; echo ready; "
                          "while :; do sleep 0.05; done")
    session.wait_out("ready")
    os.kill(session.process.pid, signal.SIGTERM)
    ran = session.wait(10)
    assert "got-term" in ran.out and ran.status == 5, ran


def test_two_sessions_side_by_side(place):
    """One's temporary files and processes are not the other's."""
    one = place.start("echo mine > $TMPDIR/t; echo $TMPDIR; echo mine > /tmp/nd7-e2e-one-$$; "
                      "echo /tmp/nd7-e2e-one-$$; "
                      "while ! test -e stop; do sleep 0.1; done; cat $TMPDIR/t; "
                      "rm /tmp/nd7-e2e-one-$$")
    wait_for(lambda: one.out().count("\n") == 2, 10, "its temporary files")
    directory, shared = one.out().split()
    two = place.run("echo evil > %s/t; echo evil > %s; rm -rf %s; kill %d" %
                    (directory, shared, directory, one.process.pid) + STILL)
    judge(two, [directory + "/t", shared], errors=None)
    place.write("project/stop", "")
    ran = one.wait()
    assert ran.out.endswith("mine\n"), ran


def test_start_under_another_listener(place):
    """A seccomp listener above, as in a session of another tool: a clear refusal, no silence."""
    ran = place.run("nd7 run -- true; echo status $?")
    assert "status 125" in ran.out
    assert [l for l in ran.err.splitlines() if l.startswith("nd7: ")], ran


def test_links_at_the_private_temporary_place(place):
    """A planted /tmp/nd7-UID is refused: a link, a file, a foreign or open directory."""
    top = "/tmp/nd7-%d" % place.account.uid
    if os.path.lexists(top) and os.listdir(top):
        pytest.skip("%s is in use by another session" % top)
    if os.path.lexists(top):
        os.rmdir(top)
    try:
        os.symlink(place.home / "data", top)
        ran = place.run(["true"])
        assert ran.status == 125 and top in ran.err, ran
        os.unlink(top)
        os.mkdir(top, 0o777)
        os.chmod(top, 0o777)
        os.chown(top, place.account.uid, place.account.gid)
        ran = place.run(["true"])
        assert ran.status == 125 and top in ran.err, ran
    finally:
        if os.path.islink(top):
            os.unlink(top)
        elif os.path.isdir(top):
            os.rmdir(top)


def test_home_that_cannot_be(place):
    for home in ("/", "/nonexistent-home", "relative"):
        ran = place.run(["true"], env={"HOME": home})
        # the passwd entry's home serves; never a crash, never "/" as the home
        assert ran.status in (0, 125), (home, ran)
    place.expect_changes()
