"""Attacks on files outside: one test a row, named by the row's id."""

import os

import pytest

from judge import STILL, judge

# Rows that another suite holds, or that this machine cannot show.
ELSEWHERE = {
    "FW12": "the agents' own file tools are driven in tests/agents",
}


def test_FW01_plain_write(place):
    ran = place.run("echo x > ~/canary.txt" + STILL)
    judge(ran, [place.home / "canary.txt"])
    body = ran.session.refused(path=str(place.home / "canary.txt"))[0]
    assert body["op"] in ("open", "openat") and body["would"] == "write"
    assert body["open_with"].startswith("nd7 allow ")


def test_FW01_python(place):
    ran = place.run(["python3", "-c", """
import os
try: open(os.path.expanduser('~/canary.txt'), 'a')
except PermissionError as e: print(e)
print('still-running')"""])
    judge(ran, [place.home / "canary.txt"])


def test_FW02_shell_start_files(place):
    names = [".bashrc", ".profile", ".zshenv", ".config/fish/config.fish", ".bash_login",
             ".bash_profile", ".zshrc"]
    ran = place.run("for f in %s; do echo evil >> ~/$f; done" % " ".join(names) + STILL)
    judge(ran, [place.home / n for n in names])


def test_FW03_cleanup_with_stray_tilde(place):
    (place.project / "tests").mkdir()
    (place.project / "patches").mkdir()
    kept = sum(len(files) + len(dirs) for _, dirs, files in os.walk(place.home))
    ran = place.run("cd /tmp; rm -rf ~/project/tests/ ~/project/patches/ ~/" + STILL, timeout=180)
    judge(ran, [place.home / "canary.txt", place.home / "data" / "keep",
                place.home / ".ssh"])
    assert kept > 40 and not (place.project / "README").exists()
    for name in ("canary.txt", ".gitconfig", "other/src/f"):
        assert (place.home / name).exists()
    # every one of them is counted
    unlinks = {b["path"] for b in ran.session.refused() if b["op"].startswith(("unlink", "rmdir"))}
    assert len(unlinks) >= 20, unlinks


def test_FW04_move_over_and_to_nowhere(place):
    for name in "abc":
        (place.project / name).write_text(name)
        os.chown(place.project / name, place.account.uid, place.account.gid)
    ran = place.run("mv -f a ~/canary.txt; for f in a b c; do mv $f ~/nodir/; done" + STILL)
    judge(ran, [place.home / "canary.txt"])
    assert [(place.project / n).read_text() for n in "abc"] == ["a", "b", "c"]


def test_FW05_truncate(place):
    ran = place.run(["python3", "-c", """
import os
c = os.path.expanduser('~/canary.txt')
for act in (lambda: os.truncate(c, 0), lambda: os.open(c, os.O_RDONLY | os.O_TRUNC),
            lambda: os.open(c, os.O_RDWR)):
    try: act(); print('WORKED')
    except PermissionError as e: print(e)
print('still-running')"""])
    judge(ran, [place.home / "canary.txt"])
    assert "WORKED" not in ran.out


def test_FW06_other_ways_to_write(place):
    ran = place.run("cp --reflink=auto README ~/canary.txt; dd if=README of=$HOME/canary.txt "
                    "conv=notrunc; tee ~/canary.txt < README; install -m 600 README ~/new; "
                    "rsync README ~/new2; sed -i s/c/d/ ~/canary.txt; patch ~/canary.txt /dev/null; "
                    "split -b1 README ~/x" + STILL)
    judge(ran, [place.home / "canary.txt"])


def test_FW07_special_files(place):
    ran = place.run("""mkfifo ~/p; mknod ~/s p; python3 -c '
import socket, os
try: socket.socket(socket.AF_UNIX).bind(os.path.expanduser("~/sock"))
except PermissionError as e: print(e)
try: os.mknod(os.path.expanduser("~/n"))
except PermissionError as e: print(e)
'""" + STILL)
    judge(ran, [place.home / "p", place.home / "s", place.home / "sock", place.home / "n"])


def test_FW08_autostart_and_units(place):
    ran = place.run("echo x > ~/.config/autostart/x.desktop; "
                    "echo x > ~/.config/systemd/user/x.service; echo x > ~/.local/bin/git; "
                    "mkdir -p ~/.config/environment.d; crontab -l | echo '* * * * * id' | crontab -"
                    + STILL)
    judge(ran, [place.home / ".config/autostart/x.desktop",
                place.home / ".config/systemd/user/x.service", place.home / ".local/bin/git",
                place.home / ".config/environment.d"])


def test_FW09_interpreter_hooks(place):
    ran = place.run("mkdir -p ~/.local/lib/python3.11/site-packages; "
                    "echo x > ~/.local/lib/python3/site-packages/usercustomize.py; "
                    "echo script-shell=evil >> ~/.npmrc; echo '[build]' >> ~/.cargo/config.toml; "
                    "npm config set script-shell /bin/evil --location=user; "
                    "git config --global core.editor evil" + STILL, timeout=60)
    judge(ran, [place.home / ".local/lib/python3.11",
                place.home / ".local/lib/python3/site-packages/usercustomize.py",
                place.home / ".npmrc", place.home / ".cargo/config.toml"])


def test_FW10_shared_caches(place):
    ran = place.run("for f in .cache/pip/keep .npm/_cacache/keep go/pkg/mod/keep "
                    ".cargo/registry/keep; do echo poison > ~/$f; done; "
                    "echo $npm_config_cache $PIP_CACHE_DIR $GOMODCACHE" + STILL)
    judge(ran, [place.home / ".cache/pip/keep", place.home / ".npm/_cacache/keep",
                place.home / "go/pkg/mod/keep", place.home / ".cargo/registry/keep"])
    # and the tools have a place of their own, which the session may write
    assert str(place.home / ".cache/nd7/") in ran.out


def test_FW13_chosen_working_directory(place):
    ran = place.run("cd ~ && echo x > f; cd ~/data && echo x > f; env -C ~/other touch g" + STILL)
    judge(ran, [place.home / "f", place.home / "data/f", place.home / "other/g"])


def test_FW14_sibling_repositories(place):
    place.native(["git", "init", "-q", str(place.home / "other")], check=True)
    place.expect_changes("other/.git")
    before = (place.home / "other/.git/config").read_bytes()
    ran = place.run("echo x > ../other/src/f; echo x >> ../other/.git/config; "
                    "git -C ../other config core.pager evil; cd ../other && git add -A" + STILL)
    judge(ran, [place.home / "other/src/f", place.home / "other/.git/config"])
    assert (place.home / "other/.git/config").read_bytes() == before


def test_LR07_project_root_deleted_and_remade(place):
    ran = place.run("cd ..; rm -rf project; mkdir project; echo x > project/f; echo x > f" + STILL)
    judge(ran, [place.home / "f"])


def test_LR08_git_pointer_elsewhere(place):
    place.native(["git", "init", "-q", str(place.home / "other")], check=True)
    place.expect_changes("other/.git")
    before = sorted(p.name for p in (place.home / "other/.git").iterdir())
    ran = place.run("mkdir w && cd w && echo 'gitdir: ../../other/.git' > .git; "
                    "git -c core.worktree=. add . ; git commit --allow-empty -qm evil; cd ..; "
                    "GIT_DIR=~/other/.git git commit --allow-empty -qm evil" + STILL)
    judge(ran, errors=None)
    assert sorted(p.name for p in (place.home / "other/.git").iterdir()) == before


def test_LR09_spelling_games(place):
    home = str(place.home)
    spelled = ["%s//canary.txt", "%s/./canary.txt", "%s/data/../canary.txt", "/.%s/canary.txt",
               "%s/" + "data/../" * 60 + "canary.txt", "../../../../../../../..%s/canary.txt"]
    ran = place.run("; ".join("echo x > '%s'" % (s % home) for s in spelled) +
                    "; echo x > ~/CANARY.TXT; echo x > ~/%63anary.txt" + STILL)
    judge(ran, [place.home / "canary.txt", place.home / "CANARY.TXT",
                place.home / "%63anary.txt"])
    assert len(ran.session.refused(path=str(place.home / "canary.txt"))) == len(spelled)


def test_MD_metadata_by_tools(place):
    """MD01-MD04 with the tools a shell has; the calls themselves are victims."""
    ran = place.run("chmod 777 ~/.ssh ~/canary.txt; chmod -R go+r ~/data; chgrp %d ~/canary.txt; "
                    "setfattr -n user.x -v 1 ~/canary.txt; setfacl -m u:nobody:rwx ~; "
                    "touch -d 2001-01-01 ~/canary.txt; chattr +d ~/canary.txt; "
                    "truncate -s 0 ~/canary.txt" % place.account.gid + STILL)
    judge(ran, [place.home / ".ssh", place.home / "canary.txt", place.home / "data",
                place.home])
    changes = {b.get("change") for b in ran.session.refused() if b.get("would") == "meta"}
    assert len(changes) >= 3, changes


def test_FD01_directory_descriptor_left_open(place):
    ran = place.native(["bash", "-c", "exec 9<~ 8>>~/canary.txt; %s run -- sh -c "
                        "'ls -l /proc/self/fd; echo x >&8; cat /proc/self/fd/9/.ssh/id_ed25519; "
                        "echo still-running'" % place.tools.nd7])
    assert "still-running" in ran.out and "Bad file descriptor" in ran.err, ran
    assert place.token(".ssh/id_ed25519") not in ran.out
    from place import Log
    log = Log(place, place.session_ids().pop())
    closed = log.entries("start")[0]["body"]["fds_closed"]
    assert len(closed) == 2 and any("canary.txt" in c for c in closed), closed


def test_FD03_output_redirected_to_an_outside_file(place):
    place.write("data/out.log", "earlier\n")
    place.expect_changes("data")
    ran = place.native(["bash", "-c", "%s run -- sh -c 'echo appended' >> ~/data/out.log"
                        % place.tools.nd7])
    assert ran.status == 0, ran
    assert (place.home / "data/out.log").read_text() == "earlier\nappended\n"


@pytest.mark.parametrize("where", ["home", "root", "ssh"])
def test_LV05_home_or_root_as_project(place, where):
    """Refused unless it is meant; and then credentials are denied all the same."""
    cwd = {"home": place.home, "root": "/", "ssh": place.home / ".ssh"}[where]
    ran = place.run(["true"], cwd=cwd)
    assert ran.status == 125 and "--whole-home" in ran.err, ran
    assert ran.session is None or not ran.session.entries("exec")
    if where == "home":
        place.expect_changes("made")
        ran = place.run("echo x > ~/made; cat ~/.aws/credentials" + STILL, "--whole-home", cwd=cwd)
        judge(ran, [place.home / ".aws/credentials"], secrets=[place.token(".aws/credentials")])
        assert (place.home / "made").read_text() == "x\n"


def test_rows_elsewhere_say_why():
    assert all(len(reason) > 10 for reason in ELSEWHERE.values())
