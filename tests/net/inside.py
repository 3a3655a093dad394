"""`nd7 run` on the machine of a World: an account's home and project there, and its sessions' logs.

    with Inside(world, "user") as place:             # or "root"
        ran = place.session(["curl", "https://example.com/"], "--host", "example.com:8443")
        ran.status, ran.out, ran.refused(addr="10.1.2.3")

The account "user" is that of the tests with the real agents (../agents/harness.py). The program under test:
$ND7, else the dev preset's.
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "agents"))

import harness  # noqa: E402

os.environ.setdefault("ND7", str(HERE.parents[1] / "build" / "dev" / "bin" / "nd7"))
PYTHON = "/usr/bin/python3"


def program():
    """The program under test where every account can run it."""
    return harness.nd7()


def readable(path):
    """A file of the tests where every account can read it."""
    return harness.readable(path)


class Ran(harness.Ran):
    """What a finished session left: its output, and the entries of its log."""

    entries = ()

    def of(self, kind, **members):
        """Bodies of the entries of a kind that have these members."""
        return [entry["body"] for entry in self.entries if entry["kind"] == kind and
                all(entry["body"].get(name) == value for name, value in members.items())]

    def refused(self, **members):
        return self.of("refused", **members)

    def json(self):
        """What the program inside printed, as JSON."""
        try:
            return json.loads(self.out)
        except ValueError:
            raise AssertionError(f"no JSON: {self!r}") from None


class Inside(harness.Place):
    def __init__(self, world, account="user"):
        self.world, self.account = world, account
        super().__init__("net")
        if account == "root":
            self.who = pwd.getpwuid(0)
            for folder, directories, files in os.walk(self.root):
                for name in [".", *directories, *files]:
                    os.chown(os.path.join(folder, name), 0, 0)
            self.root.chmod(0o755)
        self.running = []

    def __exit__(self, *arguments):
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        super().__exit__(*arguments)

    def own(self, path):
        if self.account != "root":
            super().own(path)

    def start(self, command, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE):
        """Starts a command as the account, on the machine of the world, in the project."""
        env = env or self.environment()
        # A clean environment, set behind nsenter and setpriv.
        words = ["env", "-i", "-C", str(cwd or self.project),
                 *[f"{name}={value}" for name, value in env.items()], *map(str, command)]
        process = subprocess.Popen(
            self.world.command(words, None if self.account == "root" else self.who.pw_uid),
            stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True)
        self.running.append(process)
        return process

    def environment(self, **more):
        more = {"CURL_CA_BUNDLE": self.world.ca, "SSL_CERT_FILE": self.world.ca,
                "GIT_SSL_CAINFO": self.world.ca, "NODE_EXTRA_CA_CERTS": self.world.ca, **more}
        return super().environment(**more)

    def session(self, command, *options, wrapper=(), env=None, timeout=60, stdin=None):
        """`nd7 run` to its end. `wrapper`: a command line around it."""
        before = self.sessions()
        ran = self.run([*wrapper, program(), "run", *options, "--", *command], env=env,
                       timeout=timeout, stdin=stdin)
        result = Ran(ran.status, ran.out, ran.err, ran.seconds)
        made = self.sessions() - before
        assert len(made) <= 1, made
        if made:
            result.entries = self.log(made.pop())
        return result

    def sessions(self):
        top = self.state / "sessions"
        return {path.name for path in top.iterdir()} if top.exists() else set()

    def background(self, command, *options, env=None):
        """`nd7 run` that goes on; returns (process, session id). Its stdout is a pipe."""
        before = self.sessions()
        process = self.start([program(), "run", *options, "--", *command], env=env)
        made = wait_for(lambda: self.sessions() - before, "a session", process)
        session = made.pop()
        wait_for(lambda: '"kind":"start"' in self.text(session), "the start entry", process)
        return process, session

    def text(self, session):
        path = self.state / "sessions" / session / "events.ndjson"
        return path.read_text() if path.exists() else ""

    def python(self, text, *options, arguments=(), **more):
        """A python program inside; it prints JSON."""
        return self.session([PYTHON, "-c", text, *map(str, arguments)], *options, **more)


def wait_for(condition, what, process=None, timeout=20):
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end or (process is not None and process.poll() not in (None, 0)):
            out = process.stderr.read() if process is not None and process.poll() is not None else ""
            raise AssertionError(f"waited for {what}: {out!r}")
        time.sleep(0.02)
