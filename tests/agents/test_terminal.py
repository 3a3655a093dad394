"""An agent's own interface under tmux, inside a session: it works, stops, comes back and ends."""

import json
import shlex
import shutil
import subprocess
import time

import pytest

import harness

pytestmark = [
    pytest.mark.skipif(harness.agents_bin() is None, reason="the agents are not installed"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Screen:
    """One tmux server of the test's own, run as the user of the clients."""

    def __init__(self, place, env):
        self.place = place
        self.socket = str(place.root / "tmux")
        shell = ["env", "-i", *("%s=%s" % pair for pair in env.items()), "bash", "--norc"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", shlex.join(shell))

    def tmux(self, *words):
        ran = self.place.run(["tmux", "-S", self.socket, *words], timeout=20)
        assert ran.status == 0, ran
        return ran.out

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def shows(self, text, seconds=25):
        """Waits until the screen shows `text`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            screen = self.tmux("capture-pane", "-p")
            if text in screen:
                return screen
            time.sleep(0.1)
        raise AssertionError("%r is not on the screen:\n%s" % (text, screen))

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], stderr=subprocess.DEVNULL)


def test_claude_in_a_terminal():
    """Trust question, a prompt, Ctrl-Z, fg, resize, Ctrl-C twice; the shell gets its status."""
    with harness.Place() as place:
        place.write("home/.claude.json", json.dumps({
            "hasCompletedOnboarding": True, "theme": "dark",
            "customApiKeyResponses": {"approved": ["dummy"]}}))
        turns = [{"text": "I will look.", "shell": "echo from-inside"}, {"text": "All done, friend."}]
        with harness.Model(place, turns) as model:
            env = place.environment(ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="dummy",
                                    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
                                    TERM="screen-256color")
            screen = Screen(place, env)
            try:
                screen.keys("%s run --port %d -- claude" % (harness.nd7(), model.port), "Enter")
                screen.shows("Yes, I trust this folder")
                # The client draws its question anew while it starts, and forgets earlier keys.
                for _ in range(10):
                    time.sleep(1)
                    if "❯ No, exit" in screen.tmux("capture-pane", "-p"):
                        screen.keys("Down")
                        time.sleep(0.5)
                    if "❯ Yes, I trust this folder" in screen.tmux("capture-pane", "-p"):
                        break
                screen.keys("Enter")
                screen.shows("shift+tab to cycle")
                screen.keys("hello")
                screen.shows("hello")
                screen.keys("Enter")
                screen.shows("All done, friend.")
                screen.keys("C-z")
                screen.shows("Stopped")
                screen.keys("echo the shell is back", "Enter")
                screen.shows("\nthe shell is back")
                screen.keys("fg", "Enter")
                screen.shows("shift+tab to cycle")
                screen.tmux("resize-window", "-x", "80", "-y", "24")
                screen.shows("shift+tab to cycle")
                screen.keys("C-c")
                time.sleep(0.5)
                screen.keys("C-c")
                screen.shows("Resume this session with")
                screen.keys("echo status $?", "Enter")
                screen.shows("status 0")
            finally:
                screen.end()
            assert model.problems() == []
        log = place.log()
        kinds = [entry["kind"] for entry in log]
        assert kinds.count("prompt") == 1 and "end" in kinds, kinds
        # The bash tool's command was announced and ran.
        assert any(entry["kind"] == "exec" and entry["body"]["join"] == "announced" for entry in log)
