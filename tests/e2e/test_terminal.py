"""The terminal is the program's: job control, signals, size and status as run bare.

A shell in tmux; each scenario runs once bare and once under `nd7 run`, and what matters on the
screen must be the same.
"""

import os
import re
import shutil
import subprocess
import time

import pytest

from place import processes_of, wait_for

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A shell of the account in a tmux of its own."""

    def __init__(self, place, width=100, height=40):
        self.place = place
        self.directory = "/tmp/nd7-e2e-tmux-%d" % os.getpid()
        os.makedirs(self.directory, exist_ok=True)
        os.chown(self.directory, place.account.uid, place.account.gid)
        self.socket = self.directory + "/s"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height),
                  "env PS1='ready> ' HISTFILE= bash --norc --noprofile -i")
        self.wait("ready>")

    def tmux(self, *arguments):
        ran = self.place.native(["tmux", "-f", "/dev/null", "-S", self.socket, *arguments],
                                timeout=20)
        assert ran.status == 0, ran
        return ran.out

    def screen(self):
        return self.tmux("capture-pane", "-p", "-J").rstrip()

    def send(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def key(self, name):
        self.tmux("send-keys", name)

    def wait(self, text, timeout=15):
        """Waits for a regular expression on the screen."""
        wait_for(lambda: re.search(text, self.screen(), re.M), timeout,
                 lambda: "%r on the screen:\n%s" % (text, self.screen()))

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.place.env(),
                       stderr=subprocess.DEVNULL, **self.place.account.identity())
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def terminal(place):
    made = []
    def open_terminal(**kw):
        made.append(Terminal(place, **kw))
        return made[-1]
    yield open_terminal
    for each in made:
        each.close()


def both_ways(place, terminal, scenario):
    """Runs the scenario with and without `nd7 run` before the program; returns the two results."""
    results = []
    for prefix in ("", "%s run -- " % place.tools.nd7):
        t = terminal()
        try:
            results.append(scenario(t, prefix))
        finally:
            t.close()
    return results


def status(t):
    t.send("echo status=$?")
    t.wait(r"^status=\d+")
    return re.findall(r"^status=(\d+)", t.screen(), re.M)[-1]


def test_ctrl_c(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "sh -c 'echo begun; sleep 30'")
        t.wait("^begun")
        t.key("C-c")
        return status(t)
    bare, inside = both_ways(place, terminal, scenario)
    assert bare == inside == "130"


def test_ctrl_c_handled_by_the_program(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "bash -c 'trap \"echo caught; exit 7\" INT; echo begun; while :; do sleep 0.1; done'")
        t.wait("^begun")
        t.key("C-c")
        t.wait("caught")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["7", "7"]


def test_ctrl_backslash(place, terminal):
    def scenario(t, prefix):
        t.send("ulimit -c 0; " + prefix + "sh -c 'echo begun; sleep 30'")
        t.wait("^begun")
        t.key("C-\\")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["131", "131"]


def test_suspend_and_foreground(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "sh -c 'echo begun; read x; echo got $x; exit 4'")
        t.wait("^begun")
        t.key("C-z")
        t.wait("Stopped")
        t.send("echo shell-is-here")
        t.wait("^shell-is-here")
        t.send("jobs | wc -l")
        t.wait(r"^1$")
        t.send("fg")
        time.sleep(0.5)
        t.send("typed")
        t.wait("^got typed")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["4", "4"]


def test_suspend_twice_and_kill_in_the_background(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "sleep 97")
        time.sleep(1)
        for number in (1, 2):
            t.key("C-z")
            wait_for(lambda: t.screen().count("Stopped") >= number, 10, "stopping %d" % number)
            t.send("fg")
            time.sleep(0.7)
        t.key("C-z")
        wait_for(lambda: t.screen().count("Stopped") >= 3, 10, "stopping 3")
        t.send("bg; sleep 0.5; kill %1; wait %1; echo waited=$?")
        t.wait(r"^waited=\d+")
        return re.findall(r"^waited=(\d+)", t.screen(), re.M)[0]
    bare, inside = both_ways(place, terminal, scenario)
    assert bare == inside == "143"


def test_reading_in_the_background_stops_it(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "sh -c 'sleep 0.5; read x; echo got $x' &")
        time.sleep(2)
        t.send("jobs")
        t.wait("Stopped")
        t.send("fg")
        time.sleep(0.5)
        t.send("input")
        t.wait("^got input")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["0", "0"]


def test_nothing_reads_the_shells_keys_while_stopped(place, terminal):
    """A process left in the background must not take the terminal back while the job is stopped."""
    t = terminal()
    t.send("%s run -- bash -c '(while :; do read -t 1 x </dev/tty && echo STOLEN $x >> stolen; "
           "sleep 0.1; done) & sleep 0.3; echo begun; sleep 60'" % place.tools.nd7)
    t.wait("^begun")
    t.key("C-z")
    t.wait("Stopped")
    for i in range(5):
        t.send("echo mine-%d" % i)
        t.wait("^mine-%d" % i)
        time.sleep(0.3)
    assert not (place.project / "stolen").exists()
    t.send("kill -CONT %1; kill %1; fg; echo over")
    t.wait("^over")


def test_resize_reaches_the_program(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "bash -c 'trap \"stty size\" WINCH; stty size; echo begun; for i in $(seq 100); do sleep 0.1; done'")
        t.wait("^begun")
        t.tmux("resize-window", "-x", "77", "-y", "33")
        t.wait("^33 77")
        t.key("C-c")
        return re.findall(r"^(\d+ \d+)$", t.screen(), re.M)[:2]
    bare, inside = both_ways(place, terminal, scenario)
    assert bare == inside == ["40 100", "33 77"]


def test_raw_mode_is_restored(place, terminal):
    def scenario(t, prefix):
        # raw mode, one key at a time, then the terminal as before
        t.send(prefix + "/usr/bin/python3 -c 'import os, sys, termios, tty; "
               "a = termios.tcgetattr(0); tty.setraw(0); print(\"begun\\r\"); k = os.read(0, 1); "
               "termios.tcsetattr(0, termios.TCSADRAIN, a); print(repr(k), os.isatty(0), os.isatty(1), "
               "os.ttyname(0) == os.ctermid() or os.ttyname(0)[:8])'")
        t.wait("^begun")
        t.key("C-c")
        t.wait(r"^b'.x03'")
        return re.search(r"^b'.x03'.*", t.screen(), re.M).group(), status(t)
    bare, inside = both_ways(place, terminal, scenario)
    assert bare == inside


def test_an_interactive_shell_with_jobs_inside(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "env PS1='inner> ' bash --norc --noprofile -i")
        t.wait("^inner>")
        t.send("sleep 98")
        time.sleep(0.7)
        t.key("C-z")
        t.wait("Stopped")
        t.send("jobs | wc -l; fg")
        time.sleep(0.7)
        t.key("C-c")
        time.sleep(0.5)
        t.send("(exit 9); echo inner-status=$?; exit 6")
        t.wait("^inner-status=9")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["6", "6"]


def test_an_interactive_shell_takes_the_terminal_back(place, terminal):
    """After each command its group is gone: the shell must get the foreground all the same."""
    def scenario(t, prefix):
        t.send(prefix + "env PS1='inner> ' bash --norc --noprofile -i")
        t.wait("^inner>")
        for i in range(3):
            t.send("/bin/echo external-%d" % i)
            t.wait("^external-%d" % i)
            t.wait(r"^external-%d\ninner>" % i)
        t.send("exit 5")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["5", "5"]


def test_dev_tty_works(place, terminal):
    def scenario(t, prefix):
        t.send(prefix + "sh -c 'echo to-tty > /dev/tty; head -1 < /dev/tty; tty | cut -c1-8; "
               "ps -o stat= -p $$ | tr -d \" \"' < /dev/null")
        t.wait("^to-tty")
        t.send("answer")
        t.wait(r"^answer\n(.*\n)*.*ready>")
        return re.search(r"^to-tty\nanswer\nanswer\n(.*)\n(.*)", t.screen(), re.M).groups()
    bare, inside = both_ways(place, terminal, scenario)
    assert bare == inside


def test_pipelines_and_status(place, terminal):
    def scenario(t, prefix):
        t.send("printf 'b\\na\\n' | " + prefix + "sort | head -1; echo ${PIPESTATUS[@]}")
        t.wait(r"^a\n0 0 0")
        t.send("yes | " + prefix + "head -1 | wc -l")
        t.wait(r"^1$")
        t.send(prefix + "yes | head -1")
        t.wait(r"^y$")
        return status(t)
    assert both_ways(place, terminal, scenario) == ["0", "0"]


def test_TT01_nothing_is_typed_into_the_shell(place, terminal):
    """Type-ahead: the program tries to push characters; after it the shell's prompt is clean."""
    place.write("project/push.py", "import fcntl, termios\n"
                "for fd in (0, 1, 2, open('/dev/tty', 'rb+', buffering=0).fileno()):\n"
                "    for c in b'touch typed-in\\n':\n"
                "        try: fcntl.ioctl(fd, termios.TIOCSTI, bytes([c]))\n"
                "        except OSError as e: error = e\n"
                "print('refused', error.errno)\n")
    t = terminal()
    t.send("%s run -- /usr/bin/python3 push.py" % place.tools.nd7)
    t.wait("^refused 1$")
    time.sleep(1)
    assert status(t) == "0"
    assert not (place.project / "typed-in").exists()


def test_TT03_other_terminals_of_the_user(place, terminal):
    """Another window of the same user can be neither written nor read."""
    t = terminal()
    other = t.tmux("new-window", "-d", "-P", "-F", "#{pane_tty}", "cat").strip()
    t.send("%s run -- sh -c 'echo INTRUDED > %s; head -c1 < %s; ls -l %s | wc -l; cat /proc/self/stat | wc -l'"
           % (place.tools.nd7, other, other, other))
    t.wait(r"^1\n1$")
    assert "INTRUDED" not in t.tmux("capture-pane", "-p", "-t", ":1")
    assert t.screen().count("Permission denied") == 2


def test_hangup_of_the_terminal_ends_the_session(place, terminal):
    before = processes_of(place.account.uid)
    t = terminal()
    t.send("%s run -- sh -c 'echo begun; sleep 96'" % place.tools.nd7)
    t.wait("^begun")
    t.close()
    def left():
        out = []
        for pid in processes_of(place.account.uid) - before:
            try:
                if b"sleep\0" in open("/proc/%d/cmdline" % pid, "rb").read():
                    out.append(pid)
            except OSError:
                pass
        return out
    wait_for(lambda: not left(), 8, lambda: "the end of %r" % left())
    wait_for(lambda: place.nd7("sessions", "--json").json()[0]["state"] == "ended", 8, "ended")


def test_supervisor_killed_at_the_terminal(place, terminal):
    """The person gets the prompt back, with a word, and the next listing says torn."""
    t = terminal()
    t.send("%s run -- sh -c 'echo begun; sleep 95'" % place.tools.nd7)
    t.wait("^begun")
    supervisors = []
    for pid in processes_of(place.account.uid):
        try:
            if os.readlink("/proc/%d/exe" % pid) == str(place.tools.nd7):
                supervisors.append(pid)
        except OSError:
            pass
    parents = {p: int(open("/proc/%d/stat" % p).read().rsplit(")", 1)[1].split()[1])
               for p in supervisors}
    front = [p for p in supervisors if parents[p] not in supervisors]
    child = [p for p in supervisors if parents[p] in front]
    assert len(front) == len(child) == 1, parents
    os.kill(child[0], 9)
    assert status(t) == "125"
    assert "nd7: " in t.screen()
    t.send("echo echo-works")
    t.wait("^echo-works")
    assert place.nd7("sessions", "--json").json()[0]["state"] == "torn"
