"""Runs the real coding agents against the scripted model, as an ordinary user.

    with harness.Place() as place:                # a fresh home and project of that user
        with harness.Model(place, turns) as model:
            ran = place.claude(model, ["-p", "any prompt"])
        assert ran.status == 0 and model.problems() == []

The clients refuse or change some of what they do as root and below /tmp, so a run as root makes
(once) the user nd7agents and gives each test a directory in its home; a run as an ordinary user
takes that user's own home. Where the clients are: $ND7_AGENTS (a directory with `claude` and
`codex`), else node_modules/.bin beside this file (`npm ci` here puts them there).
The program under test: $ND7.
"""

import atexit
import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
USER = "nd7agents"
CLAUDE_FLAGS = ["--output-format", "stream-json", "--verbose"]
CODEX_FLAGS = ["--json", "--skip-git-repo-check"]
CODEX_OFFLINE = ["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false",
                 "--disable", "plugins", "--disable", "apps", "--disable", "remote_plugin"]


@functools.cache
def nd7():
    """The program under test, as an absolute path that the user of the clients can run."""
    path = os.environ.get("ND7")
    if not path:
        raise RuntimeError("set ND7 to the nd7 program under test")
    path = Path(path).resolve()
    if not reachable(path):
        copy = shared_folder() / "nd7"
        shutil.copy2(path, copy)
        copy.chmod(0o755)
        path = copy
    return str(path)


@functools.cache
def agents_bin():
    """The directory that holds `claude` and `codex`; None when they are not installed."""
    for place in (os.environ.get("ND7_AGENTS"), HERE / "node_modules" / ".bin"):
        if not place or not all((Path(place) / name).exists() for name in ("claude", "codex")):
            continue
        place = Path(place).resolve()
        if not reachable(place / "claude"):
            # The clone lies in a closed directory. Links to the 800 MB, or copies of them.
            copy = shared_folder() / "node_modules"
            if subprocess.run(["cp", "-al", place.parent, copy], stderr=subprocess.DEVNULL).returncode:
                shutil.rmtree(copy, ignore_errors=True)
                subprocess.run(["cp", "-a", place.parent, copy], check=True)
            place = copy / ".bin"
        return place
    return None


def reachable(path):
    """May the user of the clients run this file?"""
    if os.geteuid() != 0:
        return True
    who = account()
    return subprocess.run(["test", "-x", path], user=who.pw_uid, group=who.pw_gid,
                          extra_groups=[], cwd="/").returncode == 0


def readable(path):
    """A file of ours where the user of the clients can read it."""
    copy = shared_folder() / Path(path).name
    shutil.copy(path, copy)
    copy.chmod(0o755)
    return str(copy)


@functools.cache
def shared_folder():
    """A directory that the user of the clients can read, for the time of this process."""
    folder = Path(tempfile.mkdtemp(prefix="nd7-shared-", dir=account().pw_dir))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def account():
    """The user that runs the clients."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", USER], check=True)
        return pwd.getpwnam(USER)


class Ran:
    """What a finished client left."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def events(self):
        """The JSON lines of standard output."""
        lines = (line.strip() for line in self.out.splitlines())
        return [json.loads(line) for line in lines if line.startswith("{")]

    def __repr__(self):
        return "Ran(status=%r, out=%r, err=%r)" % (self.status, self.out[-2000:], self.err[-2000:])


class Place:
    """A fresh home directory and a project, owned by the user that runs the clients."""

    def __init__(self, name="t"):
        self.who = account()
        self.root = Path(tempfile.mkdtemp(prefix="nd7-%s-" % name, dir=self.who.pw_dir))
        self.home = self.root / "home"
        self.project = self.root / "project"
        for path in (self.home, self.project):
            path.mkdir()
        self.own(self.root)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not os.environ.get("ND7_KEEP"):
            shutil.rmtree(self.root, ignore_errors=True)

    def own(self, path):
        """Gives a tree to the user that runs the clients."""
        if os.geteuid() == 0:
            for folder, directories, files in os.walk(path):
                for entry in [folder] + [os.path.join(folder, name) for name in directories + files]:
                    os.chown(entry, self.who.pw_uid, self.who.pw_gid, follow_symlinks=False)

    def write(self, path, text):
        """Writes a file (relative: below the root of this place), made with its directories."""
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.own(self.root)
        return path

    @property
    def state(self):
        return self.home / ".local" / "state" / "nd7"

    def environment(self, **more):
        """What an ordinary login has; nothing of the environment of the tests takes part."""
        path = "/usr/local/bin:/usr/bin:/bin"
        if agents_bin():
            path = "%s:%s" % (agents_bin(), path)
        result = {"PATH": path, "HOME": str(self.home), "USER": self.who.pw_name,
                  "LOGNAME": self.who.pw_name, "SHELL": "/bin/bash", "LANG": "C.UTF-8",
                  "TERM": "dumb", "NO_PROXY": "127.0.0.1,localhost"}
        result.update({name: str(value) for name, value in more.items()})
        return result

    def start(self, command, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE):
        """Starts a command as the user in the project, in a session of its own."""
        identity = {}
        if os.geteuid() == 0:
            identity = {"user": self.who.pw_uid, "group": self.who.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            [str(part) for part in command], cwd=cwd or self.project, env=env or self.environment(),
            stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True, **identity)

    def run(self, command, env=None, stdin=None, timeout=120, cwd=None):
        """Runs a command as the user in the project; ends it, and only it, after `timeout`."""
        began = time.monotonic()
        process = self.start(command, env, cwd,
                             subprocess.PIPE if stdin is not None else subprocess.DEVNULL)
        if isinstance(stdin, str):
            stdin = stdin.encode()
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError("%s: not done after %d s: %r %r" % (command[0], timeout, out, err))
        return Ran(process.returncode, out.decode("utf-8", "replace"),
                   err.decode("utf-8", "replace"), time.monotonic() - began)

    def claude(self, model, arguments, prefix=(), env=None, **options):
        """`claude ARGUMENTS` with the scripted model; `prefix` is e.g. [nd7(), "run"]."""
        more = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "dummy",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        more.update(env or {})
        return self.run(list(prefix) + ["claude"] + list(arguments),
                        env=self.environment(**more), **options)

    def claude_task(self, model, prompt="any prompt", arguments=(), **options):
        """A whole headless task in which every tool is allowed."""
        return self.claude(model, ["-p", prompt, *CLAUDE_FLAGS, "--permission-mode",
                                   "bypassPermissions", *arguments], **options)

    @staticmethod
    def codex_provider(model):
        """The flags that lead Codex to the scripted model."""
        return ["-c", 'model_provider="scripted"', "-c",
                'model_providers.scripted={name="scripted",base_url="%s/v1",'
                'env_key="OPENAI_API_KEY",wire_api="responses"}' % model.url]

    def codex(self, arguments, prefix=(), env=None, **options):
        more = {"OPENAI_API_KEY": "dummy"}
        more.update(env or {})
        return self.run(list(prefix) + ["codex"] + list(arguments),
                        env=self.environment(**more), **options)

    def codex_task(self, model, prompt="any prompt", arguments=(), name="gpt-5.5", own_sandbox=False,
                   **options):
        """A whole `codex exec`. Its own sandbox is off unless asked for (or left to nd7 run)."""
        flags = [] if own_sandbox else ["--dangerously-bypass-approvals-and-sandbox"]
        return self.codex(["exec", *CODEX_FLAGS, *flags, *self.codex_provider(model),
                           *CODEX_OFFLINE, "-m", name, *arguments, prompt], **options)

    def log(self, session=None):
        """The entries of a session's log (of the only one, if none is named)."""
        folders = sorted((self.state / "sessions").iterdir())
        if session is None:
            assert len(folders) == 1, [folder.name for folder in folders]
            session = folders[0].name
        text = (self.state / "sessions" / session / "events.ndjson").read_text()
        return [json.loads(line) for line in text.splitlines()]


class Model:
    """A scripted model server on a free loopback port. `scenario`: a list of turns, a whole
    scenario (dict), or the name of a file in scenarios/."""

    def __init__(self, place, scenario, **variables):
        self.place = place
        self.folder = Path(tempfile.mkdtemp(prefix="model-", dir=place.root))
        self.scenario = scenario
        self.variables = dict({"CWD": str(place.project)}, **variables)

    def __enter__(self):
        if isinstance(self.scenario, str):
            file = HERE / "scenarios" / self.scenario
        else:
            whole = self.scenario if isinstance(self.scenario, dict) else {"turns": self.scenario}
            file = self.folder / "scenario.json"
            file.write_text(json.dumps(whole))
        command = [sys.executable, str(HERE / "scripted_model.py"), str(file),
                   "--port-file", str(self.folder / "port"),
                   "--log", str(self.folder / "requests.jsonl")]
        for name, value in self.variables.items():
            command += ["--var", "%s=%s" % (name, value)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.report = None
        until = time.monotonic() + 20
        while not (self.folder / "port").exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the scripted model did not start")
            time.sleep(0.01)
        self.port = int((self.folder / "port").read_text())
        self.url = "http://127.0.0.1:%d" % self.port
        return self

    def __exit__(self, *_):
        self.problems()

    def problems(self):
        """Stops the server; what did not play out as the scenario says, one line each."""
        if self.report is None:
            self.process.terminate()
            self.report = self.process.communicate(timeout=20)[1].decode()
        return [line for line in self.report.splitlines() if line]

    def requests(self):
        file = self.folder / "requests.jsonl"
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text().splitlines()]

    def told(self):
        """All that the model was told in its turns, as text."""
        return "\n".join(entry.get("told", "") for entry in self.requests()
                         if entry["kind"] == "turn")
