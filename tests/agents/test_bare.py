"""The real clients, started bare, with the hooks that `nd7 init` registered: every event they have
is recorded, and they run as without nd7."""

import json
import os
import signal
import time

import pytest

import fake_session
import harness

pytestmark = pytest.mark.usefixtures("clients")


def init(place, *arguments):
    ran = place.run([harness.nd7(), "init", "--no-alias", *arguments])
    assert ran.status == 0, ran
    return ran


def events(entries):
    return [entry["body"]["hook_event_name"] for entry in entries]


def check(entries, source):
    """What holds for every log of hooks."""
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert {entry["source"] for entry in entries} == {source}
    assert not [entry for entry in entries if entry["body"].get("malformed")]


def test_claude_plain_task(place):
    init(place, "claude")
    place.write("project/CLAUDE.md", "Be brief.\n")
    with harness.Model(place, "both-clients.json") as model:
        ran = place.claude_task(model, "make a file")
        assert ran.status == 0, ran
        assert model.problems() == []
    log = place.log()
    check(log, "intent:claude-code")
    call = ["PreToolUse", "PostToolUse", "PostToolBatch"]
    failing = ["PreToolUse", "PostToolUseFailure", "PostToolBatch"]
    assert sorted(events(log)[:3]) == ["InstructionsLoaded", "SessionStart", "UserPromptSubmit"]
    assert events(log)[3:] == call + failing + call + call + ["Stop", "SessionEnd"]
    calls = [entry for entry in log if entry["kind"] == "tool_call"]
    assert calls[0]["body"]["argv"] == ["echo hello from the shell; echo 'to stderr' >&2"]
    assert calls[2]["body"]["paths"] == [str(place.project / "made-by-model.txt")]
    assert [entry["body"]["ok"] for entry in log if entry["kind"] == "tool_result"] == [
        True, False, True, True]
    # Every result belongs to a call.
    ids = {entry["body"]["tool_use_id"] for entry in calls}
    assert ids == {entry["body"]["tool_use_id"] for entry in log if entry["kind"] == "tool_result"}


def test_claude_background_and_subagent(place):
    init(place, "claude")
    with harness.Model(place, "claude-background-and-subagent.json") as model:
        ran = place.claude_task(model)
        assert ran.status == 0, ran
    log = place.log()
    check(log, "intent:claude-code")
    assert {"SubagentStart", "SubagentStop"} <= set(events(log))
    assert any(entry["body"].get("agent_type") == "general-purpose" and
               entry["kind"] == "tool_call" for entry in log)


def test_codex_plain_task(place):
    init(place, "codex")
    with harness.Model(place, "both-clients.json") as model:
        ran = place.codex_task(model)
        assert ran.status == 0, ran
        assert model.problems() == []
    log = place.log()
    check(log, "intent:codex")
    assert events(log) == ["SessionStart", "UserPromptSubmit"] + 4 * ["PreToolUse", "PostToolUse"] + [
        "Stop", "SessionEnd"]
    patch = [entry for entry in log if entry["body"].get("tool_name") == "apply_patch"]
    assert [entry["body"]["paths"] for entry in patch] == 2 * [
        [str(place.project / "made-by-model.txt")]]
    # Only apply_patch says how it went.
    assert [entry["body"]["ok"] for entry in log if entry["kind"] == "tool_result"] == [
        None, None, True, None]


def test_codex_code_mode_and_subagent(place):
    init(place, "codex")
    with harness.Model(place, "codex-session-and-subagent.json") as model:
        ran = place.codex_task(model, name="gpt-6-astra")
        assert ran.status == 0, ran
    log = place.log()
    check(log, "intent:codex")
    assert {"SubagentStart", "SubagentStop", "PreToolUse", "Stop"} <= set(events(log))


def test_codex_interrupted(place):
    init(place, "codex")
    with harness.Model(place, [{"shell": "sleep 60"}, {"text": "never"}]) as model:
        process = place.start(
            ["codex", "exec", *harness.CODEX_FLAGS, "--dangerously-bypass-approvals-and-sandbox",
             *place.codex_provider(model), *harness.CODEX_OFFLINE, "-m", "gpt-5.5", "x"],
            env=place.environment(OPENAI_API_KEY="dummy"))
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                sessions = place.state / "sessions"
                if sessions.exists() and "PreToolUse" in events(place.log()):
                    break
                time.sleep(0.1)
            time.sleep(0.5)
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    log = place.log()
    check(log, "intent:codex")
    assert events(log)[-2:] == ["Interrupt", "SessionEnd"]


def test_every_codex_hook_is_trusted_by_codex_itself(place):
    ran = init(place, "codex")
    assert "codex confirms that it trusts all 12 hooks" in ran.err
    # A hook that was changed behind nd7's back is found by asking again.
    hooks = place.home / ".codex" / "hooks.json"
    hooks.write_text(hooks.read_text().replace('"timeout":30', '"timeout":31', 1))
    again = place.run([harness.nd7(), "init", "--no-alias", "codex"])
    assert again.status == 0 and "all 12 hooks" in again.err
    assert '"timeout":31' not in hooks.read_text()


def test_codex_trusts_project_hooks_in_a_trusted_project(place):
    config = place.write("home/.codex/config.toml",
                         '[projects."%s"]\ntrust_level = "trusted"\n' % place.project)
    before = config.read_text()
    ran = init(place, "--project", "codex")
    assert "all 12 hooks" in ran.err
    with harness.Model(place, "both-clients.json") as model:
        assert place.codex_task(model).status == 0
    assert len(place.log()) == 12
    init(place, "--project", "--remove", "codex")
    assert not (place.project / ".codex" / "hooks.json").exists()
    assert config.read_text() == before


def test_codex_in_an_untrusted_project_is_reported(place):
    place.write("home/.codex/config.toml", "")
    ran = place.run([harness.nd7(), "init", "--project", "codex"])
    assert ran.status == 1
    assert "codex trusts 0 of 12 hooks" in ran.err


def test_claude_project_hooks(place):
    init(place, "--project", "claude")
    settings = place.project / ".claude" / "settings.local.json"
    assert len(json.loads(settings.read_text())["hooks"]) == 32
    with harness.Model(place, "both-clients.json") as model:
        assert place.claude_task(model).status == 0
    assert events(place.log())[-1] == "SessionEnd"
    init(place, "--project", "--remove", "claude")
    assert not settings.exists()


def test_hooks_change_nothing_for_the_model(place):
    """The model is told the same with and without nd7's hooks."""
    told = []
    for hooked in (False, True):
        if hooked:
            init(place, "claude", "codex")
        with harness.Model(place, "both-clients.json") as model:
            assert place.claude_task(model).status == 0
            assert model.problems() == []
            told.append("nd7:" in model.told() or "hook additional context" in model.told())
        with harness.Model(place, [{"shell": "echo x"}, {"expect": "x", "text": "done"}]) as model:
            assert place.codex_task(model).status == 0
            assert model.problems() == []
    assert told == [False, False]


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_the_model_reads_what_the_hook_prints(place, agent):
    """At every event that takes context, in the words and the form of hook_answer()."""
    init(place, agent)
    session = place.start(["/usr/bin/python3", harness.readable(harness.HERE / "fake_session.py")])
    try:
        assert session.stdout.readline() == b"listening\n"
        with harness.Model(place, "both-clients.json") as model:
            task = place.claude_task if agent == "claude" else place.codex_task
            ran = task(model)
            assert ran.status == 0 and model.problems() == [], ran
        told = model.told()
    finally:
        session.kill()
        session.communicate()
    for event in fake_session.CONTEXT[agent]:
        assert "nd7: said at " + event in told, event
    # Nothing was recorded beside the session.
    assert not place.state.exists()


def test_clients_survive_a_broken_recorder(place):
    """A state directory that cannot be written costs the record, never the agent's work."""
    init(place, "claude", "codex")
    place.write("home/.local/state", "a file where nd7 wants a directory\n")
    with harness.Model(place, "both-clients.json") as model:
        ran = place.claude_task(model)
        assert ran.status == 0 and model.problems() == []
    with harness.Model(place, "both-clients.json") as model:
        ran = place.codex_task(model)
        assert ran.status == 0 and model.problems() == []
