"""An internet of a test's own: two network namespaces and what stands in them.

The *machine* is where the program under test runs. It has the address 10.77.0.2, a default route
through 10.77.0.1, and an /etc/resolv.conf (bind-mounted, seen by nobody else) that names 10.77.0.1.
The *world* behind that gateway answers for every address there is, so any public-looking address
can be a server, and none of them is one of the machine's own or its neighbours'. A DNS server
(fake_dns.py) and an HTTPS server (tls_server.py, port 443 of every address) stand in it.

    with World(tmp_path, zone={"example.com": {"A": ["93.184.216.34"]}}) as world:
        world.run(["curl", "--cacert", world.ca, "https://example.com/"])
        world.questions()    # what the world was asked
        world.connections()  # what the HTTPS server saw

Needs root (skip_reason() says so); touches nothing outside the namespaces, and ends only what it
started. Everything goes with the two holder processes.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import tls_server

HERE = pathlib.Path(__file__).resolve().parent
GATEWAY, MACHINE = "10.77.0.1", "10.77.0.2"
GATEWAY6, MACHINE6 = "fd77::1", "fd77::2"


def skip_reason():
    """Why a world cannot be made here, or None."""
    if os.geteuid() != 0:
        return "network namespaces with veth need root"
    for tool in ("unshare", "nsenter", "ip", "mount", "openssl"):
        if shutil.which(tool) is None:
            return f"{tool} is missing"
    probe = subprocess.run(["unshare", "-n", "-m", "ip", "link", "add", "up0", "type", "veth", "peer",
                            "name", "down0"], capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else f"no veth in a namespace: {probe.stderr.strip()}"


class World:
    def __init__(self, directory, zone=None, names=(), https=True, files=None):
        self.directory = pathlib.Path(directory) / "world"
        self.zone_path = self.directory / "zone.json"
        self.dns_log = self.directory / "questions.ndjson"
        self.tls_log = self.directory / "connections.ndjson"
        self.ca = self.directory / "ca.pem"
        self.zone = dict(zone or {})
        self.names = list(names) or [name for name in self.zone if name != "*"] or ["example.com"]
        self.https = https
        self.files = files  # served by the HTTPS server
        self.processes = []

    def __enter__(self):
        self.directory.mkdir(parents=True)
        os.chmod(self.directory, 0o755)
        self.dns_log.touch()
        self.tls_log.touch()
        self.set_zone(self.zone)
        try:
            self._build()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.processes = []

    def set_zone(self, zone):
        """What the DNS server says from the next question on."""
        self.zone = dict(zone)
        temporary = self.zone_path.with_suffix(".new")
        temporary.write_text(json.dumps(self.zone), encoding="utf-8")
        temporary.replace(self.zone_path)

    def command(self, argv, uid=None):
        """argv as a command line that runs on the machine, as another user if `uid` is given."""
        prefix = ["nsenter", "-t", str(self.machine.pid), "-n", "-m", "--"]
        if uid is not None:
            prefix += ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        return prefix + [str(word) for word in argv]

    def run(self, argv, uid=None, timeout=60, **options):
        options.setdefault("capture_output", True)
        options.setdefault("text", True)
        return subprocess.run(self.command(argv, uid), timeout=timeout, check=False, **options)

    def questions(self):
        return [json.loads(line) for line in self.dns_log.read_text().splitlines()]

    def connections(self):
        return [json.loads(line) for line in self.tls_log.read_text().splitlines()]

    def listen_in_world(self, argv):
        """Starts another server in the world; it prints "ready ..." when it listens."""
        process = self._start(["nsenter", "-t", str(self.outside.pid), "-n", "--", *map(str, argv)])
        line = process.stdout.readline()
        if not line.startswith("ready"):
            raise RuntimeError(f"{argv}: did not start: {line!r}")
        return process

    def https_at(self, port):
        """An HTTPS server on this port of every address in the world."""
        files = ["--files", self.files] if self.files else []
        return self.listen_in_world([sys.executable, HERE / "tls_server.py", "--cert", self.cert, "--key",
                                     self.key, "--log", self.tls_log, "--listen", "::", "--port",
                                     str(port), *files])

    def _start(self, argv):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def _hold(self, *flags):
        # exec keeps the pid, so killing it is enough; ready once the namespaces are ours.
        process = self._start(["unshare", *flags, "--", "sh", "-c", "echo ready; exec sleep infinity"])
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("cannot make namespaces")
        return process

    def _in(self, holder, text):
        subprocess.run(["nsenter", "-t", str(holder.pid), "-n", "-m", "--", *text.split()], check=True,
                       capture_output=True)

    def _build(self):
        self.machine = self._hold("-n", "-m", "--propagation", "private")
        self.outside = self._hold("-n")
        self._in(self.machine, f"ip link add up0 type veth peer name down0 netns {self.outside.pid}")
        for text in ("ip link set lo up", f"ip addr add {MACHINE}/30 dev up0",
                     f"ip -6 addr add {MACHINE6}/64 dev up0 nodad", "ip link set up0 up"):
            self._in(self.machine, text)
        # The world's addresses are all local, in the main table so that the link stays reachable.
        for text in ("ip link set lo up", f"ip addr add {GATEWAY}/30 dev down0",
                     f"ip -6 addr add {GATEWAY6}/64 dev down0 nodad", "ip link set down0 up",
                     "ip route add local default dev lo table main",
                     "ip -6 route add local default dev lo table main"):
            self._in(self.outside, text)
        for text in (f"ip route add default via {GATEWAY}", f"ip -6 route add default via {GATEWAY6}"):
            self._in(self.machine, text)
        self._resolv_conf()
        self.listen_in_world([sys.executable, HERE / "fake_dns.py", "--zone", self.zone_path, "--log",
                              self.dns_log, "--listen", GATEWAY, "--port", "53"])
        if self.https:
            tls_server.make_ca(self.directory)
            self.cert, self.key = tls_server.make_certificate(self.directory, self.names)
            self.https_at(443)
        self._wait_for_link()

    def _resolv_conf(self):
        path = self.directory / "resolv.conf"
        path.write_text(f"nameserver {GATEWAY}\n")
        path.chmod(0o644)
        # Where the host's is a link (systemd-resolved) its target is what programs open.
        target = os.path.realpath("/etc/resolv.conf")
        self._in(self.machine, f"mount --bind {path} {target}")

    def _wait_for_link(self):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            link = self.run(["ip", "-o", "link", "show", "up0"]).stdout
            if "LOWER_UP" in link:
                return
            time.sleep(0.02)
        raise RuntimeError("the link between the namespaces did not come up")
