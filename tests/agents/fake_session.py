"""Plays a session's supervisor for hooks: takes every call and answers so that the model is told
"nd7: said at EVENT", in the form that src/agents gives it. Prints a line when it listens."""

import json
import os
import socket
import sys

CONTEXT = {"claude": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse",
                      "PostToolUseFailure", "PostToolBatch"},
           "codex": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}}


def main():
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0nd7.hook.%d" % os.getuid())
    listener.listen(64)
    print("listening", flush=True)
    while True:
        connection, _ = listener.accept()
        file = connection.makefile("rb")
        header = json.loads(file.readline())
        event = json.loads(file.read(header["bytes"]))["hook_event_name"]
        answer = ""
        if event in CONTEXT[header["agent"]]:
            answer = json.dumps({"hookSpecificOutput": {
                "hookEventName": event, "additionalContext": "nd7: said at " + event}},
                separators=(",", ":"))
        connection.sendall(json.dumps({"print": answer}).encode() + b"\n")
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
