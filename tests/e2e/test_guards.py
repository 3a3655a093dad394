"""Files that run later outside, and settings that decide hooks: ways around a name."""

import pytest

from judge import STILL, judge


def as_agent(place, agent, script):
    """Runs a script as if it were the agent: a program of its name, which gets its state and rules."""
    place.write("bin/" + agent, "#!/bin/sh\n%s\n" % script, mode=0o755)
    place.expect_changes("bin", ".claude", ".codex", ".claude.old", ".codex.old")
    return place.run([str(place.home / "bin" / agent)])


def test_GD01_prepared_elsewhere_and_moved_in(place):
    ran = place.run("""
        mkdir x && echo '{}' > x/tasks.json && mv x .vscode
        mkdir y && echo evil > y/pre-commit && rm -rf .git/hooks && mv y .git/hooks
        ln -s x .idea 2>/dev/null; ln -s ../x .vscode; ln -s /tmp .vscode""" + STILL)
    judge(ran)
    assert not (place.project / ".vscode").exists() and not (place.project / ".vscode").is_symlink()
    assert not (place.project / ".git/hooks/pre-commit").exists()


def test_GD01_exchanged_in(place, tmp_path):
    ran = place.run(["python3", "-c", """
import ctypes, os
os.makedirs('a'); open('a/tasks.json', 'w').write('{}'); os.makedirs('.vscode')
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall(316, -100, b'a', -100, b'.vscode', 2)
print('exchange', r, os.strerror(ctypes.get_errno()))
print('still-running')"""])
    judge(ran)
    assert not (place.project / ".vscode/tasks.json").exists(), ran


def test_GD02_git_deleted_and_remade(place):
    ran = place.run("rm -rf .git && git init -q . && echo evil > .git/hooks/pre-commit" + STILL)
    judge(ran, [place.project / ".git/hooks/pre-commit"])
    assert not (place.project / ".git/hooks/pre-commit").exists()
    assert (place.project / ".git/HEAD").exists()


@pytest.mark.parametrize("key", ["core.hooksPath", "core.fsmonitor", "core.sshCommand", "alias.x",
                                 "filter.x.clean", "include.path", "core.editor"])
def test_PE02_dangerous_keys(place, key):
    ran = place.run("git config %s /tmp/evil; git config user.name fine" % key + STILL)
    judge(ran, [place.project / ".git/config"])
    text = (place.project / ".git/config").read_text()
    assert "evil" not in text and "fine" in text
    rules = [body["rule"] for body in ran.session.refused()]
    assert any(key.split(".")[-1].lower() in rule.lower() for rule in rules), rules


def test_PE02_written_in_place(place):
    before = (place.project / ".git/config").read_bytes()
    ran = place.run("printf '[core]\\n\\thooksPath = /tmp\\n' >> .git/config; "
                    "cp .git/config c; echo '[alias]' >> c; echo ' x = !id' >> c; cp c .git/config; "
                    "cat c > .git/config; ln c .git/config2; ln -f c .git/config; "
                    "python3 -c 'import os; os.truncate(\".git/config\", 0)'" + STILL)
    judge(ran, [place.project / ".git/config"])
    assert (place.project / ".git/config").read_bytes() == before


def test_judged_bytes_are_the_gates_own(place):
    """A descriptor kept on the file that was renamed into place writes somewhere else."""
    ran = place.run(["python3", "-c", """
import os
old = open('.git/config').read()
f = open('.git/config.lock', 'w'); f.write(old + '[user]\\n\\temail = a@b\\n'); f.flush()
os.rename('.git/config.lock', '.git/config')
f.write('[core]\\n\\thooksPath = /tmp/evil\\n'); f.close()
print('still-running')"""])
    judge(ran, errors=None)
    text = (place.project / ".git/config").read_text()
    assert "a@b" in text and "evil" not in text


def test_LR08_pointer_that_leads_elsewhere(place):
    place.expect_changes()
    ran = place.run("mkdir w && echo 'gitdir: %s/other/.git' > w/.git; true; cat w/.git; "
                    "echo text > w/f" % place.home + STILL)
    judge(ran, errors=None)
    assert not (place.project / "w/.git").exists()
    assert any(b.get("path") == str(place.project / "w/.git") for b in ran.session.refused())


def test_settings_directory_swapped(place):
    """The agent's whole state directory exchanged for a prepared one brings no settings along."""
    for name in (".codex/config.toml", ".claude/settings.json"):
        place.write(name, "{}\n" if name.endswith("json") else "# mine\n")
    for agent, folder, file, text in (
            ("codex", ".codex", "config.toml", 'notify = ["evil"]'),
            ("claude", ".claude", "settings.json", '{"hooks": {"evil": 1}}')):
        ran = as_agent(
            place, agent,
            "mkdir -p new && echo '%s' > new/%s; mv ~/%s ~/%s.old; mv ~/%s kept; mv new ~/%s; "
            "mv -T new ~/%s; rm -rf ~/%s/%s; cp new/%s ~/%s/%s" % (
                text, file, folder, folder, folder, folder, folder, folder, file, file, folder, file)
            + STILL)
        assert "evil" not in (place.home / folder / file).read_text(), ran
        assert ran.session.refused()


def test_state_directory_around_the_home_is_refused(place):
    ran = place.run("true", env={"CLAUDE_CONFIG_DIR": str(place.home)})
    assert ran.status == 125 and "CLAUDE_CONFIG_DIR" in ran.err, ran


def test_GD04_script_named_by_settings(place):
    place.write(".claude/statusline.sh", "echo fine\n")
    place.write(".claude/settings.json",
                '{"statusLine": {"type": "command", "command": "bash ~/.claude/statusline.sh"}}\n')
    ran = as_agent(place, "claude",
                   "echo evil >> ~/.claude/statusline.sh; rm -f ~/.claude/statusline.sh; "
                   "mv x ~/.claude/statusline.sh" + STILL)
    judge(ran, [place.home / ".claude/statusline.sh"])
    assert (place.home / ".claude/statusline.sh").read_text() == "echo fine\n"


def test_guards_hold_in_granted_directories(place):
    """`--allow` opens a directory for work, not the hooks of the repository in it."""
    place.expect_changes("data")
    ran = place.run("cd ~/data && git init -q . && echo fine > f && git config core.hooksPath /tmp/evil; "
                    "echo evil > .git/hooks/pre-commit" + STILL, "--allow", str(place.home / "data"))
    judge(ran, [place.home / "data/.git/hooks/pre-commit", place.home / "data/.git/config"])
    assert (place.home / "data/f").exists()
    assert "evil" not in (place.home / "data/.git/config").read_text()
    # Named itself, it is open.
    ran = place.run("echo mine > ~/data/.git/hooks/pre-commit" + STILL,
                    "--allow", str(place.home / "data/.git/hooks/pre-commit"))
    assert (place.home / "data/.git/hooks/pre-commit").read_text() == "mine\n", ran
