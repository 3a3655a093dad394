"""Accounts, places and sessions for the end-to-end tests.

A test runs as one of two accounts: root, and an ordinary user made for the run and removed after
it. Each test gets the account's home anew, with canary files that must be the same afterwards, and
a project that is a git repository. Programs run in a clean environment, `nd7 run` around them or
not; the log of the session is read from its file.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FS_IOC_GETFLAGS = 0x80086601

CANARIES = {
    "canary.txt": "canary\n",
    ".bashrc": "# bashrc\n",
    ".profile": "# profile\n",
    ".zshenv": "# zshenv\n",
    ".config/fish/config.fish": "# fish\n",
    ".config/autostart/keep.desktop": "[Desktop Entry]\n",
    ".config/systemd/user/keep.service": "[Unit]\n",
    ".local/bin/tool": "#!/bin/sh\necho tool\n",
    ".local/lib/python3/site-packages/keep.py": "pass\n",
    ".cache/pip/keep": "wheel\n",
    ".npm/_cacache/keep": "tarball\n",
    "go/pkg/mod/keep": "module\n",
    ".cargo/registry/keep": "crate\n",
    ".cargo/config.toml": "[build]\n",
    "other/src/f": "sibling\n",
    "data/keep": "data\n",
    ".gitconfig": "[user]\n\tname = Test\n\temail = test@nd7.invalid\n[init]\n\tdefaultBranch = main\n",
}
# Their content is TOKEN-<name>: no such text may ever come out of a session.
SECRETS = [
    ".ssh/id_ed25519", ".ssh/id_rsa", ".ssh/id_ed25519~", ".aws/credentials",
    ".config/gcloud/credentials.db", ".azure/msal_token_cache.json", ".kube/config",
    ".config/gh/hosts.yml", ".netrc", ".npmrc", ".pypirc", ".docker/config.json",
    ".git-credentials", ".config/rclone/rclone.conf", ".codex/auth.json",
    ".gemini/oauth_creds.json", ".claude/.credentials.json", ".gnupg/private-keys-v1.d/key.key",
    ".password-store/site.gpg", ".config/google-chrome/Default/Login Data",
    ".mozilla/firefox/x.default/logins.json", ".bash_history", ".zsh_history",
    ".local/share/keyrings/login.keyring", ".local/share/Trash/files/id_ed25519",
]
PUBLIC = {".ssh/known_hosts": "host key\n", ".ssh/config": "Host *\n",
          ".ssh/id_ed25519.pub": "public key\n"}

# What nd7 itself keeps in the home, and what its agents' rules let a session write.
OWN = [".local/state/nd7", ".cache/nd7", ".config/nd7"]


def build_dir():
    return Path(os.environ.get("ND7_BUILD", ROOT / "build" / "dev"))


def nd7_source():
    return Path(os.environ.get("ND7", build_dir() / "bin" / "nd7"))


class Ran:
    """What a finished program left."""

    def __init__(self, status, out, err, session=None):
        self.status, self.out, self.err, self.session = status, out, err, session

    def __repr__(self):
        return "status %r\n--- out\n%s\n--- err\n%s" % (self.status, self.out[-4000:],
                                                       self.err[-4000:])

    def json(self):
        return json.loads(self.out)


class Account:
    """Who runs the programs. `name` is 'root' or 'user' in test ids."""

    def __init__(self, kind, entry, home):
        self.kind, self.name, self.uid, self.gid = kind, entry.pw_name, entry.pw_uid, entry.pw_gid
        self.home = Path(home)

    @property
    def is_root(self):
        return self.uid == 0

    def identity(self):
        """Arguments of subprocess that make a child this account."""
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


class Tools:
    """The programs under test, copied to where every account may run them."""

    def __init__(self):
        base = "/opt" if os.geteuid() == 0 else str(Path.home())
        self.root = Path(tempfile.mkdtemp(prefix="nd7-e2e-", dir=base))
        self.root.chmod(0o755)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        self.victims = self._copy(self._victims(), "victims")
        self.nd7 = self._copy(nd7_source(), "nd7") if nd7_source().exists() else None

    def _victims(self):
        given = os.environ.get("ND7_VICTIMS")
        if given:
            return Path(given)
        # Always from the sources: seconds, and never stale.
        out = self.root / "victims.build"
        sources = sorted(str(p) for p in (ROOT / "tests" / "victims").glob("*.c"))
        subprocess.run(["cc", "-std=gnu11", "-O1", "-o", str(out), *sources, "-lpthread", "-lrt"],
                       check=True)
        return out

    def _copy(self, source, name):
        target = self.bin / name
        shutil.copy(source, target)
        target.chmod(0o755)
        return target

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)


def make_user():
    name = "nd7e2e%d" % os.getpid()
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    return name


def remove_user(name):
    subprocess.run(["userdel", "--remove", name], check=False, stderr=subprocess.DEVNULL)


def inode_flags(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        data = fcntl.ioctl(fd, FS_IOC_GETFLAGS, struct.pack("l", 0))
        return struct.unpack("l", data)[0] & ~0x80000  # extents: the file system's own choice
    except OSError:
        return None
    finally:
        os.close(fd)


def describe(path, times=True):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    entry = {"kind": stat.filemode(st.st_mode)[0], "mode": stat.S_IMODE(st.st_mode),
             "owner": (st.st_uid, st.st_gid)}
    if kind == stat.S_IFLNK:
        entry["target"] = os.readlink(path)
    if kind == stat.S_IFREG:
        entry["nlink"] = st.st_nlink
        with open(path, "rb") as file:
            entry["content"] = hashlib.sha256(file.read()).hexdigest()
        entry["flags"] = inode_flags(path)
    if kind != stat.S_IFLNK:
        try:
            entry["xattrs"] = {n: os.getxattr(path, n, follow_symlinks=False)
                               for n in os.listxattr(path, follow_symlinks=False)}
        except OSError:
            entry["xattrs"] = None
    if times:
        entry["times"] = (st.st_mtime_ns, st.st_ctime_ns)
    return entry


def snapshot(top, skip=(), times=True):
    """Names, kinds, bytes, modes, owners, times, xattrs and flags below `top`. What is in `skip`
    (relative) is left out; of the parents of skipped places the times are."""
    top = str(top)
    loose = {os.path.dirname(s) for s in skip}
    found = {}
    def visit(relative):
        path = os.path.join(top, relative) if relative else top
        entry = describe(path, times)
        if relative in loose:
            entry.pop("times", None)
        found[relative] = entry
        if entry["kind"] == "d":
            for name in sorted(os.listdir(path)):
                below = os.path.join(relative, name) if relative else name
                if below not in skip:
                    visit(below)
    visit("")
    return found


def differences(before, after):
    out = []
    for name in sorted(set(before) | set(after)):
        if before.get(name) != after.get(name):
            was, now = before.get(name), after.get(name)
            if was is None or now is None:
                out.append("%s: %s" % (name or ".", "appeared" if was is None else "vanished"))
            else:
                changed = [k for k in was if was.get(k) != now.get(k)]
                out.append("%s: %s" % (name or ".", ", ".join(
                    "%s %r -> %r" % (k, was.get(k), now.get(k)) for k in changed)))
    return out


class Place:
    """A home with canaries, and a project in it."""

    def __init__(self, account, tools):
        self.account, self.tools = account, tools
        self.home = account.home
        self.project = self.home / "project"
        self.state = self.home / ".local" / "state" / "nd7"
        self.running = []
        self.worlds = []
        self.extra_env = {}
        self._empty_home()
        for name, text in {**CANARIES, **PUBLIC}.items():
            self.write(name, text)
        for name in SECRETS:
            self.write(name, self.token(name) + "\n", mode=0o600)
        for name in (".ssh", ".gnupg"):
            (self.home / name).chmod(0o700)
        (self.home / ".local" / "bin" / "tool").chmod(0o755)
        for name in OWN:
            self._directory((self.home / name).parent)
        self._directory(self.project)
        self.native(["sh", "-c", "git init -q && echo hello > README && git add . && "
                     "git commit -qm first"], check=True)
        self.skip = list(OWN) + ["project"]
        self.before = snapshot(self.home, self.skip)

    @staticmethod
    def token(name):
        return "TOKEN-" + hashlib.sha256(name.encode()).hexdigest()[:24]

    def _empty_home(self):
        self.home.mkdir(exist_ok=True, mode=0o755)
        for item in self.home.iterdir():
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item)
            else:
                item.unlink()
        os.chown(self.home, self.account.uid, self.account.gid)

    def _directory(self, path):
        path = Path(path)
        if path.exists():
            return
        self._directory(path.parent)
        path.mkdir()
        os.chown(path, self.account.uid, self.account.gid)

    @contextlib.contextmanager
    def bystander(self):
        """A process outside that must live through the test."""
        process = self.popen(["sleep", "3000"], cwd=self.home, stdin=subprocess.DEVNULL)
        yield process
        ended = process.poll()
        if ended is None:
            process.kill()
            process.wait()
        assert ended is None, "a process outside was ended: %r" % ended

    def write(self, name, text, mode=0o644):
        """A file of the account below its home (or at an absolute path)."""
        path = self.home / name
        self._directory(path.parent)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.account.uid, self.account.gid)
        return path

    def changed(self):
        """What differs in the home from the start, the project and nd7's own places aside."""
        return differences(self.before, snapshot(self.home, self.skip))

    def expect_changes(self, *names):
        """These places may change in this test."""
        self.skip += names
        self.before = {n: e for n, e in self.before.items()
                       if not any(n == s or n.startswith(s + "/") for s in names)}
        for name in names:
            self.before.get(os.path.dirname(name), {}).pop("times", None)

    def env(self, extra=None):
        env = {"HOME": str(self.home), "USER": self.account.name, "LOGNAME": self.account.name,
               "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TERM": "xterm-256color",
               "PATH": "%s:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" %
                       self.tools.bin}
        env.update(self.extra_env)
        env.update(extra or {})
        return {k: v for k, v in env.items() if v is not None}

    def popen(self, argv, cwd=None, env=None, **kw):
        kw.setdefault("start_new_session", True)
        cwd = cwd or (self.project if self.project.exists() else self.home)
        return subprocess.Popen([str(a) for a in argv], cwd=cwd,
                                env=self.env(env), **self.account.identity(), **kw)

    def native(self, argv, cwd=None, env=None, stdin=None, timeout=120, check=False, **kw):
        """Runs a program to its end, without a session."""
        process = self.popen(argv, cwd, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="surrogateescape", **kw)
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            end_group(process)
            out, err = process.communicate()
            raise AssertionError("%r did not end within %d s\n%s" %
                                 (argv, timeout, Ran(None, out, err))) from None
        ran = Ran(process.returncode, out, err)
        if check:
            assert ran.status == 0, ran
        return ran

    def nd7(self, *arguments, **kw):
        return self.native([self.tools.nd7, *arguments], **kw)

    def session_ids(self):
        top = self.state / "sessions"
        return {p.name for p in top.iterdir()} if top.exists() else set()

    def run(self, argv, *options, **kw):
        """`nd7 run` to its end; .session reads the log. A string is a shell script."""
        if isinstance(argv, str):
            argv = ["sh", "-c", argv]
        before = self.session_ids()
        ran = self.nd7("run", *options, "--", *argv, **kw)
        made = self.session_ids() - before
        assert len(made) <= 1, made
        ran.session = Log(self, made.pop()) if made else None
        if ran.session:
            ran.session.settle()
        return ran

    def start(self, argv, *options, **kw):
        """`nd7 run` in the background."""
        if isinstance(argv, str):
            argv = ["sh", "-c", argv]
        session = Session(self, [self.tools.nd7, "run", *options, "--", *argv], **kw)
        self.running.append(session)
        return session

    def world(self):
        world = World(self)
        self.worlds.append(world)
        return world

    def close(self):
        for session in self.running:
            session.end()
        for world in self.worlds:
            world.close()


class Log:
    """The log of one session, from its file."""

    def __init__(self, place, session_id):
        self.place, self.id = place, session_id
        self.directory = place.state / "sessions" / session_id

    def settle(self):
        """Waits for the writer to let go: the program's status comes before the last sync."""
        def free():
            try:
                with open(self.directory / "lock", "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
            except FileNotFoundError:
                return True
            except OSError:
                return False
        wait_for(free, 10, "the log's lock")

    def entries(self, kind=None):
        path = self.directory / "events.ndjson"
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        entries = [json.loads(line) for line in lines if line]
        return [e for e in entries if kind is None or e["kind"] == kind]

    def refused(self, **members):
        """Bodies of the `refused` entries that have these members."""
        return [e["body"] for e in self.entries("refused")
                if all(e["body"].get(k) == v for k, v in members.items())]

    def verify(self):
        return self.place.nd7("verify", self.id)


class Session(Log):
    """A running session. Its output is collected in files, so it never blocks on us."""

    def __init__(self, place, argv, cwd=None, env=None, keep_stdin=False):
        before = place.session_ids()
        self.out_file, self.err_file = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = place.popen(argv, cwd, env, stdout=self.out_file, stderr=self.err_file,
                                   stdin=subprocess.PIPE if keep_stdin else subprocess.DEVNULL)
        def started():
            made = place.session_ids() - before
            if self.process.poll() is not None and not made:
                raise AssertionError("no session: %s" % self.ran())
            return made
        made = wait_for(started, 20, "a session directory")
        super().__init__(place, made.pop())
        wait_for(lambda: self.entries("start"), 20, "the start entry")

    def out(self):
        return self._text(self.out_file)

    def err(self):
        return self._text(self.err_file)

    @staticmethod
    def _text(file):
        return os.pread(file.fileno(), 1 << 24, 0).decode(errors="surrogateescape")

    def ran(self):
        return Ran(self.process.returncode, self.out(), self.err(), self)

    def wait(self, timeout=60):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError("the session did not end: %s" % self.ran()) from None
        self.settle()
        return self.ran()

    def wait_out(self, text, timeout=20):
        wait_for(lambda: text in self.out(), timeout,
                 lambda: "%r in the output: %s" % (text, self.ran()))

    def nd7(self, command, *arguments, **kw):
        return self.place.nd7(command, "--session", self.id, *arguments, **kw)

    def end(self):
        if self.process.poll() is None:
            end_group(self.process)
        return self.ran()


class World:
    """The process outside and its files (tests/victims/hold.c)."""

    def __init__(self, place, where="outside"):
        self.path = place.home / where
        if self.path.exists():
            shutil.rmtree(self.path)
        place._directory(self.path)
        secret = place.home / ".ssh" / "id_ed25519"
        if not secret.exists():  # a victim moved it away natively
            place.write(".ssh/id_ed25519", place.token(".ssh/id_ed25519") + "\n", 0o600)
        self.process = place.popen(
            [place.tools.victims, "hold", self.path], cwd=self.path,
            env={"VICTIM_SECRET": str(secret), "HOLD_TOKEN": place.token("hold")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "ready\n", "the world did not come up"
        self.before = self.snapshot()

    def snapshot(self):
        return snapshot(self.path, ["events"])

    def changed(self):
        return differences(self.before, self.snapshot())

    def facts(self):
        return dict(line.split("=", 1) for line in (self.path / "facts").read_text().splitlines())

    def alive(self):
        return self.process.poll() is None

    def close(self):
        if self.alive():
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


def wait_for(condition, timeout, what):
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %d s for %s" % (timeout, what() if callable(what) else what))
        time.sleep(0.02)


def end_group(process):
    """Ends a process that the test started, with its group: TERM, then KILL."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


def descendants(pid):
    """The processes below `pid`, itself too; those that were orphaned away are not seen."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat_line = Path("/proc", entry, "stat").read_text()
                parents[int(entry)] = int(stat_line.rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found = {pid}
    while True:
        more = {p for p, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def processes_of(uid):
    out = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat("/proc/" + entry).st_uid == uid:
                    out.add(int(entry))
            except OSError:
                pass
    return out
