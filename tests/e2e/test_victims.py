"""Every victim: works natively, is refused in a session, and the refusal is on record.

The victims run in one session a group, each in a process of its own, so that one session's log
tells them apart by pid.
"""

import os
import re
import subprocess

import pytest

import place as places


def lines(rows):
    return "\n" + "\n".join(" ".join(str(item) for item in row) for row in rows)


class Victim:
    def __init__(self, line):
        self.name, calls, errors, flags = line.split("\t")
        self.calls, self.errors = calls.split(), errors.split()
        self.flags = set(flags.split(",")) - {""}
        self.group = self.name.split("/")[0] if "/" in self.name else "plain"


def all_victims(tools):
    out = subprocess.run([tools.victims, "list"], check=True, capture_output=True, text=True).stdout
    return [Victim(line) for line in out.splitlines()]


PARTS = {
    "plain": lambda v: "/" not in v.name and "race" not in v.flags,
    "write": lambda v: re.match(r"(open|reopen|creat|truncate)", v.name) and "/" in v.name,
    "names": lambda v: re.match(r"(unlink|rmdir|mk|symlink|rename|link|bind)", v.name) and
             "/" in v.name,
    "metadata": lambda v: re.match(r"(ch|fch|lch|ut|fut|set|lset|rem|lrem)", v.name) and
                "/" in v.name,
    "secret": lambda v: v.name.startswith("secret-"),
    "races": lambda v: "race" in v.flags,
}


def part(tools, name):
    return [v for v in all_victims(tools) if PARTS[name](v)]


def test_every_victim_is_in_one_part(tools):
    for victim in all_victims(tools):
        assert [n for n, has in PARTS.items() if has(victim)] in [[n] for n in PARTS], victim.name


def test_every_call_of_the_table_has_a_victim(tools):
    """Rows of the table that are trapped, refused or ruled, against the calls of the victims."""
    text = (places.ROOT / "src" / "gate" / "syscalls.def").read_text()
    rows = re.findall(r"^(CALL|LEGACY)\((\w+), (trap|rules|refuse)", text, re.M)
    covered = {call for v in all_victims(tools) for call in v.calls}
    # Not forbidden as such, or without anything to reach by them.
    elsewhere = {
        "execve": "recorded, not refused: test_work.py", "execveat": "as execve",
        "uselib": "gone", "_sysctl": "gone", "ustat": "gone", "create_module": "gone",
        "get_kernel_syms": "gone", "query_module": "gone", "getpmsg": "gone", "putpmsg": "gone",
        "afs_syscall": "gone", "tuxcall": "gone", "security": "gone", "vserver": "gone",
        "epoll_ctl_old": "gone", "epoll_wait_old": "gone",
        "vhangup": "would hang up the terminal of whoever runs the test natively",
    }
    missing = [name for _, name, _ in rows if name not in covered and name not in elsewhere]
    assert missing == [], "no victim tries these"
    assert [c for c in elsewhere if c in covered] == [], "listed as untried, but tried"


def fits_natively(victim, account):
    return ("not-native" not in victim.flags and
            not ("root" in victim.flags and not account.is_root) and
            not ("user" in victim.flags and account.is_root))


# Reasons a victim may give natively for not being able to try: what the machine lacks.
LACKS = ("no IPv6", "no message queues here", "no disk here",
         "not on this machine")
# Errors by which this machine's kernel says that it has no such thing at all.
ABSENT = {"ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENXIO", "ENODEV",
          "EOPNOTSUPP", "ENOTTY"}


@pytest.mark.native
@pytest.mark.parametrize("name", [n for n in PARTS if n != "races"])
def test_native(bare_place, tools, name):
    """Without a session the forbidden thing works: otherwise a refusal would prove nothing."""
    wrong = []
    for victim in part(tools, name):
        if not fits_natively(victim, bare_place.account):
            continue
        world = bare_place.world()
        ran = bare_place.native([tools.victims, "each", world.path, "1", victim.name])
        world.close()
        fields = ran.out.rstrip("\n").split("\t")
        status, words = fields[2], fields[3].strip() if len(fields) > 3 else ""
        if status == "0" or (status == "20" and words.startswith(LACKS)) or \
           (status == "10" and words in ABSENT and "/" not in victim.name):
            continue
        wrong.append((victim.name, status, words, ran.err.strip()))
    assert not wrong, lines(wrong)


@pytest.mark.native
def test_native_races(bare_place, tools):
    """The races are real ones: each is won natively within two seconds."""
    lost = []
    for victim in part(tools, "races"):
        world = bare_place.world()
        ran = bare_place.native([tools.victims, "each", world.path, "2", victim.name])
        world.close()
        if ran.out.split("\t")[2] != "0":
            lost.append((victim.name, ran.out + ran.err))
    assert not lost, lines(lost)


def check_refused(place, tools, victims, seconds):
    world = place.world()
    place.expect_changes("outside")
    ran = place.run([tools.victims, "each", world.path, str(seconds), *[v.name for v in victims]],
                    timeout=120 + len(victims) * (seconds + 1))
    assert ran.status == 0, ran
    results = {}
    for line in ran.out.splitlines():
        fields = line.split("\t")
        assert len(fields) == 4, line
        results[fields[0]] = (int(fields[1]), fields[2], fields[3].split())
    recorded = {}
    for body in ran.session.refused():
        recorded.setdefault(body["pid"], []).append(body)
    wrong = []
    for victim in victims:
        if victim.name not in results:
            wrong.append((victim.name, "gave no result"))
            continue
        pid, status, words = results[victim.name]
        if status == "20" and " ".join(words).startswith(LACKS):
            continue
        if status != "10":
            wrong.append((victim.name, "WORKED" if status == "0" else status, words))
        elif words[0] not in victim.errors and not (
                # what only root may do natively is refused by the kernel in its own way
                "root" in victim.flags and not place.account.is_root and
                words[0] in ("EPERM", "EACCES", "ENOENT", "ENOSYS", "ENXIO")):
            wrong.append((victim.name, words[0], "expected", victim.errors))
        elif "gate" in victim.flags and "root" not in victim.flags and pid not in recorded:
            wrong.append((victim.name, words[0], "refused, but not on record"))
    assert not wrong, lines(wrong)
    assert world.alive(), "the process outside was ended"
    assert world.changed() == []
    return ran, results, recorded


@pytest.mark.parametrize("name", [n for n in PARTS if n != "races"])
def test_refused(place, tools, name):
    ran, results, recorded = check_refused(place, tools, part(tools, name), 1)
    if name in ("write", "names", "metadata"):
        # The record names the real object, whatever way it was spelled.
        outside = str(place.home / "outside")
        wrong = []
        for victim in part(tools, name):
            bodies = recorded.get(results[victim.name][0], [])
            if not any(str(b.get(k, "")).startswith(outside) for b in bodies
                       for k in ("path", "from", "to")):
                wrong.append((victim.name, bodies))
        assert not wrong, lines(wrong)
    if name == "secret":
        assert place.token(".ssh/id_ed25519") not in ran.out


def test_races_are_lost(place, tools, race_seconds):
    check_refused(place, tools, part(tools, "races"), race_seconds)
