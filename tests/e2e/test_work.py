"""Real work inside equals the same work outside: the script runs natively and in a session, in two
fresh projects; status, output and the trees left behind must be the same."""

import os
import re
import shutil

import pytest

from place import snapshot

# Makes commits the same whatever the time.
STEADY = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
          "SOURCE_DATE_EPOCH": "1577836800", "PYTHONDONTWRITEBYTECODE": "1"}


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip("%s is not installed" % program)


def same_work(place, script, ignore=(), compare_out=True, env=None, timeout=240, mask=None,
              refusals=False):
    """`ignore`: patterns of names in the tree that carry time or chance. Without `refusals` nothing
    may have been refused. Returns the session's Ran."""
    trees, rans = [], []
    for inside in (False, True):
        shutil.rmtree(place.project)
        place._directory(place.project)
        place.native(["sh", "-c", "git init -q && echo hello > README && git add . && "
                      "git commit -qm first"], check=True, env=STEADY)
        argv = ["bash", "-e", "-c", script]
        variables = {**STEADY, **(env or {})}
        ran = place.run(argv, env=variables, timeout=timeout) if inside else \
            place.native(argv, env=variables, timeout=timeout)
        rans.append(ran)
        trees.append({name: entry for name, entry in
                      snapshot(place.project, times=False).items()
                      if not any(re.search(p, name) for p in (*ignore, r"\.git/index$"))})
    native, inside = rans
    assert native.status == 0, "the work fails natively: %r" % native
    assert inside.status == 0, inside
    if compare_out:
        hide = mask or (lambda text: text)
        assert hide(inside.out) == hide(native.out), (inside, native)
    different = [name for name in sorted(set(trees[0]) | set(trees[1]))
                 if trees[0].get(name) != trees[1].get(name)]
    assert not different, "\n".join("%s: native %r, inside %r" % (n, trees[0].get(n),
                                                                  trees[1].get(n))
                                    for n in different[:20])
    if not refusals:
        assert not inside.session.refused(), inside.session.refused()
    assert inside.session.verify().status == 0
    return inside


GIT_IGNORE = (r"\.git/index$", r"\.git/logs/", r"\.git/objects/(pack|info)/", r"/ORIG_HEAD",
              r"\.git/worktrees/.*/(index|logs)", r"\.git/modules/.*/index", r"FETCH_HEAD")


def test_git_everyday(place):
    need("git")
    same_work(place, """
git init -q sub && cd sub && git config user.name W && git config user.email w@nd7.invalid
for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm c$i; done
git branch topic; git checkout -q topic; echo t >> f1; git commit -qam t
git checkout -q main; echo m > f4; git add f4; git commit -qm m
git checkout -q topic; git rebase -q main; git log --format=%s
echo s >> f2; git stash -q; git stash pop -q; git checkout -q -- f2
git tag -a -m v v1; git mv f3 g3; git commit -qm mv; git rm -q g3; git commit -qm rm
git merge -q --no-edit main; git cherry-pick main >/dev/null 2>&1 || git cherry-pick --abort
git reset -q --hard HEAD~1; git clean -qfdx; git status --porcelain; git diff HEAD~1 --stat
git gc -q; git fsck --no-progress; git rev-parse HEAD; git reflog | wc -l
""", ignore=GIT_IGNORE)


def test_git_clone_remote_tracking_push(place):
    need("git")
    same_work(place, """
git init -q --bare origin.git; git push -q origin.git main
git clone -q origin.git clone; cd clone
git checkout -q -b topic; echo t > t; git add t; git commit -qm t
git push -q -u origin topic; git branch -vv | cut -c1-12
git remote add other ../origin.git; git fetch -q other; git pull -q
git branch --set-upstream-to=origin/main topic; git config --get branch.topic.merge
git checkout -q -b tracked --track origin/topic; git remote -v | wc -l
""", ignore=GIT_IGNORE + (r"packed-refs",))


def test_git_worktree(place):
    need("git")
    same_work(place, """
git worktree add -q ../project/wt -b wt; cd wt; echo w > w; git add w; git commit -qm w
git worktree list | wc -l; cd ..; git worktree remove --force wt; git worktree prune
git branch -D wt | cut -d' ' -f1-3
""", ignore=GIT_IGNORE)


def test_git_started_in_a_linked_worktree(place):
    """`.git` is a file, and the real git directory lies outside: no extra rule is needed."""
    place.native("sh -c true".split())
    main = place.home / "main"
    place.native(["git", "init", "-q", str(main)], check=True)
    script = "echo a > a && git add a && git commit -qm a"
    place.native(["sh", "-c", script], cwd=main, check=True)
    place.native(["git", "worktree", "add", "-q", str(place.home / "linked"), "-b", "linked"],
                 cwd=main, check=True)
    place.native(["git", "worktree", "add", "-q", str(place.home / "sibling"), "-b", "sibling"],
                 cwd=main, check=True)
    place.expect_changes("main", "linked", "sibling")
    before = snapshot(place.home / "sibling")
    ran = place.run("git status --porcelain; echo b > b; git add b; git commit -qm b; "
                    "echo c >> b; git stash -q; git stash pop -q; git checkout -q -- b; "
                    "git rebase -q HEAD~0; git log --format=%s; echo x > ../sibling/x; "
                    "echo x > ../main/x; echo x > ../main/.git/hooks/pre-commit; echo end",
                    cwd=place.home / "linked")
    assert ran.status == 0 and "b\na\nend\n" in ran.out, ran
    assert snapshot(place.home / "sibling") == before
    assert not (main / "x").exists() and not (main / ".git/hooks/pre-commit").exists()


def test_git_submodule_and_worktree_config(place):
    need("git")
    same_work(place, """
git init -q lib; (cd lib; echo l > l; git add l; git commit -qm l)
git -c protocol.file.allow=always submodule --quiet add ./lib vendor/lib
git commit -qm sub; git submodule status | wc -l
git config extensions.worktreeConfig true; git config --worktree core.sparseCheckout false
git status --porcelain
""", ignore=GIT_IGNORE)


def test_guarded_git_places_are_refused_and_work_goes_on(place):
    """PE01, PE02, GD02: hooks, dangerous keys; and git itself still works after."""
    ran = place.run("""
echo evil > .git/hooks/pre-commit; cp README .git/hooks/post-checkout
mv .git/hooks .git/h2; mkdir x; echo evil > x/pre-commit; mv x .git/hooks
ln -s ../../README .git/hooks/pre-push
git config core.fsmonitor evil; git config core.sshCommand evil; git config core.hooksPath .
git config filter.x.clean evil; git config diff.external evil; git config alias.x '!evil'
rm -rf sub; git init -q sub; echo evil > sub/.git/hooks/pre-commit
echo evil > .envrc; mkdir -p v; echo '{}' > v/tasks.json; mv v .vscode; echo '{}' > .mcp.json
echo ok > f; git add f; git commit -qm ok; git log --format=%s; echo end""", timeout=60)
    assert "ok\nfirst\nend\n" in ran.out, ran
    git = place.project / ".git"
    config = (git / "config").read_text()
    assert "evil" not in config and "hooksPath" not in config, config
    live = [p for p in (git / "hooks").iterdir() if not p.name.endswith(".sample")] \
        if (git / "hooks").exists() else []
    assert live == []
    assert not (place.project / "sub/.git/hooks/pre-commit").exists()
    for name in (".envrc", ".vscode/tasks.json", ".mcp.json"):
        assert not (place.project / name).exists(), name
    assert len(ran.session.refused()) >= 8


def test_npm_install_of_local_packages(place):
    need("npm", "node")
    place.expect_changes(".npm", ".npmrc")  # natively the cache; the other holds tokens
    (place.home / ".npmrc").unlink()
    same_work(place, """
for p in one two; do mkdir -p pk/$p; cat > pk/$p/package.json <<E
{"name":"$p","version":"1.0.0","main":"i.js","bin":{"$p":"i.js"}}
E
printf '#!/usr/bin/env node\\nconsole.log("%s")\\n' $p > pk/$p/i.js; chmod +x pk/$p/i.js
(cd pk/$p && npm pack --silent --offline >/dev/null); done
cat > package.json <<E
{"name":"app","version":"1.0.0","scripts":{"t":"one && two && node -e 'console.log(1+1)'"}}
E
npm install --offline --no-audit --no-fund --silent pk/one/one-1.0.0.tgz pk/two/two-1.0.0.tgz
npm run --silent t; npm ci --offline --no-audit --no-fund --silent; npm ls --parseable | wc -l
""", env={"npm_config_cache": None}, ignore=(r"\.package-lock\.json$", r"\.tgz$"), timeout=300)


def test_cmake_build(place):
    need("cmake", "ninja", "cc")
    same_work(place, """
cat > CMakeLists.txt <<E
cmake_minimum_required(VERSION 3.20)
project(p C)
enable_testing()
add_library(l STATIC l.c)
add_executable(e e.c)
target_link_libraries(e l)
add_test(NAME t COMMAND e)
E
echo 'int f(void){return 42;}' > l.c
printf '#include <stdio.h>\\nint f(void);int main(void){printf("%%d\\\\n",f());return 0;}\\n' > e.c
cmake -G Ninja -B b . >/dev/null; ninja -C b >/dev/null; ./b/e; (cd b && ctest -Q)
sed -i s/42/43/ l.c; ninja -C b >/dev/null; ./b/e
""", ignore=(r"^b/(CMakeFiles|\.ninja|Testing|CMakeCache|build\.ninja|cmake_install|CTest)",
             r"^b$"))


def test_make_with_jobs(place):
    need("make", "cc")
    same_work(place, """
for i in $(seq 12); do echo "int f$i(void){return $i;}" > s$i.c; done
echo 'int main(void){return 0;}' > main.c
printf 'all: p\\np: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n\\tcc -o $@ $^\\nclean:\\n\\trm -f *.o p\\n' > Makefile
make -j4 -s; ./p; make -s clean; make -j2 -s CFLAGS=-O1; ls
""")


def test_python_venv_and_pip(place):
    need("python3")
    if not os.path.exists("/usr/lib/python3/dist-packages/pip") and shutil.which("pip3") is None:
        pytest.skip("pip is not installed")
    same_work(place, """
unset PYTHONDONTWRITEBYTECODE
/usr/bin/python3 -m venv --system-site-packages v || exit 77
mkdir -p w; cd w; /usr/bin/python3 - <<E
import zipfile, hashlib, base64
n='hi-1.0'; files={'hi.py':b'def main(): print("hi from wheel")\\n',
 n+'.dist-info/METADATA':b'Metadata-Version: 2.1\\nName: hi\\nVersion: 1.0\\n',
 n+'.dist-info/WHEEL':b'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
 n+'.dist-info/entry_points.txt':b'[console_scripts]\\nhi = hi:main\\n'}
rec=''.join('%s,sha256=%s,%d\\n'%(k,base64.urlsafe_b64encode(hashlib.sha256(v).digest()).rstrip(b'=').decode(),len(v)) for k,v in files.items())
files[n+'.dist-info/RECORD']=(rec+n+'.dist-info/RECORD,,\\n').encode()
z=zipfile.ZipFile('hi-1.0-py3-none-any.whl','w')
for k,v in files.items(): z.writestr(zipfile.ZipInfo(k),v)
z.close()
E
cd ..; v/bin/python -m pip install -q --no-index --disable-pip-version-check w/*.whl; v/bin/hi
v/bin/python -c 'import hi, sys; print(sys.prefix != sys.base_prefix)'
""", ignore=(r"__pycache__", r"\.pyc$"), timeout=300)


def test_sqlite_wal_with_writers(place):
    need("python3")
    same_work(place, """
cat > w.py <<E
import sqlite3, sys
from multiprocessing import Process
def work(n):
    c = sqlite3.connect('db', timeout=60)
    for i in range(25):
        with c: c.execute('insert into t values(?,?)', (n, i))
c = sqlite3.connect('db'); print(c.execute('pragma journal_mode=wal').fetchone())
c.execute('create table t(a,b)'); c.commit(); c.close()
ps = [Process(target=work, args=(n,)) for n in range(4)]
[p.start() for p in ps]; [p.join() for p in ps]
c = sqlite3.connect('db'); print(c.execute('select count(*), sum(b) from t').fetchone())
print(c.execute('pragma integrity_check').fetchone(), c.execute('pragma wal_checkpoint(truncate)').fetchone())
E
/usr/bin/python3 w.py
""", ignore=(r"^db",))


def test_copies_and_archives(place):
    need("tar", "rsync", "setfattr")
    same_work(place, """
mkdir -p a/b/c a/empty; echo 1 > a/1; echo 2 > a/b/2; ln -s ../1 a/b/l; ln a/1 a/hard
chmod 600 a/1; chmod 2755 a/b; chmod 1777 a/empty; mkfifo a/p; setfattr -n user.k -v v a/b/2
touch -d 2001-02-03 a/b/2 a/b; truncate -s 1M a/sparse; printf x > 'a/sp ace'; touch $'a/new\\nline'
cp -a a copy; tar --xattrs -cf t.tar a; mkdir out; tar --xattrs -xpf t.tar -C out
rsync -aHAX a/ synced/; cp -r --reflink=auto a/b plain; install -D -m 640 a/1 deep/er/1
mv out/a moved; find . -name '*2' -newermt 2000-01-01 ! -newermt 2002-01-01 | sort
stat -c '%n %a %Y' moved/b moved/b/2 synced/b/2 copy/b/2; diff -r --no-dereference a/b copy/b
rm -rf copy; ls
""", ignore=(r"t\.tar$",))


def test_python_multiprocessing_and_shared_memory(place):
    need("python3")
    for method in ("fork", "spawn", "forkserver"):
        same_work(place, """
cat > m.py <<E
import multiprocessing as mp
from multiprocessing import shared_memory
def f(x): return x * x
def g(name):
    s = shared_memory.SharedMemory(name); s.buf[0] = 42; s.close()
if __name__ == '__main__':
    mp.set_start_method('%s')
    with mp.Pool(3) as p: print(p.map(f, range(20)))
    q = mp.Queue(); q.put('x'); print(q.get())
    s = shared_memory.SharedMemory(create=True, size=64)
    p = mp.Process(target=g, args=(s.name,)); p.start(); p.join(); print(s.buf[0]); s.close(); s.unlink()
    with mp.Manager() as m: d = m.dict(); d[1] = 2; print(dict(d))
    l = mp.Lock(); l.acquire(); l.release(); print(mp.Semaphore(2).acquire())
E
/usr/bin/python3 m.py
""" % method, ignore=(r"__pycache__",))


def test_node_workers_and_servers(place):
    need("node")
    same_work(place, """
cat > n.js <<'E'
const { Worker, isMainThread, parentPort } = require('worker_threads');
const http = require('http'), net = require('net'), fs = require('fs'), cp = require('child_process');
if (!isMainThread) { parentPort.postMessage(fs.readFileSync('README', 'utf8').length); }
else {
  let left = 3, sum = 0;
  for (let i = 0; i < 3; i++) new Worker(__filename).on('message', m => { sum += m; if (!--left) { console.log(sum); server(); } });
  function server() {
    const s = http.createServer((q, r) => r.end('ok ' + q.url)).listen(0, () => {
      http.get({ port: s.address().port, host: 'localhost', path: '/x' }, r => { r.on('data', d => console.log(String(d))); r.on('end', () => { s.close(); unix(); }); });
    });
  }
  function unix() {
    const s = net.createServer(c => c.end('unix')).listen('./s.sock', () => {
      net.connect('./s.sock').on('data', d => console.log(String(d))).on('end', () => { s.close(); child(); });
    });
  }
  function child() { console.log(cp.execFileSync('sh', ['-c', 'echo child; cat README']).toString());
    const w = fs.watch('.', () => { w.close(); console.log('watched'); }); fs.writeFileSync('made', 'x'); }
}
E
node n.js
""")


def test_locks_fifos_and_pipelines(place):
    need("flock")
    same_work(place, """
mkfifo p; (for i in 1 2 3; do echo $i; done > p) & cat p; wait
for i in $(seq 20); do (flock 9; n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n) 9>lock & done; wait; cat n
diff <(printf 'a\\nb\\n') <(printf 'a\\nb\\n') && echo same
printf 'b\\na\\n' | sort | tee >(cat > copy) | cat; sleep 0.1; cat copy
exec 3<> rw; echo x >&3; exec 3>&-; (echo to-fd > /dev/fd/1; echo e > /dev/stdout) | cat
set -o noclobber; echo x > once; (echo y > once) 2>/dev/null || echo kept; set +o noclobber
yes | head -1000 | wc -l; (ulimit -f 1; head -c 4096 /dev/zero > big 2>/dev/null) || echo limited
""", ignore=(r"^big$",))


def test_editing_tools(place):
    same_work(place, """
printf 'one\\ntwo\\n' > f; sed -i s/two/TWO/ f; perl -pi -e 's/one/ONE/' f; cat f
cp f f.orig; echo three >> f; diff -u --label a --label b f.orig f > d || true; cp f.orig g; patch -s g d; cmp f g
t=$(mktemp); echo x > $t; mv $t moved; t=$(mktemp -d); touch $t/a; rm -r $t
m=$(mktemp -p .); rm $m; ln -sf moved l; ln -sfn moved l; readlink l; rm -f nothing; mkdir -p a/b/c a/b
find a -type d -empty -delete; [ -d a ] || echo gone; truncate -s 5 moved; stat -c %s moved
tac f | head -1; xargs -a f -n1 echo | wc -l; dd if=/dev/zero of=z bs=1k count=2 status=none
touch -r f z; [ f -nt z ] || [ z -nt f ] || echo equal; install -m 755 f i; stat -c %a i
""")


def test_o_tmpfile_memfd_and_copies(place):
    need("python3")
    same_work(place, """
cat > t.py <<'E'
import ctypes, os, mmap, fcntl, tempfile
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o640); os.write(fd, b'unnamed')
AT_FDCWD, FOLLOW = -100, 0x400
assert libc.linkat(AT_FDCWD, b'/proc/self/fd/%d' % fd, AT_FDCWD, b'named', FOLLOW) == 0, ctypes.get_errno()
os.fchmod(fd, 0o600); os.utime(fd, (1, 2)); print(open('named').read(), oct(os.stat('named').st_mode), os.stat('named').st_mtime)
m = os.memfd_create('x'); os.write(m, b'#!/bin/sh\\necho from memfd\\n')
print(open('/proc/self/fd/%d' % m).read().split()[0]); os.chmod('/proc/self/fd/%d' % m, 0o700)
with open('mapped', 'wb+') as f:
    f.truncate(4096); mm = mmap.mmap(f.fileno(), 4096); mm[0:5] = b'hello'; mm.flush(); print(open('mapped', 'rb').read(5))
a = os.open('named', os.O_RDONLY); b = os.open('copied', os.O_WRONLY | os.O_CREAT, 0o644)
print(os.copy_file_range(a, b, 7), os.sendfile(b, a, 0, 7)); os.posix_fallocate(b, 0, 100)
print(os.stat('copied').st_size, os.open('named', os.O_PATH) > 2)
with tempfile.TemporaryFile() as t, tempfile.NamedTemporaryFile() as n: t.write(b'x'); n.write(b'y')
d = os.open('.', os.O_RDONLY); os.mkdir('dd', dir_fd=d); os.rename('dd', 'ee', src_dir_fd=d, dst_dir_fd=d); print(os.listdir(d).count('ee'))
os.symlink('nowhere', 'dangling'); print(os.path.lexists('dangling'), os.path.exists('dangling'))
open('dangling', 'w').write('made through'); print(open('nowhere').read())
os.setxattr('named', 'user.a', b'1'); print(os.listxattr('named')); os.removexattr('named', 'user.a')
os.lchown('dangling', -1, -1); os.mkfifo('ff'); print(os.stat('ff').st_mode)
os.link('named', 'second'); print(os.stat('named').st_nlink); os.replace('second', 'third'); os.truncate('third', 3); print(open('named').read())
E
/usr/bin/python3 t.py
""")


def test_threads_and_many_processes(place):
    need("python3")
    same_work(place, """
cat > t.py <<'E'
import os, threading, subprocess
def work(n):
    for i in range(200):
        name = 'f%d-%d' % (n, i)
        open(name, 'w').write(name); assert open(name).read() == name; os.rename(name, name + 'x'); os.unlink(name + 'x')
ts = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print(len(os.listdir('.')))
ps = [subprocess.Popen(['sh', '-c', 'echo $((%d*2)) > o%d' % (i, i)]) for i in range(40)]
print(sum(p.wait() for p in ps), sum(int(open('o%d' % i).read()) for i in range(40)))
E
/usr/bin/python3 t.py
""")


def test_strace_and_gdb_of_own_children(place):
    need("strace", "gdb")
    same_work(place, """
strace -f -e trace=mkdir,mkdirat -o trace sh -c 'mkdir made'; grep -c made trace
printf 'int main(void)\\n{\\n  volatile int x = 41;\\n  x++;\\n  return x - 42;\\n}\\n' > g.c; cc -g -O0 g.c -o g
gdb -q -batch -ex 'break 4' -ex run -ex 'print x' -ex continue ./g 2>/dev/null | grep '= 41'
""", ignore=(r"^trace$", r"^g$"))


def test_tmux_and_ssh_agent_of_the_session(place):
    """Servers of its own on unix sockets work, stale ones too."""
    need("tmux", "ssh-agent")
    same_work(place, """
tmux -f /dev/null -S ./t.sock new-session -d -x 80 -y 24 'sleep 30'; tmux -S ./t.sock display -p '#{window_width}'
tmux -S ./t.sock kill-server; sleep 0.2; rm -f t.sock
eval $(ssh-agent -a ./a.sock) >/dev/null; ssh-keygen -q -t ed25519 -N '' -f key; ssh-add -q key; ssh-add -l | wc -l
ssh-agent -k >/dev/null; rm -f key key.pub a.sock
""", refusals=True)  # both try datagrams to the user's own services
