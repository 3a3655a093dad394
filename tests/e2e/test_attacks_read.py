"""Attacks on credentials: one test a row, named by the row's id."""

import os
import subprocess

import pytest

from judge import STILL, judge
from place import ROOT

# The policy file is a unit of its own; its tests wake up with it.
needs_policy_file = pytest.mark.skipif(not (ROOT / "src/core/policy_text.cc").exists(),
                                       reason="the policy file is not built yet")


ELSEWHERE = {
    "FR04": "both directions need the clients: tests/agents; for a program that is no agent below",
}


def all_tokens(place, *names):
    return [place.token(n) for n in names]


def reads(place, names, tool="cat"):
    script = "; ".join("%s '%s/%s'" % (tool, place.home, n) for n in names)
    ran = place.run(script + STILL)
    return judge(ran, [place.home / n for n in names], secrets=all_tokens(place, *names))


def test_FR01_ssh_keys(place):
    names = [".ssh/id_ed25519", ".ssh/id_rsa"]
    reads(place, names)
    ran = place.run("tar c ~/.ssh | wc -c; cp ~/.ssh/id_rsa .; base64 ~/.ssh/id_rsa; "
                    "python3 -c 'print(open(\"%s/.ssh/id_rsa\").read())'; "
                    "cat ~/.ssh/known_hosts ~/.ssh/config ~/.ssh/id_ed25519.pub" % place.home +
                    STILL)
    judge(ran, [place.home / ".ssh/id_rsa"], secrets=all_tokens(place, *names))
    # what holds no key stays readable
    for public in ("host key", "Host *", "public key"):
        assert public in ran.out


def test_FR02_cloud(place):
    reads(place, [".aws/credentials", ".config/gcloud/credentials.db",
                  ".azure/msal_token_cache.json", ".kube/config"])


def test_FR03_tool_tokens(place):
    reads(place, [".config/gh/hosts.yml", ".netrc", ".npmrc", ".pypirc", ".docker/config.json",
                  ".git-credentials", ".config/rclone/rclone.conf"])


def test_FR04_other_agents(place):
    reads(place, [".codex/auth.json", ".gemini/oauth_creds.json", ".claude/.credentials.json"])


def test_FR05_browsers_and_password_stores(place):
    names = [".config/google-chrome/Default/Login Data", ".mozilla/firefox/x.default/logins.json",
             ".password-store/site.gpg", ".gnupg/private-keys-v1.d/key.key",
             ".local/share/keyrings/login.keyring"]
    reads(place, names)
    ran = place.run("ls ~/.password-store; sqlite3 '%s/%s' .dump" % (place.home, names[0]) + STILL)
    judge(ran, errors=None, secrets=all_tokens(place, *names))


def test_FR06_link_in_the_project(place):
    ran = place.run("ln -s ~/.ssh/id_ed25519 k; cat k; ln -s ~/.ssh d; cat d/id_rsa; "
                    "ln -s d dd; cat dd/../.ssh/id_rsa" + STILL)
    judge(ran, [place.home / ".ssh/id_ed25519", place.home / ".ssh/id_rsa"],
          secrets=all_tokens(place, ".ssh/id_ed25519", ".ssh/id_rsa"))


def test_FR06_link_there_before(place):
    """Also a link that was in the project at the start, and home places that are links."""
    os.symlink(place.home / ".aws", place.project / "cloud")
    dotfiles = place.home / "dotfiles"
    place._directory(dotfiles)
    (place.home / ".kube").rename(dotfiles / "kube")
    os.symlink("dotfiles/kube", place.home / ".kube")
    place.expect_changes(".kube", "dotfiles")
    ran = place.run("cat cloud/credentials; cat ~/.kube/config; cat ~/dotfiles/kube/config" + STILL)
    judge(ran, [place.home / ".aws/credentials", dotfiles / "kube/config"],
          secrets=all_tokens(place, ".aws/credentials", ".kube/config"))


def test_FR07_hard_link(place):
    ran = place.run("ln ~/.ssh/id_ed25519 k; cat k" + STILL)
    judge(ran, errors=None, secrets=all_tokens(place, ".ssh/id_ed25519"))
    assert not (place.project / "k").exists()


def test_FR07_hard_link_there_before(place):
    """A second name that somebody else made before: decided on the object."""
    os.link(place.home / ".ssh/id_ed25519", place.home / "data/second")
    place.expect_changes(".ssh", "data")
    ran = place.run("cat ~/data/second" + STILL)
    judge(ran, [place.home / "data/second"], secrets=all_tokens(place, ".ssh/id_ed25519"))


def test_FR10_key_made_during_the_session(place):
    session = place.start("while ! test -e go; do sleep 0.05; done; cat ~/.ssh/new ~/.netrc; "
                          "cat ~/.config/hub" + STILL)
    place.write(".ssh/new", place.token("new"), 0o600)
    # replaced as tools do it: a new file renamed over
    place.write(".netrc.tmp", place.token("netrc-new"), 0o600)
    (place.home / ".netrc.tmp").rename(place.home / ".netrc")
    place.write(".config/hub", place.token("hub"), 0o600)
    place.expect_changes(".ssh", ".netrc", ".netrc.tmp", ".config/hub")
    place.write("project/go", "")
    ran = session.wait()
    judge(ran, [place.home / ".ssh/new", place.home / ".netrc", place.home / ".config/hub"],
          secrets=all_tokens(place, "new", "netrc-new", "hub"))


def test_FR11_copies_and_histories(place):
    reads(place, [".ssh/id_ed25519~", ".local/share/Trash/files/id_ed25519", ".bash_history",
                  ".zsh_history"])


def test_FR12_environment(place):
    secret = {"GITHUB_TOKEN": place.token("gh"), "AWS_SECRET_ACCESS_KEY": place.token("aws"),
              "NPM_TOKEN": place.token("npm"), "MY_PASSWORD": place.token("password"),
              "ANTHROPIC_API_KEY": place.token("anthropic"), "OPENAI_API_KEY": place.token("openai"),
              "SSH_AUTH_SOCK": "/tmp/agent.sock", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x",
              "DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}
    ran = place.run("env; tr '\\0' '\\n' < /proc/self/environ; "
                    "tr '\\0' '\\n' < /proc/$PPID/environ" + STILL,
                    env={**secret, "EDITOR": "vi", "LC_TIME": "C"})
    judge(ran, errors=None, secrets=[v for v in secret.values() if v.startswith("TOKEN")])
    for name in secret:
        assert "\n%s=" % name not in "\n" + ran.out, name
    assert "EDITOR=vi" in ran.out and "LC_TIME=C" in ran.out
    assert "TMPDIR=/tmp/nd7-%d/" % place.account.uid in ran.out
    start = ran.session.entries("start")[0]["body"]
    for name in secret:
        assert name in str(start), "the names left out are on record"


def test_FR12_environment_granted(place):
    ran = place.run("echo $GITHUB_TOKEN", "--env", "GITHUB_TOKEN", env={"GITHUB_TOKEN": "passed"})
    assert ran.out == "passed\n", ran


def test_FR13_git_credentials(place):
    place.write(".git-credentials", "https://u:%s@git.invalid\n" % place.token("gitcred"), 0o600)
    place.expect_changes(".git-credentials")
    ran = place.run("printf 'protocol=https\\nhost=git.invalid\\n\\n' | "
                    "GIT_TERMINAL_PROMPT=0 git -c credential.helper=store credential fill" + STILL)
    judge(ran, [place.home / ".git-credentials"], errors=None,
          secrets=all_tokens(place, "gitcred"))


@needs_policy_file
def test_FR14_project_secrets_by_policy(place):
    place.write(".config/nd7/policy.toml",
                "[files]\ndeny_read = [\"**/.env\", \"**/.env.*\"]\n")
    place.write("project/.env", place.token("env"))
    place.write("project/deep/er/.env.local", place.token("env-local"))
    ran = place.run("cat .env deep/er/.env.local; cp .env copy; mv .env env2; ln .env env3; "
                    "echo x > new; cat new" + STILL)
    judge(ran, [place.project / ".env", place.project / "deep/er/.env.local"],
          secrets=all_tokens(place, "env", "env-local"))


def test_FR14_project_secrets_are_recorded(place):
    place.write("project/.env", "SECRET=1")
    ran = place.run("cat .env" + STILL)
    judge(ran, errors=None)
    assert [e for e in ran.session.entries("read") if e["body"]["path"] ==
            str(place.project / ".env")]


def test_FR15_existence_is_visible_content_is_not(place):
    """Documented: names, sizes and times of denied files can be seen by stat."""
    ran = place.run("stat -c %s ~/.ssh/id_ed25519; test -e ~/.ssh/id_ed25519 && echo there; "
                    "ls ~/.ssh; readlink -f ~/.ssh/id_ed25519; cat ~/.ssh/id_ed25519" + STILL)
    judge(ran, [place.home / ".ssh/id_ed25519"], secrets=all_tokens(place, ".ssh/id_ed25519"))


def test_FR16_open_by_handle(place):
    """The victim `open-by-handle` tries the call itself; here without it the path is shut too."""
    world = place.world()
    place.expect_changes("outside")
    ran = place.run([place.tools.victims, "each", world.path, "1", "open-by-handle"])
    fields = ran.out.rstrip("\n").split("\t")
    assert fields[2] == "10" and fields[3].strip() in ("EPERM", "EACCES"), ran


def test_FR17_cores_and_journal(place):
    ran = place.run("ls /var/lib/systemd/coredump; cat /var/log/journal/*/* | head -c 10; "
                    "coredumpctl dump; journalctl --user -n1" + STILL)
    judge(ran, errors=None)


def test_read_grant_at_start_and_nothing_beside(place):
    ran = place.run("cat ~/.config/gh/hosts.yml; cat ~/.aws/credentials" + STILL,
                    "--read", str(place.home / ".config/gh/hosts.yml"))
    judge(ran, [place.home / ".aws/credentials"], secrets=all_tokens(place, ".aws/credentials"))
    assert place.token(".config/gh/hosts.yml") in ran.out


def test_root_files(place):
    """As root also /etc/shadow and the host's keys."""
    if not place.account.is_root:
        pytest.skip("an ordinary user cannot read them anyway")
    ran = place.run("cat /etc/shadow | wc -c; cat /etc/gshadow | wc -c" + STILL)
    judge(ran, ["/etc/shadow"])
    assert ran.out.startswith("0\n0\n")


def test_rows_elsewhere_say_why():
    assert all(len(reason) > 10 for reason in ELSEWHERE.values())
