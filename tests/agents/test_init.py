"""`nd7 init`: what it does to files that belong to somebody else."""

import json
import os
import subprocess

import pytest

import harness

SETTINGS = '{\n  "model": "opus",\n  "permissions": {"allow": ["Bash(ls)"]},\n  "hooks": {}\n}\n'


def init(place, *arguments, status=0, **variables):
    # No client on the PATH: what Codex says is asked in test_bare.py.
    env = place.environment(**variables)
    env["PATH"] = "/usr/bin:/bin"
    ran = place.run([harness.nd7(), "init", *arguments], env=env)
    assert ran.status == status, ran
    return ran


def snapshot(place):
    """Every file below the home with its content, mode and owner."""
    found = {}
    for folder, _, files in os.walk(place.home):
        for name in files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else open(path, "rb").read()
            found[path] = (content, status.st_mode, status.st_uid, status.st_gid)
    return found


def prepare(place):
    place.write("home/.claude/settings.json", SETTINGS)
    place.write("home/.codex/config.toml", 'model = "gpt-5.5"\n[projects."/p"]\ntrust_level = "trusted"')
    place.write("home/.codex/hooks.json", '{"hooks":{"Stop":[{"hooks":[]}]}}')
    place.write("home/.bashrc", "export A=1\n")
    place.write("home/.zshrc", "")
    place.write("home/.config/fish/config.fish", "set -x A 1")


def test_removal_restores_every_byte(place):
    prepare(place)
    before = snapshot(place)
    ran = init(place)
    assert "+++ %s/.claude/settings.json" % place.home in ran.out
    changed = snapshot(place)
    assert {path for path in before if before[path] != changed[path]} == set(before)
    again = init(place)
    assert again.out == "" and "everything is there already" in again.err
    assert snapshot(place) == changed
    init(place, "--remove")
    assert snapshot(place) == before
    assert "nothing of nd7 is there" in init(place, "--remove").err


def test_files_that_were_not_there_are_gone_afterwards(place):
    init(place, "claude", "codex", SHELL="/usr/bin/zsh")
    made = {os.path.relpath(path, place.home) for path in snapshot(place)}
    assert made == {".claude/settings.json", ".codex/hooks.json", ".codex/config.toml", ".zshrc"}
    settings = place.home / ".claude" / "settings.json"
    assert settings.stat().st_mode & 0o777 == 0o600
    init(place, "--remove", "claude", "codex", SHELL="/usr/bin/zsh")
    assert snapshot(place) == {}


def test_what_is_registered(place):
    init(place, "claude", "codex")
    claude = json.loads((place.home / ".claude" / "settings.json").read_text())["hooks"]
    assert len(claude) == 32 and not {"WorktreeCreate", "MessageDisplay"} & set(claude)
    assert claude["PreToolUse"] == [{"hooks": [{"type": "command", "command": harness.nd7(),
                                                "args": ["hook", "claude"], "timeout": 30}]}]
    codex = json.loads((place.home / ".codex" / "hooks.json").read_text())["hooks"]
    assert len(codex) == 12
    assert codex["Stop"] == [{"hooks": [{"type": "command", "command": harness.nd7() + " hook codex",
                                         "timeout": 30}]}]


def test_dry_run_changes_nothing(place):
    prepare(place)
    before = snapshot(place)
    ran = init(place, "--dry-run")
    assert '+    "SessionStart"' in ran.out and "nothing was changed" in ran.err
    assert snapshot(place) == before


def test_a_file_that_does_not_parse_is_refused_and_nothing_is_changed(place):
    prepare(place)
    for path, text in (("home/.claude/settings.json", '{"model": "x",}'),
                       ("home/.claude/settings.json", '{"a": 1, "a": 2}'),
                       ("home/.claude/settings.json", ""),
                       ("home/.codex/hooks.json", '{"hooks": []}'),
                       ("home/.codex/config.toml", "model = \n")):
        place.write(path, text)
        before = snapshot(place)
        ran = init(place, status=2)
        assert path in ran.err
        assert snapshot(place) == before
        prepare(place)


def test_links_lead_to_the_file_and_stay(place):
    target = place.write("home/dotfiles/claude.json", SETTINGS)
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").symlink_to("../dotfiles/claude.json")
    target.chmod(0o640)
    place.own(place.root)
    before = snapshot(place)
    init(place, "claude", "--no-alias")
    assert (place.home / ".claude" / "settings.json").is_symlink()
    assert "nd7" in target.read_text() and target.stat().st_mode & 0o777 == 0o640
    init(place, "claude", "--no-alias", "--remove")
    assert snapshot(place) == before


def test_a_link_to_nowhere_and_a_directory_are_refused(place):
    (place.home / ".claude").mkdir()
    settings = place.home / ".claude" / "settings.json"
    settings.symlink_to("nowhere")
    place.own(place.root)
    assert str(settings) in init(place, "claude", status=2).err
    settings.unlink()
    settings.mkdir()
    assert "not a regular file" in init(place, "claude", status=2).err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root")
def test_root_keeps_the_owner(place):
    settings = place.write("home/.claude/settings.json", SETTINGS)
    subprocess.run([harness.nd7(), "init", "claude", "--no-alias"], check=True, stdout=subprocess.DEVNULL,
                   env=dict(place.environment(), PATH="/usr/bin:/bin"), cwd=place.project)
    assert "nd7" in settings.read_text()
    assert (settings.stat().st_uid, settings.stat().st_gid) == (place.who.pw_uid, place.who.pw_gid)


def test_the_agents_own_variables_are_followed(place):
    init(place, "claude", "codex", "--no-alias", CLAUDE_CONFIG_DIR=place.root / "c",
         CODEX_HOME=place.root / "x")
    assert (place.root / "c" / "settings.json").exists()
    assert (place.root / "x" / "hooks.json").exists() and (place.root / "x" / "config.toml").exists()
    assert not (place.home / ".claude").exists() and not (place.home / ".codex").exists()


def test_aliases(place):
    bashrc = place.write("home/.bashrc", "")
    init(place, "claude")
    shell = place.run(["bash", "-ic", "alias claude; alias codex"])
    assert "nd7 run claude" in shell.out and "codex" not in shell.out
    init(place, "codex")
    shell = place.run(["bash", "-ic", "alias claude; alias codex"])
    assert "nd7 run claude" in shell.out and "nd7 run codex" in shell.out
    init(place, "--remove", "claude")
    assert "alias claude" not in bashrc.read_text() and "alias codex" in bashrc.read_text()
    init(place, "--no-alias", "claude")
    assert "alias claude" not in bashrc.read_text()


def test_hooks_of_the_user_stay(place):
    mine = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "/bin/mine"}]}]}, "model": "x"}
    for text in (json.dumps(mine), json.dumps(mine, indent=4), json.dumps(mine, indent="\t")):
        settings = place.write("home/.claude/settings.json", text)
        init(place, "claude", "--no-alias")
        now = json.loads(settings.read_text())
        assert now["model"] == "x" and len(now["hooks"]["PreToolUse"]) == 2
        assert now["hooks"]["PreToolUse"][0] == mine["hooks"]["PreToolUse"][0]
        init(place, "claude", "--no-alias", "--remove")
        assert settings.read_text() == text


def test_usage_errors(place):
    assert "unknown agent 'gemini'" in init(place, "gemini", status=2).err
    assert "no agent found" in init(place, status=2).err
