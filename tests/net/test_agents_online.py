"""The real agents reach their model over TLS, by name, at a public-looking address.

The scripted model (../agents/scripted_model.py) stands in a World at port 443 of every address. The agents
are those that tests/agents/package-lock.json pins ($ND7_AGENTS, else tests/agents/node_modules).
Both take the CA of the test from SSL_CERT_FILE; Claude Code from NODE_EXTRA_CA_CERTS as well.
"""

import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import tls_server
import world as world_module
from inside import PYTHON, Inside, harness, program, readable

HERE = Path(__file__).resolve().parent
NAME, ADDRESS = "model.example.com", "93.184.216.34"
ZONE = {NAME: {"A": [ADDRESS], "AAAA": ["2606:2800::1"]}}
AGENTS = ["claude", "codex"]

pytestmark = pytest.mark.skipif(harness.agents_bin() is None, reason="the agents are not installed")


@pytest.fixture(scope="module")
def world():
    reason = world_module.skip_reason()
    if reason:
        pytest.skip(reason)
    top = Path(tempfile.mkdtemp(prefix="nd7-world-"))
    top.chmod(0o755)
    with world_module.World(top, zone=ZONE, https=False) as made:
        tls_server.make_ca(made.directory)
        made.cert, made.key = tls_server.make_certificate(made.directory, [NAME])
        yield made
    shutil.rmtree(top)


@pytest.fixture
def place(world):
    with Inside(world) as made:
        yield made


class Model(harness.Model):
    """The scripted model in the world, port 443 of every address."""

    def __enter__(self):
        world = self.place.world
        file = harness.HERE / "scenarios" / self.scenario
        command = [PYTHON, harness.HERE / "scripted_model.py", file, "--host", "::", "--port", "443",
                   "--cert", world.cert, "--key", world.key, "--port-file", self.folder / "port",
                   "--log", self.folder / "requests.jsonl"]
        for name, value in self.variables.items():
            command += ["--var", f"{name}={value}"]
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(world.outside.pid), "-n", "--", *map(str, command)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.report = None
        until = time.monotonic() + 20
        while not (self.folder / "port").exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the scripted model did not start: %s" %
                                   (self.process.stderr.read() if self.process.poll() else ""))
            time.sleep(0.01)
        self.url = f"https://{NAME}"
        return self


def work(place, agent, wrapper=(), env=None):
    """One task of the agent in a session; (what it left, the entries of its log)."""
    prefix = [*wrapper, program(), "run", "--"]
    with Model(place, "both-clients.json") as model:
        if agent == "claude":
            ran = place.claude_task(model, prefix=prefix, env=env)
        else:
            ran = place.codex_task(model, own_sandbox=True, prefix=prefix, env=env)
        assert ran.status == 0, (ran, [entry["body"] for entry in place.log() if entry["kind"] in
                                       ("connect", "refused", "resolve")])
        assert model.problems() == [], ran
    assert (place.project / "made-by-model.txt").read_text() == "one\ntwo\n"
    log = place.log()
    kinds = {entry["kind"] for entry in log}
    assert kinds >= {"start", "session_start", "prompt", "tool_call", "tool_result", "exec", "write",
                     "turn_end", "end", "resolve", "connect"}, sorted(kinds)
    verified = place.run([program(), "verify"])
    assert verified.status == 0, verified
    return ran, log


def of(log, kind, **members):
    return [entry["body"] for entry in log if entry["kind"] == kind and
            all(entry["body"].get(name) == value for name, value in members.items())]


@pytest.mark.parametrize("agent", AGENTS)
def test_through_the_parked_resolver(place, agent):
    _, log = work(place, agent)
    assert of(log, "start")[0]["network"]["parked"] is True
    assert of(log, "resolve", name=NAME)
    assert of(log, "connect", name=NAME, port=443)
    assert not of(log, "connect", via="proxy")
    assert not [body for body in of(log, "refused", would="connect") if body.get("port") == 443]


@pytest.mark.parametrize("agent", AGENTS)
def test_through_the_proxy_where_there_are_no_namespaces(place, agent):
    ran, log = work(place, agent, wrapper=[PYTHON, readable(HERE / "no_namespaces.py")])
    assert "no network namespace" in ran.err
    assert of(log, "start")[0]["network"]["parked"] is False
    made = of(log, "connect", via="proxy", name=NAME, port=443)
    assert made and all(body["pid"] for body in made), of(log, "connect")


# --- a machine with systemd-resolved -----------------------------------------------------------------

RESOLVED = "/run/systemd/resolve/io.systemd.Resolve"
# Stands where systemd-resolved listens for nss-resolve; hangs up on everybody, a line each.
IMPOSTOR = r"""
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
s.listen(16)
print("ready", flush=True)
with open(sys.argv[2], "a", buffering=1) as log:
    while True:
        s.accept()[0].close()
        log.write("somebody\n")
"""


@functools.cache
def nss_resolve():
    """The directory of libnss_resolve.so.2: "" where the system has it, None where there is none.
    The package is unpacked, not installed: installing it changes how the machine resolves names."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    if "libnss_resolve.so.2" in known:
        return ""
    folder = harness.shared_folder() / "libnss-resolve"
    folder.mkdir()
    for command in (["apt-get", "-q", "download", "libnss-resolve"],
                    ["sh", "-c", "dpkg-deb -x libnss-resolve_*.deb ."]):
        if subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False).returncode:
            return None
    found = next(folder.rglob("libnss_resolve.so.2"), None)
    return str(found.parent) if found else None


@pytest.fixture
def resolved_machine():
    """A machine whose /etc/nsswitch.conf asks nss-resolve first, with a stub at 127.0.0.53."""
    reason = world_module.skip_reason() or (
        None if nss_resolve() is not None else "no libnss-resolve, and it could not be downloaded")
    if reason:
        pytest.skip(reason)
    top = Path(tempfile.mkdtemp(prefix="nd7-world-"))
    top.chmod(0o755)
    with world_module.World(top, zone=ZONE, https=False) as made:
        tls_server.make_ca(made.directory)
        made.cert, made.key = tls_server.make_certificate(made.directory, [NAME])
        switch = made.directory / "nsswitch.conf"
        switch.write_text("passwd: files\ngroup: files\nhosts: resolve [!UNAVAIL=return] files dns\n")
        resolv = made.directory / "stub.conf"
        resolv.write_text("nameserver 127.0.0.53\noptions edns0 trust-ad\n")
        target = os.path.realpath("/etc/resolv.conf")
        script = f"""set -e
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/systemd/resolve "$(dirname {target})"
[ -e {target} ] || touch {target}
mount --bind {resolv} {target}
mount --bind {switch} /etc/nsswitch.conf
"""
        subprocess.run(made.command(["sh", "-c", script]), check=True, capture_output=True)
        made.stub_log = made.directory / "stub.ndjson"
        made.visitors = made.directory / "visitors"
        for log in (made.stub_log, made.visitors):
            log.touch()
        for command in ([PYTHON, HERE / "fake_dns.py", "--zone", made.zone_path, "--log", made.stub_log,
                         "--listen", "127.0.0.53", "--port", "53"],
                        [PYTHON, "-c", IMPOSTOR, RESOLVED, made.visitors]):
            assert made._start(made.command(command)).stdout.readline().startswith("ready")
        made.library = {"LD_LIBRARY_PATH": nss_resolve()} if nss_resolve() else {}
        yield made
    shutil.rmtree(top)


def test_nss_resolve_asks_outside_and_the_stub_is_asked_by_nd7(resolved_machine):
    world = resolved_machine
    with Inside(world) as place:
        env = place.environment(**world.library)
        # Outside the module is really there and asks systemd-resolved first.
        ran = place.run(["getent", "ahosts", NAME], env=env)
        assert ran.status == 0 and ADDRESS in ran.out, ran
        before = world.visitors.read_text()
        assert before
        ran = place.session(["getent", "ahosts", NAME], env=env)
        assert ran.status == 0 and ADDRESS in ran.out, ran
        assert world.visitors.read_text() == before, "systemd-resolved was reached from inside"
        tried = ran.refused(addr=RESOLVED)
        assert tried and tried[0]["quiet"] is True, ran.refused()
        assert ran.of("resolve", name=NAME)
        assert "refused" not in ran.err, ran.err
    asked = [json.loads(line) for line in world.stub_log.read_text().splitlines()]
    assert {question["name"] for question in asked} == {NAME}
    assert world.questions() == []  # nobody but the stub


@pytest.mark.parametrize("agent", AGENTS)
def test_with_nss_resolve_first(resolved_machine, agent):
    world = resolved_machine
    with Inside(world) as place:
        _, log = work(place, agent, env=world.library)
        assert of(log, "resolve", name=NAME) and of(log, "connect", name=NAME, port=443)
    assert world.visitors.read_text() == ""
    assert NAME in world.stub_log.read_text() and world.questions() == []


# --- where a native installer puts them --------------------------------------------------------------


def native_binary(agent):
    """The program itself, without the launcher that npm puts before it."""
    top = harness.agents_bin().parent
    if agent == "claude":
        return (harness.agents_bin() / "claude").resolve()
    found = sorted(top.glob("@openai/codex-linux-*/vendor/*/bin/codex"))
    return found[0] if found else None


@pytest.mark.parametrize("agent", AGENTS)
def test_a_native_layout(place, agent):
    """~/.local/bin/AGENT is a link to ~/.local/share/AGENT/versions/VERSION: known by the link's name."""
    binary = native_binary(agent)
    if binary is None:
        pytest.skip("the package holds no native program")
    version = json.loads((harness.HERE / "package.json").read_text())["dependencies"][
        "@anthropic-ai/claude-code" if agent == "claude" else "@openai/codex"]
    versions = place.home / ".local" / "share" / agent / "versions"
    bin_folder = place.home / ".local" / "bin"
    for folder in (versions, bin_folder):
        folder.mkdir(parents=True)
    place.own(place.root)
    try:
        os.link(binary, versions / version)
    except OSError:
        shutil.copy2(binary, versions / version)
    (bin_folder / agent).symlink_to(versions / version)
    # Only the native one is on the PATH.
    path = f"{bin_folder}:/usr/local/bin:/usr/bin:/bin"
    ran, log = work(place, agent, env={"PATH": path})
    start = of(log, "start")[0]
    assert start["agent"] == agent, start
    assert of(log, "exec")[0]["path"] == str(versions / version), of(log, "exec")[0]
    assert [body for body in of(log, "tool_call")] and of(log, "session_end")
    joined = [body for body in of(log, "exec") if body["join"] == "announced"]
    assert joined, of(log, "exec")
    assert ran.status == 0
