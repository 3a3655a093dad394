"""A session where no network namespace can be made (no_namespaces.py): UDP is refused, names resolve
over TCP, programs that know no resolver of their own go through the proxy, and nd7 says so."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

import world as world_module
from inside import PYTHON, Inside, program, readable

NAME, ADDRESS = "example.com", "93.184.216.34"
ZONE = {NAME: {"A": [ADDRESS], "AAAA": ["2606:2800::1"]}, "inward.test": {"A": ["10.1.2.3"]},
        "shared.test": {"A": [ADDRESS]}}


@pytest.fixture(scope="module")
def world():
    reason = world_module.skip_reason()
    if reason:
        pytest.skip(reason)
    top = Path(tempfile.mkdtemp(prefix="nd7-world-"))
    top.chmod(0o755)
    with world_module.World(top, zone=ZONE) as made:
        made.https_at(8443)
        yield made
    shutil.rmtree(top)


@pytest.fixture(scope="module", params=["user", "root"])
def place(request, world):
    with Inside(world, request.param) as made:
        yield made


def without(*command):
    return [PYTHON, readable(Path(__file__).with_name("no_namespaces.py")), *command]


def session(place, command, *options, **more):
    return place.session(command, *options, wrapper=without(), **more)


def test_the_wrapper_takes_namespaces_away(place):
    for flags in (["-U"], ["-n"], ["-U", "-n"]):
        ran = place.run(without("unshare", *flags, "true"))
        assert ran.status != 0 and "not permitted" in ran.err, ran
    assert place.run(["unshare", "-U", "-n", "true"]).status == 0, "none to take away here"


def test_it_is_said_at_the_start_in_the_log_and_by_doctor(place):
    ran = session(place, ["true"])
    assert ran.status == 0, ran
    assert ran.err.count("no network namespace") == 1 and "UDP is refused" in ran.err, ran.err
    assert "Operation not permitted" in ran.err
    network = ran.of("start")[0]["network"]
    assert network["parked"] is False and "UDP is refused" in network["note"]
    doctor = place.run(without(program(), "doctor"))
    assert doctor.status == 1 and "bad  no network namespace: UDP is refused" in doctor.out, doctor
    # With namespaces nothing of it is said.
    ran = place.session(["sh", "-c", "env | grep -qiE '^(https?_proxy|RES_OPTIONS)='"])
    assert ran.status == 1 and ran.err == "", ran
    assert ran.of("start")[0]["network"] == {"parked": True}


def test_files_are_served_as_well(place):
    """Docker's default profile refuses every unshare, that of the working directory too."""
    ran = session(place, ["sh", "-ec", """
rm -rf made; umask 027; mkdir -p made/deep; echo text > made/deep/file; mkfifo made/pipe
ln -s deep made/way; cat made/way/file; cd made/deep; pwd; stat -c %a . file ../pipe
for i in 1 2 3 4 5 6 7 8; do (mkdir d$i; umask 07$((i % 8)); echo x > d$i/f; stat -c %a d$i/f) & done; wait
"""])
    assert ran.status == 0, ran
    lines = ran.out.splitlines()
    assert lines[:5] == ["text", f"{place.project}/made/deep", "750", "640", "640"], ran
    assert sorted(lines[5:]) == sorted(f"{0o666 & ~(0o070 | i % 8):o}" for i in range(1, 9)), ran


def test_udp_is_refused(place):
    ran = session(place, [PYTHON, "-c", """
import errno, json, socket
out = []
for family in (socket.AF_INET, socket.AF_INET6):
    try: socket.socket(family, socket.SOCK_DGRAM); out.append("made")
    except OSError as error: out.append(errno.errorcode[error.errno])
print(json.dumps(out))
"""])
    assert ran.json() == ["EACCES", "EACCES"], ran
    assert len(ran.refused(op="socket")) == 2


def test_glibc_resolves_over_tcp(place):
    ran = session(place, [PYTHON, "-c", f"""
import json, os, socket, ssl
out = [os.environ["RES_OPTIONS"], sorted(a[4][0] for a in socket.getaddrinfo({NAME!r}, 443, 0, 1))]
with ssl.create_default_context().wrap_socket(socket.create_connection(({NAME!r}, 443)),
                                              server_hostname={NAME!r}) as s:
    out.append(s.version())
try: socket.getaddrinfo("inward.test", 443)
except socket.gaierror as error: out.append(error.errno in (socket.EAI_NODATA, socket.EAI_NONAME))
print(json.dumps(out))
"""])
    assert ran.json() == ["use-vc", sorted([ADDRESS, "2606:2800::1"]), "TLSv1.3", True], ran
    asked = ran.of("connect", port=53)
    assert asked and all(body["name"] == "nd7's resolver" for body in asked)
    assert ran.of("connect", name=NAME, port=443)
    assert any("points at" in (body["refused"] or "") for body in ran.of("resolve", name="inward.test"))


def test_options_of_the_resolver_stay(place):
    ran = session(place, ["sh", "-c", "echo $RES_OPTIONS"],
                  env=place.environment(RES_OPTIONS="timeout:3"))
    assert ran.out == "timeout:3 use-vc\n", ran


def test_curl_goes_through_the_proxy(place):
    ran = session(place, ["curl", "-sSv", f"https://{NAME}/x"],
                  env=place.environment(https_proxy="http://10.1.2.3:3128", HTTPS_PROXY="http://x"))
    assert ran.status == 0 and "CONNECT tunnel established" in ran.err, ran
    seen = json.loads(ran.out)
    assert (seen["sni"], seen["path"]) == (NAME, "/x")
    made = ran.of("connect", via="proxy")
    assert len(made) == 1, ran.of("connect")
    assert (made[0]["addr"], made[0]["port"], made[0]["name"]) == (ADDRESS, 443, NAME)
    direct = ran.of("connect", name="nd7's proxy")
    assert direct and made[0]["pid"] == direct[0]["pid"]  # it is curl's own connection
    # Without the proxy it works too: curl's resolver is glibc's.
    ran = session(place, ["curl", "-sS", "--noproxy", "*", f"https://{NAME}/y"])
    assert ran.status == 0 and not ran.of("connect", via="proxy"), ran


def test_the_proxy_decides_as_the_gate_does(place):
    for target, status in ((f"{NAME}:8443", 403), ("10.1.2.3", 403), ("169.254.169.254", 403),
                           (world_module.GATEWAY, 403), ("127.0.0.1:1", 403), ("inward.test", 502)):
        ran = session(place, ["curl", "-sS", "--noproxy", "", f"https://{target}/"])
        assert ran.status == 56 and f"response {status}" in ran.err, (target, ran)
        if status == 403:
            refused = ran.refused(would="connect", op="connect")
            assert len(refused) == 1 and refused[0]["pid"], (target, ran.refused())
            assert "1 distinct thing was refused" in ran.err
    assert f"nd7 allow --host {NAME}:8443" in session(
        place, ["curl", "-sS", f"https://{NAME}:8443/"]).err
    ran = session(place, ["curl", "-sS", f"https://{NAME}:8443/"], "--host", f"{NAME}:8443")
    assert ran.status == 0 and ran.of("connect", via="proxy", port=8443), ran
    ran = session(place, ["curl", "-sSk", "https://inward.test/"], "--host", "inward.test")
    assert ran.status == 0 and ran.of("connect", via="proxy", addr="10.1.2.3"), ran


def test_servers_of_the_session_are_reached_directly(place):
    ran = session(place, ["sh", "-c", f"{PYTHON} -m http.server --bind 127.0.0.1 8765 >/dev/null 2>&1 & "
                          "for i in 1 2 3 4 5 6 7 8 9; do curl -sS http://localhost:8765/ >page 2>error "
                          "&& break; sleep 0.2; done; grep -c listing page; kill $!"])
    assert ran.status == 0 and int(ran.out) > 0, ran


def test_nobody_else_uses_the_ports(place, world):
    process = place.start(without(program(), "run", "--", "sh", "-c", "echo $HTTPS_PROXY; sleep 20"))
    url = process.stdout.readline().decode().strip()
    assert url.startswith("http://127.0.0.1:")
    ran = place.run(["curl", "-sS", "-m", "5", "--proxy", url, f"https://{NAME}/"])
    assert ran.status in (52, 56), ran  # closed without a word
    process.terminate()
    process.wait(20)
