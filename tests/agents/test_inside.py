"""The real agents inside a session: the work is done, the record is whole, refusals are told."""

import os
import threading
import time

import pytest

import harness

pytestmark = pytest.mark.skipif(harness.agents_bin() is None, reason="the agents are not installed")

AGENTS = ["claude", "codex"]


def inside(place, model, agent, *options, **more):
    prefix = [harness.nd7(), "run", "--port", str(model.port), *options, "--"]
    if agent == "claude":
        return place.claude_task(model, prefix=prefix, **more)
    return place.codex_task(model, own_sandbox=True, prefix=prefix, **more)


def verify(place):
    ran = place.run([harness.nd7(), "verify"])
    assert ran.status == 0, ran
    return ran


@pytest.mark.parametrize("agent", AGENTS)
def test_ordinary_work(agent):
    with harness.Place() as place, harness.Model(place, "both-clients.json") as model:
        ran = inside(place, model, agent)
        assert ran.status == 0, ran
        assert model.problems() == []
        assert (place.project / "made-by-model.txt").read_text() == "one\ntwo\n"
        log = place.log()
        kinds = [entry["kind"] for entry in log]
        for kind in ("start", "session_start", "prompt", "tool_call", "tool_result", "exec", "write",
                     "turn_end", "end"):
            assert kind in kinds, (kind, sorted(set(kinds)))
        # The command that the agent announced and the process that ran are joined.
        call = next(entry["body"]["tool_use_id"] for entry in log if entry["kind"] == "tool_call")
        joined = [entry for entry in log if entry["kind"] == "exec" and entry["body"]["call"] == call]
        assert joined and joined[0]["body"]["join"] == "announced", [
            entry["body"] for entry in log if entry["kind"] == "exec"][-5:]
        verify(place)


@pytest.mark.parametrize("agent", AGENTS)
def test_refusals_are_told(agent):
    with harness.Place() as place:
        denied = place.home / "elsewhere"
        with harness.Model(place, "blocked-write.json", DENIED=str(denied),
                           HINT="nd7 allow ~/elsewhere") as model:
            ran = inside(place, model, agent)
            assert ran.status == 0, ran
            assert model.problems() == [], model.told()[-3000:]
        assert not denied.exists()
        assert not (place.home / "elsewhere.txt").exists()
        refused = [entry["body"] for entry in place.log() if entry["kind"] == "refused"]
        assert any(body.get("path") == str(denied) for body in refused)
        verify(place)


@pytest.mark.parametrize("agent", AGENTS)
def test_refusals_hidden_by_a_pipe_are_told(agent):
    with harness.Place() as place:
        turns = [{"shell": "echo x 2>/dev/null > %s/a | cat" % place.home},
                 {"expect": "nd7 allow ~/a", "shell": "cat %s/.ssh/id_x 2>&1 | true" % place.home},
                 {"expect": "nd7 allow --read ~/.ssh/id_x", "text": "Done."}]
        place.write("home/.ssh/id_x", "a key\n")
        with harness.Model(place, turns) as model:
            ran = inside(place, model, agent)
            assert ran.status == 0, ran
            assert model.problems() == [], model.told()[-3000:]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_agents_own_writes_follow_a_grant(agent):
    """A directory granted at the start opens the shell's and the agent's own file tools alike."""
    with harness.Place() as place:
        data = place.home / "data"
        data.mkdir()
        place.own(place.root)
        turns = [{"shell": "echo one > %s/one" % data},
                 {"write": {"path": "%s/two" % data, "content": "two\n"}},
                 {"text": "Done."}]
        with harness.Model(place, turns) as model:
            ran = inside(place, model, agent, "--allow", str(data))
            assert ran.status == 0, ran
            assert model.problems() == []
        assert (data / "one").read_text() == "one\n"
        assert (data / "two").read_text() == "two\n"


@pytest.mark.parametrize("agent", AGENTS)
def test_grants_while_it_runs(agent):
    """Refused, allowed from outside between two turns, done; by the agent's own tool."""
    with harness.Place() as place:
        data = place.home / "data"
        data.mkdir()
        place.own(place.root)
        turns = [{"write": {"path": "%s/two" % data, "content": "two\n"}},
                 {"delay": 3, "expect": "nd7 allow ~/data",
                  "write": {"path": "%s/two" % data, "content": "two\n"}},
                 {"text": "Done."}]
        with harness.Model(place, turns) as model:
            def allow():
                until = time.monotonic() + 30
                while time.monotonic() < until:
                    if any(entry["kind"] == "turn" and entry["turn"] == 1
                           for entry in model.requests()):
                        break
                    time.sleep(0.05)
                granted.append(place.run([harness.nd7(), "allow", str(data)]))

            granted = []
            helper = threading.Thread(target=allow)
            helper.start()
            ran = inside(place, model, agent)
            helper.join()
            assert granted and granted[0].status == 0, granted
            assert ran.status == 0, ran
            assert model.problems() == []
        assert (data / "two").read_text() == "two\n"
        kinds = [entry["kind"] for entry in place.log()]
        assert "refused" in kinds and "grant" in kinds


@pytest.mark.parametrize("agent", AGENTS)
def test_an_empty_home_is_enough(agent):
    """The state directories are made by the agent itself, and hooks run from the first event on."""
    with harness.Place() as place, harness.Model(place, [{"text": "Done."}]) as model:
        ran = inside(place, model, agent)
        assert ran.status == 0, ran
        log = place.log()
        assert any(entry["kind"] == "session_start" for entry in log)
        # What the agent tries for itself in guarded places is on record, and not the model's concern.
        assert "refused:" not in model.told()


@pytest.mark.parametrize("agent", AGENTS)
def test_settings_that_decide_hooks_stay(agent):
    with harness.Place() as place:
        name = ".claude/settings.json" if agent == "claude" else ".codex/config.toml"
        text = '{"disableAllHooks": true}' if agent == "claude" else 'sandbox_mode = "x"\n'
        turns = [{"shell": "echo '%s' > ~/%s.new && mv ~/%s.new ~/%s; echo '%s' >> ~/%s" %
                  (text, name, name, name, text, name)},
                 {"text": "Done."}]
        before = "{}\n" if agent == "claude" else "# mine\n"
        place.write("home/" + name, before)
        with harness.Model(place, turns) as model:
            ran = inside(place, model, agent)
            assert ran.status == 0, ran
        after = (place.home / name).read_text()
        assert "disableAllHooks" not in after and "sandbox_mode" not in after, after
        assert os.path.exists(place.home / name)
