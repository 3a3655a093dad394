"""The network of a session: what programs inside `nd7 run` reach, and what the log says of it.

Every test runs as an ordinary user and as root, on the machine of a World (world.py), whose servers
answer at every address there is: what is refused inside could be reached outside, and the tests
look at that too.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import world as world_module
from inside import PYTHON, Inside, program, wait_for

NAME, ADDRESS, ADDRESS6 = "example.com", "93.184.216.34", "2606:2800::1"
DEAF = "198.41.0.4"  # the world answers nothing there
ZONE = {
    NAME: {"A": [ADDRESS], "AAAA": [ADDRESS6]},
    "other.test": {"A": [ADDRESS]}, "www.example.com": {"A": [ADDRESS]},
    "four.test": {"A": ["8.8.4.4"]},
    "inward.test": {"A": ["10.1.2.3"]},
    "metadata.test": {"A": ["169.254.169.254"]},
    "own.test": {"A": [world_module.MACHINE]},
    "home.test": {"A": ["127.0.0.1"], "AAAA": ["::1"]},
    "mapped.test": {"AAAA": ["::ffff:10.1.2.3", "64:ff9b::a01:203"]},
    "mixed.test": {"A": ["10.1.2.3", "8.8.4.4"]},
    "alias.test": {"CNAME": "inward.test"},
    "flip.test": {"A": [["8.8.4.4"], ["10.1.2.3"]], "ttl": 0},
}

# In the world: TCP and UDP at every address; each arrival is a line of a file.
COLLECTOR = r"""
import json, selectors, socket, sys
chosen, file = selectors.DefaultSelector(), open(sys.argv[1], "a", buffering=1)
for port in map(int, sys.argv[2:]):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        if kind == socket.SOCK_STREAM and port == 443: continue
        s = socket.socket(socket.AF_INET6, kind)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("::", port))
        if kind == socket.SOCK_STREAM: s.listen(64)
        chosen.register(s, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in chosen.select():
        s = key.fileobj
        if s.type == socket.SOCK_STREAM:
            peer, address = s.accept()
            what = ["tcp", s.getsockname()[1], ""]
            peer.close()
        else:
            text, address = s.recvfrom(2000)
            what = ["udp", s.getsockname()[1], text.decode(errors="replace")]
        file.write(json.dumps(what) + "\n")
"""

# Put before every program inside: attempt(...) is "ok" or the name of the error.
PRELUDE = r"""
import errno, json, os, select, signal, socket, sys, threading, time
def name(error):
    return errno.errorcode.get(error.errno, str(error)) if error.errno else type(error).__name__
def attempt(address, port, kind=socket.SOCK_STREAM, timeout=5):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as s:
        if timeout: s.settimeout(timeout)
        try:
            info = socket.getaddrinfo(address, port, family, kind, 0, socket.AI_NUMERICHOST)[0][4]
            s.connect(info)
            return "ok"
        except OSError as error:
            return name(error)
def tell(value):
    print(json.dumps(value), flush=True)
"""


@pytest.fixture(scope="module")
def world():
    reason = world_module.skip_reason()
    if reason:
        pytest.skip(reason)
    top = Path(tempfile.mkdtemp(prefix="nd7-world-"))
    top.chmod(0o755)  # the CA is read by every account
    files = top / "files"
    repository = files / "repository.git"
    work = top / "work"
    for command in (["git", "init", "-q", work],
                    ["git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@nd7.invalid", "commit",
                     "-q", "--allow-empty", "-m", "from the world"],
                    ["git", "clone", "-q", "--bare", work, repository],
                    ["git", "-C", repository, "update-server-info"]):
        subprocess.run(command, check=True, capture_output=True)
    with world_module.World(top, zone=ZONE, files=files) as made:
        made.https_at(8443)
        made.arrivals = top / "arrivals"
        made.arrivals.touch()
        made.listen_in_world([PYTHON, "-c", COLLECTOR, made.arrivals, 22, 53000, 80, 443, 123, 5432])
        made._in(made.outside, f"ip route add blackhole {DEAF}")
        yield made
    shutil.rmtree(top)


@pytest.fixture(scope="module", params=["user", "root"])
def place(request, world):
    with Inside(world, request.param) as made:
        yield made


def arrived(world):
    return [json.loads(line) for line in world.arrivals.read_text().splitlines()]


def outside(place, text, *arguments):
    """A program of the same account on the machine, outside of any session: (process, its facts)."""
    process = place.start([PYTHON, "-c", PRELUDE + text, *map(str, arguments)])
    line = process.stdout.readline()
    assert line, process.stderr.read().decode()
    return process, json.loads(line)


def end(process):
    process.kill()
    process.wait()


def allow(place, session, *arguments, verb="allow"):
    ran = place.run([program(), verb, "--session", session, *arguments])
    assert ran.status == 0, ran
    return ran


# --- out into the world ------------------------------------------------------------------------------


CLIENTS = {
    "curl": f"curl -sS -o curl.out https://{NAME}/one && grep -q example curl.out",
    "curl6": f"curl -sS -6 https://{NAME}/six | grep -q {ADDRESS6}",
    "git": f"git clone -q https://{NAME}/repository.git cloned && git -C cloned log | grep -q world",
    "python": f"{PYTHON} -c \"import urllib.request as u; print(u.urlopen('https://{NAME}/two').read())\"",
    "node": f"node -e \"fetch('https://{NAME}/three').then(r => r.text()).then(console.log)\"",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_reach_a_public_host_by_name(place, client):
    ran = place.session(["sh", "-c", "env | grep -qi _proxy= && exit 9; " + CLIENTS[client]],
                        env={key: value for key, value in place.environment().items()
                             if key != "NO_PROXY"})
    assert ran.status == 0, ran
    address = ADDRESS6 if client == "curl6" else ADDRESS
    kind = "AAAA" if client == "curl6" else "A"
    asked = ran.of("resolve", name=NAME, type=kind)
    assert asked and asked[0]["answers"] == [address], ran.of("resolve")
    made = ran.of("connect", name=NAME, port=443)
    assert made and all(body["addr"] in (ADDRESS, ADDRESS6) for body in made), ran.of("connect")
    assert all(body["result"] in (0, "EINPROGRESS", "ECONNREFUSED") for body in made), made
    assert not ran.refused(would="connect"), ran.refused()
    seen = place.world.connections()[-1]
    assert seen["host"] == NAME and seen["from"] in (world_module.MACHINE, world_module.MACHINE6)


def test_other_ports_are_refused_with_the_command_that_opens(place, world):
    before = len(arrived(world))
    ran = place.python(PRELUDE + f"""
found = [a[4][0] for a in socket.getaddrinfo({NAME!r}, 80, 0, socket.SOCK_STREAM)]
tell({{"%s %d" % (a, p): attempt(a, p) for a in found for p in (22, 80, 5432, 8443)}})
""")
    results = ran.json()
    assert len(results) == 8 and set(results.values()) == {"EACCES"}, results
    for port in (22, 80, 5432, 8443):
        refused = ran.refused(would="connect", addr=ADDRESS, port=port)
        assert refused and refused[0]["name"] == NAME, ran.refused()
        assert refused[0]["open_with"] == f"nd7 allow --host {NAME}:{port}"
        assert refused[0]["result"] == "EACCES"
    assert arrived(world)[before:] == []
    # The same ports answer without a session.
    process, results = outside(place, f"tell([attempt({ADDRESS!r}, p) for p in (22, 80, 5432, 8443)])")
    end(process)
    assert results == ["ok"] * 4


@pytest.mark.parametrize("grant", [f"{NAME}:8443", "*.example.com:8443", f"{ADDRESS}:8443", "other.test:8443"])
def test_a_granted_host(place, grant):
    """By name, by pattern, by address; and by a name that is not the one asked for last."""
    ran = place.python(PRELUDE + f"""
for n in ("other.test", "www.example.com", {NAME!r}):
    socket.getaddrinfo(n, 443, socket.AF_INET)
tell([attempt({ADDRESS!r}, 8443, timeout=None), attempt("::ffff:" + {ADDRESS!r}, 8443, timeout=None),
      attempt({ADDRESS!r}, 22), attempt("8.8.4.4", 8443)])
""", "--host", grant)
    assert ran.json() == ["ok", "ok", "EACCES", "EACCES"], ran
    assert [body["result"] for body in ran.of("connect", port=8443)] == [0, 0]


def test_a_host_granted_while_it_runs(place):
    process, session = place.background([PYTHON, "-c", PRELUDE + f"""
socket.getaddrinfo({NAME!r}, 443, socket.AF_INET)
last = None
while not os.path.exists("enough"):
    now = attempt({ADDRESS!r}, 8443)
    if now != last: tell(now)
    last = now
    time.sleep(0.05)
"""])
    assert json.loads(process.stdout.readline()) == "EACCES"
    allow(place, session, "--host", f"{NAME}:8443")
    assert json.loads(process.stdout.readline()) == "ok"
    allow(place, session, "--host", f"{NAME}:8443", verb="deny")
    assert json.loads(process.stdout.readline()) == "EACCES"
    (place.project / "enough").touch()
    assert process.wait(20) == 0
    (place.project / "enough").unlink()
    log = place.log(session)
    kinds = [entry["kind"] for entry in log if entry["kind"] in ("grant", "revoke")]
    assert kinds == ["grant", "revoke"]


def test_a_proxy_of_the_environment_is_named_with_the_grant_it_needs(place):
    env = place.environment(HTTPS_PROXY="http://me:secret@10.1.2.3:443", http_proxy="http://localhost:1")
    ran = place.session(["true"], env=env)
    assert "HTTPS_PROXY leads to 10.1.2.3:443" in ran.err and "nd7 run --host 10.1.2.3 ..." in ran.err
    assert "nd7 run --port 1 ..." in ran.err and "secret" not in ran.err, ran
    ran = place.session(["curl", "-sSv", f"https://{NAME}/"], "--host", "10.1.2.3", "--port", "1", env=env)
    assert "leads to" not in ran.err and "Connected to 10.1.2.3" in ran.err, ran


# --- inward ------------------------------------------------------------------------------------------


NEVER = ["169.254.169.254", "169.254.170.2", "169.254.7.7", "fd00:ec2::254", "::ffff:169.254.169.254",
         "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "240.0.0.1", "192.0.2.1", "198.18.0.1", "0.1.2.3",
         "224.0.0.5", "255.255.255.255", "ff0e::5", "2001:db8::1", "fe80::1%2"]
PRIVATE = ["10.1.2.3", "172.16.5.5", "192.168.1.1", "100.64.1.1", "fd00:1::1", "::ffff:10.1.2.3",
           "::ffff:192.168.1.1", "64:ff9b::a01:203", "2002:a01:203::1"]
OWN = [world_module.MACHINE, world_module.GATEWAY, world_module.MACHINE6, world_module.GATEWAY6,
       "::ffff:" + world_module.MACHINE]


def test_private_link_local_and_metadata_addresses_are_refused(place):
    ran = place.python(PRELUDE + """
tell({a: [attempt(a, p) for p in (443, 80)] for a in sys.argv[1:]})
""", arguments=NEVER + PRIVATE + OWN)
    assert ran.json() == {address: ["EACCES", "EACCES"] for address in NEVER + PRIVATE + OWN}
    for address in NEVER:
        bodies = [body for body in ran.refused(would="connect")
                  if same_address(body.get("addr", "::"), address)]
        assert len(bodies) >= 2 and all(body["open_with"] is None for body in bodies), (address, bodies)
    for address in PRIVATE + OWN:
        bodies = [body for body in ran.refused(would="connect")
                  if same_address(body.get("addr", "::"), address)]
        assert bodies and all("nd7 allow --host" in body["open_with"] for body in bodies), address
    # Without nd7 the world answers at those that have a route at all.
    process, results = outside(place, "tell([attempt(a, 443) for a in ('10.1.2.3', '169.254.169.254',"
                               f" '{world_module.GATEWAY}', '192.0.2.1', 'fd00:1::1')])")
    end(process)
    assert results == ["ok"] * 5


def same_address(one, other):
    import ipaddress
    plain = [ipaddress.ip_address(text.split("%")[0]) for text in (one, other)]
    mapped = [getattr(address, "ipv4_mapped", None) or address for address in plain]
    return mapped[0] == mapped[1]


@pytest.mark.parametrize("grant, address", [
    ("10.1.2.3", "10.1.2.3"), ("10.1.2.3", "::ffff:10.1.2.3"), ("[fd00:1:0::1]:443", "fd00:1::1"),
    (world_module.GATEWAY, world_module.GATEWAY)])
def test_a_private_address_by_grant(place, grant, address):
    ran = place.python(PRELUDE + "tell([attempt(sys.argv[1], 443), attempt('10.1.2.4', 443)])",
                       "--host", grant, arguments=[address])
    assert ran.json() == ["ok", "EACCES"], ran


def test_a_metadata_address_is_refused_in_spite_of_a_grant(place):
    ran = place.python(PRELUDE + "tell(attempt('169.254.169.254', 443))", "--host", "169.254.169.254",
                       "--host", "metadata.test")
    if ran.status == 125:
        assert "169.254.169.254" in ran.err  # the grant itself was refused
    else:
        assert ran.json() == "EACCES"


LOOK_UP = PRELUDE + """
def look_up(n):
    try: return sorted({a[4][0] for a in socket.getaddrinfo(n, 443, 0, socket.SOCK_STREAM)})
    except socket.gaierror as e: return "no address" if e.errno in (socket.EAI_NODATA, socket.EAI_NONAME) else str(e)
"""


def test_names_that_point_inside_have_no_address(place):
    names = ["inward.test", "metadata.test", "own.test", "home.test", "mapped.test", "alias.test"]
    ran = place.python(LOOK_UP + "tell({n: look_up(n) for n in sys.argv[1:]})",
                       arguments=[*names, "mixed.test", NAME])
    results = ran.json()
    assert results.pop("mixed.test") == ["8.8.4.4"]
    assert results.pop(NAME) == sorted([ADDRESS, ADDRESS6])
    assert set(results.values()) == {"no address"}, results
    for name in names:
        assert any("points at" in (body["refused"] or "") for body in ran.of("resolve", name=name)), name
    curl = place.session(["curl", "-sS", "https://inward.test/"])
    assert curl.status == 6, curl


def test_a_name_that_turns_inward_later(place, world):
    world.set_zone(ZONE)
    ran = place.python(LOOK_UP + "tell([look_up('flip.test') for _ in range(3)])")
    assert ran.json()[-1] == "no address", ran
    bodies = ran.of("resolve", name="flip.test", type="A")
    assert any("10.1.2.3" in (body["refused"] or "") for body in bodies), bodies


@pytest.mark.parametrize("how", ["start", "live"])
def test_a_granted_name_may_point_inside(place, how):
    probe = LOOK_UP + """
tell(look_up("inward.test"))
while not isinstance(look_up("inward.test"), list): time.sleep(0.1)
tell([look_up("inward.test"), attempt("10.1.2.3", 443), attempt("10.1.2.3", 8443), attempt("10.1.2.4", 443)])
"""
    if how == "start":
        ran = place.python(probe, "--host", "inward.test")
        lines = ran.out.splitlines()
    else:
        process, session = place.background([PYTHON, "-c", probe])
        first = process.stdout.readline().decode()
        allow(place, session, "--host", "inward.test")
        out, err = process.communicate(timeout=40)  # a refusal is kept for 30 s
        lines = [first, *out.decode().splitlines()]
        assert process.returncode == 0, err
    assert json.loads(lines[0]) == (["10.1.2.3"] if how == "start" else "no address")
    assert json.loads(lines[1]) == [["10.1.2.3"], "ok", "EACCES", "EACCES"]


# --- datagrams and names -----------------------------------------------------------------------------


SEND = PRELUDE + r"""
def send(kind, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        s = socket.socket(family, socket.SOCK_DGRAM)
        to = socket.getaddrinfo(address, port, family, socket.SOCK_DGRAM)[0][4]
        for _ in range(2):
            if kind == "sendto": s.sendto(MARK, to)
            elif kind == "sendmsg": s.sendmsg([MARK], [], 0, to)
            else:
                s.connect(to)
                s.send(MARK)
        return "sent"
    except OSError as error:
        return name(error)
"""


def test_no_datagram_leaves(place, world):
    listener, port = outside(place, """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
tell(s.getsockname()[1])
print(s.recv(100), flush=True)
""")
    before = len(arrived(world))
    targets = [[ADDRESS, p] for p in (53000, 443, 123)] + [
        [ADDRESS6, 53000], [world_module.GATEWAY, 53000], ["127.0.0.1", port],
        ["::ffff:" + ADDRESS, 53000], ["::ffff:127.0.0.1", port], ["10.1.2.3", 123]]
    ran = place.python(SEND + """
MARK = b"from inside"
tell([send(kind, *target) for target in json.loads(sys.argv[1]) for kind in ("sendto", "sendmsg", "connect")])
""", arguments=[json.dumps(targets)])
    assert len(ran.json()) == 27, ran
    # The witnesses work: the same program outside is heard, and heard first.
    process, results = outside(place, SEND + f"""
MARK = b"from outside"
tell([send("sendto", {ADDRESS!r}, p) for p in (53000, 443, 123)] + [send("sendto", {ADDRESS6!r}, 53000),
     send("sendto", "127.0.0.1", {port})])
""")
    end(process)
    assert results == ["sent"] * 5
    wait_for(lambda: len(arrived(world)) - before >= 8, "the datagrams from outside")
    heard = {text for _, _, text in arrived(world)[before:]}
    assert heard == {"from outside"}
    assert "from outside" in listener.stdout.readline().decode()
    end(listener)


def test_sockets_that_do_not_exist_inside(place):
    ran = place.python(PRELUDE + """
def make(*a):
    try:
        socket.socket(*a).close()
        return "made"
    except OSError as error: return name(error)
tell([make(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), make(socket.AF_INET6, socket.SOCK_RAW, 58),
      make(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), make(socket.AF_PACKET, socket.SOCK_RAW, 0),
      make(socket.AF_VSOCK, socket.SOCK_STREAM), make(socket.AF_INET, socket.SOCK_STREAM, 262),
      make(socket.AF_INET, socket.SOCK_DGRAM, 136), make(socket.AF_INET, socket.SOCK_STREAM, 132)])
""")
    results = ran.json()
    assert "made" not in results, results
    assert results[5] == "EPROTONOSUPPORT"  # programs that try MPTCP go on with TCP


@pytest.mark.parametrize("server", [world_module.GATEWAY, "8.8.8.8", ADDRESS, "127.0.0.1",
                                    "2001:4860:4860::8888", "10.1.2.3"])
@pytest.mark.parametrize("transport", ["+notcp", "+tcp"])
def test_questions_to_any_server_are_answered_by_nd7(place, world, server, transport):
    before = len(world.questions())
    ran = place.session(["dig", "+time=5", "+tries=1", "+noedns", transport, "+short", f"@{server}",
                         "four.test", "A"])
    assert ran.status == 0 and ran.out.split() == ["8.8.4.4"], ran
    assert ran.of("resolve", name="four.test", type="A")[0]["answers"] == ["8.8.4.4"]
    assert not ran.refused(would="connect"), ran.refused()
    # The world was asked by nd7, or not at all; and only at its own server.
    assert {q["from"] for q in world.questions()[before:]} <= {world_module.MACHINE}


def test_the_reason_for_an_empty_answer_is_said_to_who_asks_for_it(place):
    ran = place.session(["dig", "+time=5", "+tries=1", "inward.test", "A"])
    assert "10.1.2.3 (private range)" in ran.out, ran


# --- this machine ------------------------------------------------------------------------------------


SERVE = PRELUDE + r"""
def serve(family, bind, v6only=None):
    s = socket.socket(family)
    if v6only is not None: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if bind is not None: s.bind((bind, 0))
    s.listen(16)
    def accept():
        while True:
            try: c, _ = s.accept()
            except OSError: return
            c.sendall(b"hello")
            c.close()
    threading.Thread(target=accept, daemon=True).start()
    return s.getsockname()[:2]
"""


def test_servers_of_the_session(place):
    probe = SERVE + """
out = {}
def use(title, family, bind, targets, v6only=None):
    shown, port = serve(family, bind, v6only)
    out[title] = [shown] + [attempt(t, port) for t in targets]
    try: socket.create_connection(("localhost", port), 5).close()
    except OSError as error: out[title + " by name"] = name(error)
every = ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"]
use("four", socket.AF_INET, "127.0.0.1", every)
use("six", socket.AF_INET6, "::1", every)
use("any", socket.AF_INET, "0.0.0.0", every)
use("any six", socket.AF_INET6, "::", every, 0)
use("only six", socket.AF_INET6, "::", every, 1)
use("unbound", socket.AF_INET, None, ["127.0.0.1", "::1"])
use("unbound six", socket.AF_INET6, None, every, 0)
use("unbound only six", socket.AF_INET6, None, every, 1)
tell(out)
"""
    process, native = outside(place, probe)
    end(process)
    ran = place.python(probe)
    results = ran.json()
    assert native["unbound"][0] == "0.0.0.0"
    native["unbound"][0] = "127.0.0.1"  # bound to loopback by nd7
    assert results == native
    assert results["four"] == ["127.0.0.1", "ok", "ECONNREFUSED", "ECONNREFUSED", "ok", "ECONNREFUSED", "ok"]
    assert not ran.refused(would="connect", op="connect") and not ran.refused(would="listen")
    assert len(ran.of("listen")) == 8
    assert all(body["name"] is None for body in ran.of("connect"))


def test_a_wildcard_server_is_not_reached_from_the_world(place, world):
    process, session = place.background([PYTHON, "-c", SERVE + """
ports = [serve(socket.AF_INET, "0.0.0.0")[1], serve(socket.AF_INET6, "::", 0)[1], serve(socket.AF_INET, None)[1],
         serve(socket.AF_INET6, None)[1]]
tell(ports)
while not os.path.exists("enough"): time.sleep(0.05)
"""])
    ports = json.loads(process.stdout.readline())

    def from_world(port):
        probe = PRELUDE + f"tell([attempt(a, {port}, timeout=1) for a in " \
            f"({world_module.MACHINE!r}, {world_module.MACHINE6!r})])"
        ran = subprocess.run(["nsenter", "-t", str(world.outside.pid), "-n", PYTHON, "-c", probe],
                             capture_output=True, text=True, timeout=20, check=True)
        return json.loads(ran.stdout)

    for port in ports:
        assert "ok" not in from_world(port), port
    # From this machine they are reached, and the witness sees a server that is open to the world.
    outsider, port = outside(place, SERVE + "tell(serve(socket.AF_INET6, '::', 0)[1])\ntime.sleep(60)")
    assert from_world(port) == ["ok", "ok"]
    end(outsider)
    outsider, results = outside(place, f"tell([attempt('127.0.0.1', p) for p in {ports[:3]}])")
    end(outsider)
    assert results == ["ok"] * 3
    (place.project / "enough").touch()
    assert process.wait(20) == 0
    (place.project / "enough").unlink()
    assert len([e for e in place.log(session) if e["kind"] == "listen"]) == 4


def test_listening_beyond_loopback_by_grant(place, world):
    process, _ = place.background([PYTHON, "-c", SERVE + """
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the other account was here
s.bind(("0.0.0.0", 3111))
s.listen(5)
tell("up")
c, _ = s.accept()
c.sendall(b"hello")
"""], "--listen", "0.0.0.0:3111")
    assert json.loads(process.stdout.readline()) == "up"
    ran = subprocess.run(
        ["nsenter", "-t", str(world.outside.pid), "-n", PYTHON, "-c", "import socket\n"
         f"print(socket.create_connection(('{world_module.MACHINE}', 3111), 5).recv(9))"],
        capture_output=True, text=True, timeout=20, check=False)
    assert "hello" in ran.stdout, ran.stderr
    assert process.wait(20) == 0


def test_a_server_of_somebody_else(place):
    outsider, port = outside(place, SERVE + "tell(serve(socket.AF_INET6, '::', 0)[1])\ntime.sleep(60)")
    probe = PRELUDE + f"""
tell([attempt("127.0.0.1", {port}), attempt("::1", {port}), attempt("0.0.0.0", {port}),
      attempt("::ffff:127.0.0.1", {port}), attempt("127.0.0.1", 1)])
"""
    ran = place.python(probe)
    assert ran.json() == ["EACCES"] * 4 + ["ECONNREFUSED"], ran
    refused = ran.refused(would="connect")
    assert len(refused) == 4 and {b["open_with"] for b in refused} == {f"nd7 allow --port {port}"}
    ran = place.python(probe, "--port", str(port))
    assert ran.json() == ["ok"] * 4 + ["ECONNREFUSED"], ran

    process, session = place.background([PYTHON, "-c", PRELUDE + f"""
last = None
while not os.path.exists("enough"):
    now = attempt("127.0.0.1", {port})
    if now != last: tell(now)
    last = now
    time.sleep(0.05)
"""])
    assert json.loads(process.stdout.readline()) == "EACCES"
    allow(place, session, "--port", str(port))
    assert json.loads(process.stdout.readline()) == "ok"
    allow(place, session, "--port", str(port), verb="deny")
    assert json.loads(process.stdout.readline()) == "EACCES"
    (place.project / "enough").touch()
    assert process.wait(20) == 0
    (place.project / "enough").unlink()
    end(outsider)


def test_a_port_of_somebody_else_cannot_be_joined(place):
    outsider, port = outside(place, """
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("127.0.0.1", 0))
s.listen(5)
tell(s.getsockname()[1])
time.sleep(60)
""")
    ran = place.python(PRELUDE + f"""
def join(port, address="127.0.0.1", family=socket.AF_INET):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try: s.bind((address, port))
    except OSError as error: return name(error)
    s.listen(5)
    kept.append(s)
    return "joined"
kept = []
own = join(0)
tell([join({port}), join({port}, "0.0.0.0"), join({port}, "::", socket.AF_INET6), own,
      join(kept[0].getsockname()[1])])
""")
    assert ran.json() == ["EADDRINUSE"] * 3 + ["joined", "joined"], ran
    assert len(ran.refused(would="listen", port=port)) == 3
    end(outsider)


def test_joining_by_a_race(place):
    """SO_REUSEPORT set by another thread between nd7's look and the call."""
    outsider, port = outside(place, """
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("127.0.0.1", 0))
s.listen(5)
tell(s.getsockname()[1])
time.sleep(60)
""")
    ran = place.python(PRELUDE + f"""
current, done = [None], False
def toggle():
    while not done:
        for value in (0, 1):
            try: current[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, value)
            except (OSError, AttributeError): pass
threading.Thread(target=toggle).start()
bound = joined = 0
until = time.monotonic() + 1.5
while time.monotonic() < until:
    s = current[0] = socket.socket()
    try:
        s.bind(("127.0.0.1", {port}))
        bound += 1
        s.listen(5)
        joined += 1
    except OSError: pass
done = True
tell(joined)
""")
    assert ran.json() == 0, ran
    end(outsider)


# --- unix sockets ------------------------------------------------------------------------------------


def test_own_unix_sockets(place):
    ran = place.python(PRELUDE + r"""
out = {}
def pair(title, path, connect=None):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(5)
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(5)
    c.connect(connect or path)
    a, _ = s.accept()
    a.sendall(b"x")
    text = lambda v: v if isinstance(v, str) else v.decode("latin-1")
    out[title] = [text(s.getsockname()), text(c.getpeername()), c.recv(5).decode()]
    return s, c, a
kept = []
base = os.environ["TMPDIR"]
kept.append(pair("relative", "rel.sock"))
kept.append(pair("dotted", "./dot.sock"))
kept.append(pair("absolute", base + "/abs.sock"))
os.symlink(base, "way")
kept.append(pair("by a link", "way/link.sock"))
kept.append(pair("abstract", "\0nd7-test-%d" % os.getpid()))
deep = base + "/" + "d" * 40
os.makedirs(deep)
for length in (106, 107):
    path = deep + "/" + "s" * (length - len(deep) - 1)
    assert len(path) == length
    kept.append(pair("long %d" % length, path))
os.chdir(deep)
kept.append(pair("from a deep directory", "here.sock"))
s = socket.socket(socket.AF_UNIX)
try: s.bind("here.sock")
except OSError as error: out["again"] = name(error)
s = socket.socket(socket.AF_UNIX)
try: s.connect("nobody.sock")
except OSError as error: out["missing"] = name(error)
s = socket.socket(socket.AF_UNIX); s.bind("stale.sock"); s.close()
s = socket.socket(socket.AF_UNIX)
try: s.connect("stale.sock")
except OSError as error: out["stale"] = name(error)
open("plain", "w").close()
try: s.connect("plain")
except OSError as error: out["plain"] = name(error)
os.umask(0o077)
s = socket.socket(socket.AF_UNIX); s.bind("private.sock")
out["mode"] = oct(os.stat("private.sock").st_mode & 0o777)
os.remove("private.sock")
s = socket.socket(socket.AF_UNIX); s.bind("private.sock"); s.listen(1)
c = socket.socket(socket.AF_UNIX); c.connect("private.sock")
os.rename("private.sock", "renamed.sock")
c = socket.socket(socket.AF_UNIX); c.connect("renamed.sock")
out["renamed"] = "ok"
q = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); q.bind("q.sock"); q.listen(1)
c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); c.connect("q.sock"); c.send(b"one"); c.send(b"two")
a, _ = q.accept()
out["seqpacket"] = [a.recv(99).decode(), a.recv(99).decode()]
out["base"], out["deep"] = base, deep
tell(out)
""")
    results = ran.json()
    base, deep = results["base"], results["deep"]
    assert results["relative"] == ["rel.sock", "rel.sock", "x"]
    assert results["dotted"] == ["./dot.sock", "./dot.sock", "x"]
    assert results["absolute"] == [base + "/abs.sock"] * 2 + ["x"]
    assert results["by a link"] == ["way/link.sock"] * 2 + ["x"]
    assert results["abstract"][0].startswith("\0nd7-test-") and results["abstract"][2] == "x"
    for length in (106, 107):
        assert len(results[f"long {length}"][0]) == length and results[f"long {length}"][2] == "x"
    assert results["from a deep directory"] == ["here.sock", "here.sock", "x"]
    assert (results["again"], results["missing"], results["stale"], results["plain"]) == (
        "EADDRINUSE", "ENOENT", "ECONNREFUSED", "ECONNREFUSED")
    assert results["mode"] == "0o700" and results["renamed"] == "ok"
    assert results["seqpacket"] == ["one", "two"]
    assert not ran.refused(), ran.refused()


def test_unix_sockets_of_somebody_else(place):
    top = place.root / "sockets"
    top.mkdir(exist_ok=True)
    place.own(top)
    outsider, facts = outside(place, f"""
import os
os.chdir({str(top)!r})
kept = []
visits = open("visits", "w", buffering=1)
for path in ("live.sock", "\\0nd7-outside-%d" % os.getpid(), "stale.sock", "dgram.sock"):
    if os.path.exists(path): os.remove(path)
    kind = socket.SOCK_DGRAM if path == "dgram.sock" else socket.SOCK_STREAM
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    if kind == socket.SOCK_STREAM: s.listen(5)
    if path == "stale.sock": s.close()
    kept.append(s)
tell(os.getpid())
for s in kept[:2]: s.settimeout(0.05)
while True:
    for s in kept[:2]:
        try: s.accept(); print("x", file=visits)
        except OSError: pass
""")
    probe = PRELUDE + f"""
def reach(path, kind=socket.SOCK_STREAM):
    try:
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect(path)
        return "ok"
    except OSError as error: return name(error)
os.path.islink("way-out") or os.symlink({str(top)!r}, "way-out")
tell([reach({str(top)!r} + "/live.sock"), reach("way-out/live.sock"), reach("\\0nd7-outside-{facts}"),
      reach({str(top)!r} + "/stale.sock"), reach({str(top)!r} + "/dgram.sock", socket.SOCK_DGRAM)])
"""
    ran = place.python(probe)
    assert ran.json() == ["EACCES", "EACCES", "EACCES", "ECONNREFUSED", "EACCES"], ran
    path = f"{top}/live.sock"
    bodies = ran.refused(addr=path)
    assert bodies and bodies[0]["open_with"] == f"nd7 allow --socket {path}", ran.refused()
    assert ran.refused(addr=f"@nd7-outside-{facts}")[0]["open_with"] is None
    time.sleep(0.3)
    assert (top / "visits").read_text() == "", "the other side must not notice what was refused"
    ran = place.python(probe, "--socket", path)
    assert ran.json()[:3] == ["ok", "ok", "EACCES"], ran
    wait_for(lambda: (top / "visits").read_text() == "x\nx\n", "the visits that were granted")
    end(outsider)


def test_a_name_that_became_somebody_elses(place):
    """A socket of the session is closed and another program takes its name, or its file's place."""
    process, _ = place.background([PYTHON, "-c", PRELUDE + """
abstract = "\\0nd7-left-%d" % os.getpid()
for path in (abstract, "left.sock"):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(1)
    c = socket.socket(socket.AF_UNIX)
    c.connect(path)
    s.close()
    c.close()
tell(abstract)
while not os.path.exists("taken"): time.sleep(0.02)
out = []
for path in (abstract, "left.sock"):
    try: socket.socket(socket.AF_UNIX).connect(path); out.append("ok")
    except OSError as error: out.append(name(error))
tell(out)
"""])
    abstract = json.loads(process.stdout.readline())
    file = place.project / "left.sock"
    number = file.stat().st_ino
    outsider, same = outside(place, f"""
import os
for attempt in range(50):
    os.remove({str(file)!r})
    s = socket.socket(socket.AF_UNIX)
    s.bind({str(file)!r})
    if os.stat({str(file)!r}).st_ino == {number}: break
s.listen(5)
a = socket.socket(socket.AF_UNIX)
a.bind({abstract!r})
a.listen(5)
tell(os.stat({str(file)!r}).st_ino == {number})
time.sleep(60)
""")
    (place.project / "taken").touch()
    assert json.loads(process.stdout.readline()) == ["EACCES", "EACCES"], f"same number: {same}"
    assert process.wait(20) == 0
    end(outsider)
    for path in (file, place.project / "taken"):
        path.unlink()


def test_a_full_backlog_holds_nobody_else(place):
    ran = place.python(PRELUDE + """
for path in ("\\0nd7-full-%d" % os.getpid(), "full.sock"):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(0)
    def connect():
        c = socket.socket(socket.AF_UNIX)
        c.connect(path)
        c.recv(1)
    threads = [threading.Thread(target=connect, daemon=True) for _ in range(6)]
    for t in threads: t.start()
    time.sleep(0.3)
    began = time.monotonic()
    open("written", "w").close()
    tell(time.monotonic() - began < 1)
    for _ in threads: s.accept()[0].close()
    for t in threads: t.join(5)
    tell(any(t.is_alive() for t in threads))
""", timeout=20)
    assert ran.out.split() == ["true", "false"] * 2, ran


def test_a_path_that_fills_the_address(place):
    """108 bytes and no NUL behind them, as only C can ask for."""
    ran = place.python(PRELUDE + r"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
base = os.getcwd() + "/"
path = (base + "p" * (108 - len(base))).encode()
address = (1).to_bytes(2, "little") + path
assert len(address) == 110
s, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
tell([libc.bind(s.fileno(), address, 110), ctypes.get_errno()])
s.listen(1)
tell([libc.connect(c.fileno(), address, 110), ctypes.get_errno()])
tell([os.listdir("."), len(s.getsockname())])
s = socket.socket(socket.AF_UNIX)
tell([libc.bind(s.fileno(), address + b"x", 111), ctypes.get_errno()])
""")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines[0][0] == 0 and lines[1][0] == 0, ran
    assert any(set(entry) == {"p"} for entry in lines[2][0]) and lines[2][1] == 108
    assert lines[3] == [-1, 22]  # EINVAL


def test_a_datagram_pair_keeps_its_manners(place):
    ran = place.python(PRELUDE + """
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.send(b"one"); a.send(b"two"); b.send(b"back"); a.send(b"x" * 1000)
out = [b.recv(99).decode(), b.recv(99).decode(), a.recv(99).decode(), len(b.recv(10))]
b.setblocking(False)
try: b.recv(1)
except OSError as error: out.append(name(error))
a.close()
out.append(os.get_inheritable(b.fileno()))
pid = os.fork()
if pid == 0: os._exit(0 if b.fileno() > 2 else 1)
out.append(os.waitpid(pid, 0)[1])
tell(out)
""")
    assert ran.json() == ["one", "two", "back", 10, "EAGAIN", False, 0], ran


# --- connections that take long ----------------------------------------------------------------------


def test_a_connect_that_nobody_answers_hears_signals(place):
    ran = place.python(PRELUDE + f"""
class Rang(Exception): pass
def ring(*_): raise Rang
signal.signal(signal.SIGALRM, ring)
signal.siginterrupt(signal.SIGALRM, True)
out = []
signal.setitimer(signal.ITIMER_REAL, 0.3)
began = time.monotonic()
try:
    socket.socket().connect(({DEAF!r}, 443))
except Rang:
    out.append(time.monotonic() - began)
# A child in the same state is killed by TERM.
pid = os.fork()
if pid == 0:
    socket.socket().connect(({DEAF!r}, 443))
    os._exit(0)
time.sleep(0.3)
os.kill(pid, signal.SIGTERM)
began = time.monotonic()
out.append(os.WTERMSIG(os.waitpid(pid, 0)[1]))
out.append(time.monotonic() - began)
# A timeout of the socket's own holds.
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (0).to_bytes(8, "little") + (300000).to_bytes(8, "little"))
try: s.connect(({DEAF!r}, 443))
except OSError as error: out.append(name(error))
# With SA_RESTART the handler runs, and the call goes on (python's own handler waits for its end; the
# byte comes from the signal's).
heard, said = os.pipe()
os.set_blocking(said, False)
pid = os.fork()
if pid == 0:
    signal.set_wakeup_fd(said)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    socket.socket().connect(({DEAF!r}, 443))
    os._exit(0)
out.append(len(os.read(heard, 1)))
time.sleep(0.3)
out.append(os.waitpid(pid, os.WNOHANG)[0] == 0)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
tell(out)
""")
    first, number, after, last, byte, going_on = ran.json()
    assert 0.25 < first < 1.5, ran
    assert number == signal.SIGTERM and after < 1
    assert last in ("EINPROGRESS", "EAGAIN", "ETIMEDOUT"), last
    assert (byte, going_on) == (1, True)


def test_a_connect_without_blocking(place):
    ran = place.python(PRELUDE + f"""
out = []
for address in ({ADDRESS!r}, {DEAF!r}):
    s = socket.socket()
    s.setblocking(False)
    began = time.monotonic()
    error = s.connect_ex((address, 443))
    out += [errno.errorcode[error], time.monotonic() - began < 0.5]
    ready = select.select([], [s], [], 1.5)[1]
    out.append(bool(ready) and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    out.append(errno.errorcode.get(s.connect_ex((address, 443)), 0))
tell(out)
""")
    assert ran.json() == ["EINPROGRESS", True, 0, 0, "EINPROGRESS", True, False, "EALREADY"], ran


def test_two_hundred_connections_at_once(place):
    ran = place.python(PRELUDE + f"""
gate = threading.Barrier(200)
out, kept = [], []
def one(index):
    gate.wait()
    s = socket.socket()
    s.settimeout(30)
    if index % 2: s.setblocking(True)
    try:
        s.connect(({ADDRESS!r}, 443))
        s.getpeername()
        out.append("ok")
    except OSError as error: out.append(name(error))
    kept.append(s)
threads = [threading.Thread(target=one, args=(i,)) for i in range(200)]
for t in threads: t.start()
for t in threads: t.join()
tell(sorted(set(out)) + [len(out)])
""")
    assert ran.json() == ["ok", 200], ran
    assert len(ran.of("connect", addr=ADDRESS, port=443)) == 200


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
