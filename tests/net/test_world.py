"""The test internet does what the tests that use it rely on."""

import json
import subprocess
import sys

RESOLVE = ("import socket,sys\n"
           "try: print(sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1], 443)}))\n"
           "except socket.gaierror as e: print('error', e.strerror)")


def resolve(world, name, **options):
    return world.run([sys.executable, "-c", RESOLVE, name], **options).stdout.strip()


def test_https_to_a_public_looking_address_by_name(make_world):
    world = make_world(zone={"example.com": {"A": ["93.184.216.34"], "AAAA": ["2606:2800::1"]}})
    for family, local in (("-4", "93.184.216.34"), ("-6", "2606:2800::1")):
        got = world.run(["curl", "-sS", family, "--cacert", world.ca, "https://example.com/x"])
        assert got.returncode == 0, got.stderr
        seen = json.loads(got.stdout)
        assert (seen["sni"], seen["local"], seen["path"]) == ("example.com", local, "/x")
    assert {q["name"] for q in world.questions()} == {"example.com"}
    refused = world.run(["curl", "-sS", "https://example.com/"])
    assert refused.returncode == 60, "without the CA the certificate must not pass"
    assert "error" in world.connections()[-1]


def test_an_ordinary_user_sees_the_same(make_world):
    world = make_world(zone={"example.com": {"A": ["93.184.216.34"]}})
    assert resolve(world, "example.com", uid=54321) == "['93.184.216.34']"


def test_no_address_of_the_world_is_the_machines_own_or_a_neighbour(make_world):
    world = make_world(zone={}, https=False)
    route = world.run(["ip", "route", "get", "93.184.216.34"]).stdout
    assert "via 10.77.0.1" in route


def test_lies_of_the_dns_server(make_world):
    world = make_world(https=False, zone={
        "flip.test": {"A": [["93.184.216.34"], ["127.0.0.1"]], "ttl": 0},
        "cut.test": {"A": [f"8.8.8.{i}" for i in range(40)], "truncate": True},
        "alias.test": {"CNAME": "flip.test"}, "loop.test": {"CNAME": "loop.test"},
        "forged.test": {"A": ["8.8.4.4"], "forge": ["6.6.6.6"]},
        "flaky.test": {"A": ["8.8.4.4"], "rcode": 2, "fail": 1}})
    assert resolve(world, "flip.test") == "['93.184.216.34']"
    assert resolve(world, "flip.test") == "['127.0.0.1']"
    assert resolve(world, "cut.test").count("8.8.8.") == 40
    assert {q["transport"] for q in world.questions() if q["name"] == "cut.test"} == {"udp", "tcp"}
    assert resolve(world, "alias.test") == "['127.0.0.1']"
    assert resolve(world, "loop.test").startswith("error")
    assert resolve(world, "forged.test") == "['8.8.4.4']"
    assert resolve(world, "flaky.test") == "['8.8.4.4']"
    assert resolve(world, "nowhere.test").startswith("error")
    world.set_zone({"nowhere.test": {"A": ["8.8.4.4"]}})
    assert resolve(world, "nowhere.test") == "['8.8.4.4']"


def test_the_hosts_own_network_is_untouched(make_world):
    with open("/etc/resolv.conf", "rb") as file:
        before = file.read()
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, check=True).stdout
    world = make_world(zone={}, https=False)
    assert world.run(["cat", "/etc/resolv.conf"]).stdout == "nameserver 10.77.0.1\n"
    with open("/etc/resolv.conf", "rb") as file:
        assert file.read() == before
    assert subprocess.run(["ip", "-o", "link"], capture_output=True, check=True).stdout == links
