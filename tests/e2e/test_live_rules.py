"""Rules that change while the session runs."""

import os
import time

import pytest

from judge import STILL, judge
from place import wait_for

# Prints OK or NO for each try to append to the file, ten times a second, until `stop` exists.
LOOP = """while ! test -e stop; do
  if echo x >> %s 2>/dev/null; then echo OK; else echo NO; fi; sleep 0.1
done"""


def stop(place):
    place.write("project/stop", "")


def test_allow_and_deny_of_a_path_take_hold_at_once(place):
    target = place.home / "data" / "log"
    place.expect_changes("data")
    session = place.start(LOOP % target)
    session.wait_out("NO")
    assert not target.exists()
    allowed = session.nd7("allow", place.home / "data")
    assert allowed.status == 0 and "data" in allowed.out, allowed
    seen = len(session.out())
    wait_for(lambda: "OK" in session.out()[seen:], 2, "the next write")
    denied = session.nd7("deny", place.home / "data")
    assert denied.status == 0, denied
    time.sleep(0.3)
    size, seen = target.stat().st_size, len(session.out())
    wait_for(lambda: session.out()[seen:].count("NO") >= 3, 5, "three refusals")
    assert "OK" not in session.out()[seen:] and target.stat().st_size == size
    stop(place)
    ran = session.wait()
    assert ran.status == 0
    assert [e["body"] for e in session.entries("grant")], "the grant is on record"
    assert [e["body"] for e in session.entries("revoke")], "the revocation is on record"
    assert session.refused(path=str(target))


def test_the_very_next_call_succeeds(place):
    """No waiting: the write right after `allow` returned is allowed, right after `deny` refused."""
    place.expect_changes("data")
    session = place.start(["python3", "-u", "-c", """
import sys
for line in sys.stdin:
    try:
        open(line.strip(), 'a').write('x'); print('OK')
    except PermissionError:
        print('NO')
"""], keep_stdin=True)
    def ask(path, times):
        session.process.stdin.write(("%s\n" % path).encode())
        session.process.stdin.flush()
        wait_for(lambda: session.out().count("\n") == times, 10, "an answer")
        return session.out().split()[-1]
    target = place.home / "data" / "t"
    for round_number in range(5):
        assert ask(target, 2 * round_number + 1) == "NO"
        assert session.nd7("allow", place.home / "data").status == 0
        assert ask(target, 2 * round_number + 2) == "OK"
        assert session.nd7("deny", place.home / "data").status == 0
    session.process.stdin.close()
    assert session.wait().status == 0


def test_a_file_alone_and_not_its_neighbour(place):
    place.expect_changes("data")
    session = place.start(LOOP % (place.home / "data/one"))
    assert session.nd7("allow", place.home / "data/one").status == 0
    session.wait_out("OK")
    why = session.nd7("why", "--write", place.home / "data/two")
    assert why.status == 1, why
    assert session.nd7("why", "--write", place.home / "data/one").status == 0
    stop(place)
    session.wait()


def test_read_grant_opens_a_credential_and_deny_closes_it(place):
    place.write("loop", "")
    place.expect_changes("loop")
    gh = place.home / ".config/gh/hosts.yml"
    session = place.start("while ! test -e stop; do cat %s 2>/dev/null || echo NO; sleep 0.1; done"
                          % gh)
    session.wait_out("NO")
    assert session.nd7("why", "--read", gh).status == 1
    assert session.nd7("allow", "--read", gh).status == 0
    session.wait_out(place.token(".config/gh/hosts.yml"))
    assert session.nd7("why", "--read", gh).status == 0
    assert session.nd7("deny", "--read", gh).status == 0
    time.sleep(0.3)
    seen = len(session.out())
    wait_for(lambda: session.out()[seen:].count("NO") >= 3, 5, "three refusals")
    assert "TOKEN" not in session.out()[seen:]
    stop(place)
    session.wait()


def test_deny_of_a_place_that_was_readable(place):
    """A read rule that comes later holds for what was left to the kernel until then."""
    session = place.start("while ! test -e stop; do cat ~/data/keep ~/canary.txt >/dev/null 2>&1 && "
                          "echo OK || echo NO; sleep 0.1; done")
    session.wait_out("OK")
    assert session.nd7("deny", "--read", place.home / "data").status == 0
    time.sleep(0.3)
    seen = len(session.out())
    wait_for(lambda: session.out()[seen:].count("NO") >= 3, 5, "three refusals")
    assert "OK" not in session.out()[seen:]
    stop(place)
    session.wait()


def test_socket_grant(place):
    world = place.world()
    place.expect_changes("outside")
    connect = ("while ! test -e stop; do python3 -c 'import socket; "
               "socket.socket(socket.AF_UNIX).connect(\"%s/sock\")' 2>/dev/null && echo OK || "
               "echo NO; sleep 0.1; done" % world.path)
    session = place.start(connect)
    session.wait_out("NO")
    assert session.nd7("allow", "--socket", world.path / "sock").status == 0
    session.wait_out("OK")
    assert session.nd7("deny", "--socket", world.path / "sock").status == 0
    time.sleep(0.3)
    seen = len(session.out())
    wait_for(lambda: session.out()[seen:].count("NO") >= 2, 10, "two refusals")
    assert "OK" not in session.out()[seen:]
    stop(place)
    session.wait()


def test_port_grant(place):
    world = place.world()
    place.expect_changes("outside")
    port = world.facts()["tcp"]
    session = place.start("while ! test -e stop; do python3 -c 'import socket; "
                          "socket.create_connection((\"127.0.0.1\", %s))' 2>/dev/null && echo OK || "
                          "echo NO; sleep 0.1; done" % port)
    session.wait_out("NO")
    assert session.nd7("allow", "--port", port).status == 0
    session.wait_out("OK")
    stop(place)
    session.wait()


def test_LV01_revoked_with_a_file_still_open(place):
    """New opens are refused at once; who still holds one is named."""
    place.expect_changes("data")
    session = place.start("exec 7>>~/data/held; echo open; while ! test -e stop; do sleep 0.1; done; "
                          "echo late >&7; echo x >> ~/data/held; echo x >> ~/data/other" + STILL,
                          "--allow", str(place.home / "data"))
    session.wait_out("open")
    denied = session.nd7("deny", place.home / "data")
    assert denied.status == 0 and "still hold" in denied.out, denied
    stop(place)
    ran = judge(session.wait(), [place.home / "data/held", place.home / "data/other"])
    assert (place.home / "data/held").read_text() == "late\n"
    assert not (place.home / "data/other").exists()


def test_LV02_allow_of_a_link_shows_where_it_leads(place):
    os.symlink(place.home / "data", place.project / "innocent")
    os.symlink("/", place.project / "all")
    session = place.start("while ! test -e stop; do sleep 0.1; done")
    allowed = session.nd7("allow", place.project / "innocent")
    assert str(place.home / "data") in allowed.out or "~/data" in allowed.out, allowed
    broad = session.nd7("allow", place.project / "all")
    assert broad.status == 2 and "too broad" in broad.err, broad
    assert session.nd7("allow", place.home).status == 2
    stop(place)
    session.wait()


def test_LV03_text_of_a_path_cannot_speak(place):
    """A newline, escape and a lie in a name: shown escaped, in one line, by every command."""
    name = "a\nnd7: allowed by admin\x1b[2J\u202e"
    ran = place.run(["python3", "-c", "import os, sys\n"
                     "for make in (os.mkdir, lambda p: open(p, 'w')):\n"
                     "  try: make(os.path.expanduser('~/') + sys.argv[1])\n"
                     "  except PermissionError: print('refused')\n"
                     "print('still-running')", name])
    judge(ran, errors="refused")
    assert len(ran.session.refused()) == 2
    for shown in (ran.err, place.nd7("show", ran.session.id).out,
                  place.nd7("sessions").out):
        assert "\nnd7: allowed by admin" not in shown
        assert "\x1b[2J" not in shown and "\u202e" not in shown


def test_LV04_nested_run(place):
    ran = place.run("nd7 run --allow / -- sh -c 'echo x > ~/canary.txt'; echo status $?" + STILL)
    judge(ran, errors=None)
    assert "status 125" in ran.out, ran
    assert "session" in ran.err and "nd7" in ran.err, ran


def test_US17_control_is_closed_from_inside(place):
    """nd7 allow, deny and raw bytes to the control socket, from inside."""
    ran = place.run("nd7 allow ~/data; echo status $?; nd7 allow / ; nd7 deny ~/data; "
                    "nd7 allow --read ~/.aws/credentials; echo x > ~/data/f; "
                    "cat ~/.aws/credentials; python3 -c '\n"
                    "import glob, os, socket\n"
                    "home = os.path.expanduser(\"~\")\n"
                    "for path in glob.glob(home + \"/.local/state/nd7/run/*/*\") + "
                    "glob.glob(os.environ.get(\"XDG_RUNTIME_DIR\", \"/x\") + \"/nd7/*/*\"):\n"
                    "  if \"control\" not in path: continue\n"
                    "  try: socket.socket(socket.AF_UNIX).connect(path); print(\"CONNECTED\")\n"
                    "  except OSError as e: print(path, e)\n'" + STILL)
    judge(ran, [place.home / "data/f", place.home / ".aws/credentials"],
          secrets=[place.token(".aws/credentials")])
    assert "status 0" not in ran.out and "CONNECTED" not in ran.out, ran
    assert ran.session.entries("grant") == []


def test_rules_lists_each_with_its_origin(place):
    session = place.start("while ! test -e stop; do sleep 0.1; done", "--allow",
                          str(place.home / "data"))
    session.nd7("allow", place.home / "other")
    rules = session.nd7("rules", "--json").json()["rules"]
    paths = {r.get("path"): r for r in rules}
    assert str(place.project) in paths
    assert paths[str(place.home / "data")]["origin"] != paths[str(place.home / "other")]["origin"]
    assert any("ssh" in str(r.get("reason", "")) for r in rules)
    text = session.nd7("rules")
    assert text.status == 0 and str(place.home / "other") in text.out.replace("~", str(place.home))
    stop(place)
    session.wait()


def test_why_agrees_with_what_happens(place):
    """The same question to `why` and to the kernel, for places of every kind."""
    asked = {"write": [place.project / "new", place.home / "canary.txt", place.home / "data/f",
                       place.project / ".git/hooks/pre-commit", place.project / ".git/config2",
                       place.project / ".envrc", place.project / ".vscode/tasks.json",
                       place.project / ".mcp.json", place.project / ".nd7.toml", "/etc/new",
                       "/usr/bin/new", "/tmp/new-by-nd7-test-%d" % os.getpid(),
                       place.home / ".claude/settings.json", place.home / ".codex/config.toml",
                       place.state / "x", place.tools.nd7],
             "read": [place.home / ".ssh/id_ed25519", place.home / ".ssh/config",
                      place.home / "canary.txt", place.home / ".netrc", "/etc/passwd",
                      place.home / ".bash_history", place.project / "README"]}
    for path in (place.project / ".vscode",):
        path.mkdir()
        os.chown(path, place.account.uid, place.account.gid)
    script = ["while ! test -e go; do sleep 0.05; done"]
    for path in asked["write"]:
        script.append("(echo x >> '%s') 2>/dev/null && echo 'write %s yes' || echo 'write %s no'" %
                      (path, path, path))
    for path in asked["read"]:
        script.append("head -c1 '%s' >/dev/null 2>&1 && echo 'read %s yes' || echo 'read %s no'" %
                      (path, path, path))
    session = place.start("; ".join(script))
    said = {}
    for kind, paths in asked.items():
        for path in paths:
            why = session.nd7("why", "--" + kind, path)
            assert why.status in (0, 1), why
            said["%s %s" % (kind, path)] = why.status == 0
    place.write("project/go", "")
    ran = session.wait()
    happened = {line.rsplit(" ", 1)[0]: line.endswith(" yes") for line in ran.out.splitlines()}
    native = {}
    wrong = []
    for question, allowed in said.items():
        path = question.split(" ", 1)[1]
        # What the rules allow, the owner of the file may still refuse.
        if allowed and not happened[question] and not os.access(os.path.dirname(path), os.W_OK):
            continue
        if allowed != happened[question]:
            wrong.append((question, "why says", allowed, "happened", happened[question]))
    assert not wrong, "\n".join(map(str, wrong))
    assert sum(said.values()) >= 5 and list(said.values()).count(False) >= 10, said


def test_many_sessions_and_none_named(place):
    """Lists them and, without a terminal, exits 2."""
    one = place.start("while ! test -e stop; do sleep 0.1; done")
    two = place.start("while ! test -e stop; do sleep 0.1; done")
    asked = place.nd7("allow", place.home / "data")
    assert asked.status == 2 and one.id in asked.err + asked.out and two.id in asked.err + asked.out
    # a grant to one is none to the other
    assert one.nd7("allow", place.home / "data").status == 0
    assert one.nd7("why", "--write", place.home / "data/x").status == 0
    assert two.nd7("why", "--write", place.home / "data/x").status == 1
    stop(place)
    one.wait()
    two.wait()


def test_allow_without_a_session(place):
    asked = place.nd7("allow", place.home / "data")
    assert asked.status == 2 and asked.err.startswith("nd7: "), asked


def test_hundreds_of_changes(place):
    """Start time and the time of a call stay flat with many live rules."""
    session = place.start("while ! test -e stop; do sleep 0.1; done; "
                          "for i in 1 2 3; do echo x >> ~/other/d99/f; done" + STILL)
    begun = time.monotonic()
    for i in range(100):
        assert session.nd7("allow", place.home / "other" / ("d%d" % i)).status == 0
    spent = time.monotonic() - begun
    stop(place)
    ran = session.wait()
    assert "still-running" in ran.out
    assert spent < 30, spent
