"""Things a program can notice of a call that somebody else performs for it. Each was measured to
go wrong in one way of building the gate."""

import os
import subprocess

import pytest

from judge import STILL, judge


def python(place, code, *options, timeout=120, **kw):
    place.write("project/t.py", code)
    return place.run(["/usr/bin/python3", "t.py"], *options, timeout=timeout, **kw)


def c_program(place, code, *arguments, native=False, timeout=120):
    place.write("project/t.c", code)
    place.native(["cc", "-O1", "-o", "t", "t.c", "-lpthread"], check=True)
    if native:
        return place.native(["./t", *arguments], timeout=timeout)
    return place.run(["./t", *arguments], timeout=timeout)


def test_write_close_exec_never_gives_etxtbsy(place):
    """300 times: the supervisor's copy of a descriptor must be gone when the caller goes on."""
    ran = python(place, """
import os, subprocess
busy = 0
for i in range(300):
    name = './p%d' % (i % 7)
    with open(name, 'w') as f: f.write('#!/bin/sh\\nexit 0\\n')
    os.chmod(name, 0o755)
    try: assert subprocess.call([name]) == 0
    except OSError as e: busy += 1
print('busy', busy)
""")
    assert ran.out == "busy 0\n", ran


def test_flock_is_never_refused_falsely(place):
    """A lock of a file opened and closed in turn by several processes: whoever holds it alone must
    get it without waiting."""
    ran = c_program(place, r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int wrong = 0;
  for (int p = 0; p < 4; ++p)
    if (fork() == 0) {
      char name[16];
      snprintf(name, sizeof name, "lock%d", p);
      for (int i = 0; i < 2000; ++i) {
        int fd = open(name, O_RDWR | O_CREAT, 0600);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) _exit(1);
        close(fd);
      }
      _exit(0);
    }
  for (int s; wait(&s) > 0;) wrong += WEXITSTATUS(s);
  printf("wrong %d\n", wrong);
}
""")
    assert ran.out == "wrong 0\n", ran


STORM = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int heard;
static void on_alarm(int n) { (void)n; heard++; }
int main(int argc, char **argv) {
  struct sigaction a = {.sa_handler = on_alarm, .sa_flags = strcmp(argv[1], "restart") == 0 ? SA_RESTART : 0};
  sigaction(SIGALRM, &a, NULL);
  struct itimerval every = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &every, NULL);
  int interrupted = 0, twice = 0, other = 0;
  for (int i = 0; i < 3000; ++i) {
    /* An interrupted call must not have been done: done again, it works. */
    int again = 0;
    while (mkdir("d", 0700) != 0 && errno == EINTR) again++;
    if (again) interrupted++;
    if (access("d", F_OK) != 0) other++;
    if (again && rmdir("d") != 0 && errno != EINTR) twice++;
    if (!again) while (rmdir("d") != 0) { if (errno != EINTR) { twice++; break; } interrupted++; }
    if (mkdir("d", 0700) != 0) { if (errno == EEXIST && !again) twice++; else if (errno != EINTR && errno != EEXIST) other++; }
    while (rmdir("d") != 0) if (errno != EINTR) { other += errno != ENOENT; break; }
    int fd = open("f", O_RDWR | O_CREAT, 0600);
    if (fd < 0) { if (errno == EINTR) interrupted++; else other++; } else close(fd);
  }
  printf("%s twice %d other %d heard %d interrupted %d\n", argv[1], twice, other, heard > 50, interrupted);
  (void)argc;
}
"""


@pytest.mark.parametrize("mode", ["restart", "interrupt"])
def test_signal_storm(place, mode):
    """A timer every 100 microseconds: nothing is done twice. With SA_RESTART nothing is interrupted;
    without, EINTR is legal (the signal came before the call was received), and not the rule."""
    ran = c_program(place, STORM, mode)
    words = ran.out.split()
    assert words[:7] == [mode, "twice", "0", "other", "0", "heard", "1"], ran
    interrupted = int(words[-1])
    assert interrupted == 0 if mode == "restart" else interrupted < 6000, ran


def test_signal_storm_in_go_like_threads(place):
    """Threads that signal each other all the time (Go's preemption) and mutate files."""
    ran = c_program(place, r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static pthread_t threads[8];
static volatile int stop, errors;
static void on(int n) { (void)n; }
static void *work(void *arg) {
  char name[32];
  for (int i = 0; i < 400; ++i) {
    snprintf(name, sizeof name, "w%ld-%d", (long)arg, i);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) errors++; else close(fd);
    if (unlink(name) != 0) errors++;
  }
  return arg;
}
static void *shoot(void *arg) {
  while (!stop) for (int i = 0; i < 8; ++i) if (threads[i]) pthread_kill(threads[i], SIGURG);
  return arg;
}
int main(void) {
  struct sigaction a = {.sa_handler = on, .sa_flags = SA_RESTART};
  sigaction(SIGURG, &a, NULL);
  pthread_t shooter;
  for (long i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, work, (void *)i);
  pthread_create(&shooter, NULL, shoot, NULL);
  pthread_t kept[8];
  for (int i = 0; i < 8; ++i) { kept[i] = threads[i]; }
  /* joined threads must not be signalled: the shooter stops first when the work is nearly over */
  usleep(300000); stop = 1; pthread_join(shooter, NULL);
  for (int i = 0; i < 8; ++i) pthread_join(kept[i], NULL);
  printf("errors %d\n", errors);
}
""")
    assert ran.out == "errors 0\n", ran


def test_fifo_open_blocks_and_a_signal_interrupts_it(place):
    ran = python(place, """
import errno, os, signal, threading, time
os.mkfifo('p')
# blocks until the other end comes
t = threading.Timer(0.5, lambda: os.close(os.open('p', os.O_RDONLY))); t.start()
begin = time.monotonic(); fd = os.open('p', os.O_WRONLY); waited = time.monotonic() - begin; os.close(fd); t.join()
print('waited', waited > 0.3)
# a handler runs at once, although the call is being waited for
def handler(*_): raise TimeoutError
signal.signal(signal.SIGALRM, handler); signal.setitimer(signal.ITIMER_REAL, 0.3)
begin = time.monotonic()
try: os.open('p', os.O_RDONLY); print('opened')
except TimeoutError: print('interrupted', time.monotonic() - begin < 1.5)
# without waiting
try: os.open('p', os.O_WRONLY | os.O_NONBLOCK)
except OSError as e: print(errno.errorcode[e.errno])
fd = os.open('p', os.O_RDONLY | os.O_NONBLOCK); os.close(fd)
fd = os.open('p', os.O_RDWR); os.write(fd, b'x'); print(os.read(fd, 1))
""")
    assert ran.out == "waited True\ninterrupted True\nENXIO\nb'x'\n", ran


def test_fifo_ends_always_meet(place):
    """A hundred times a writer that comes and goes at once: the reader must have seen it, whichever
    of the two opened first."""
    ran = place.run("for i in $(seq 100); do mkfifo p; echo $i > p & cat p; wait; rm p; done",
                    timeout=60)
    assert ran.out.split() == [str(i) for i in range(1, 101)], ran


def test_many_blocked_fifos_do_not_stop_others(place):
    """Forty opens that wait, and files can be made all the same; killing the waiting works."""
    ran = place.run(["bash", "-c", "for i in $(seq 40); do mkfifo p$i; cat p$i & done; sleep 0.5; "
                     "for i in $(seq 50); do echo $i > f$i; done; ls f* | wc -l; "
                     "kill $(jobs -p); wait; echo over"], timeout=60)
    assert ran.out.split() == ["50", "over"], ran


def test_stop_and_continue_in_a_blocked_open(place):
    ran = python(place, """
import os, signal, subprocess, time
os.mkfifo('p')
c = subprocess.Popen(['cat', 'p'], stdout=subprocess.PIPE)
time.sleep(0.3); c.send_signal(signal.SIGSTOP); time.sleep(0.3)
state = open('/proc/%d/stat' % c.pid).read().rsplit(')', 1)[1].split()[0]
c.send_signal(signal.SIGCONT)
fd = os.open('p', os.O_WRONLY); os.write(fd, b'late'); os.close(fd)
print(state, c.communicate(timeout=10)[0])
""")
    assert ran.out == "T b'late'\n", ran


@pytest.mark.parametrize("umask", ["000", "027", "077", "777"])
def test_umask_is_obeyed(place, umask):
    script = ("umask %s; touch f; mkdir d; mkfifo p; python3 -c 'import os, socket; "
              "os.mknod(\"n\", 0o666); socket.socket(socket.AF_UNIX).bind(\"s\"); "
              "os.open(\"c\", os.O_CREAT | os.O_WRONLY, 0o4755)'; stat -c '%%n %%a' f d p n s c" % umask)
    native = place.native(["sh", "-c", script])
    place.native(["sh", "-c", "chmod 700 d; rm -rf f d p n s c"])
    inside = place.run(script)
    assert inside.out == native.out and inside.out.count("\n") == 6, (inside, native)


def test_umask_of_a_thread_that_changes(place):
    """Set and used in a loop by several processes: none sees another's."""
    ran = python(place, """
import os
def work(n):
    mask = (0o022, 0o077, 0o007, 0o000)[n]
    for i in range(300):
        os.umask(mask if i % 2 else 0o777)
        name = 'u%d-%d' % (n, i)
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o666))
        want = 0o666 & ~(mask if i % 2 else 0o777)
        if os.stat(name).st_mode & 0o777 != want: os._exit(1)
    os._exit(0)
pids = []
for n in range(4):
    pid = os.fork()
    if pid == 0: work(n)
    pids.append(pid)
print([os.waitpid(p, 0)[1] for p in pids])
""")
    assert ran.out == "[0, 0, 0, 0]\n", ran


def test_terminals_are_not_taken(place):
    """A process without a terminal that opens one gets it as its own, as natively, and only it: the
    supervisor never does. With O_NOCTTY nobody."""
    ran = python(place, """
import os, pty, fcntl, termios
master, slave = os.openpty(); name = os.ttyname(slave); os.close(slave)
def child(flags):
    pid = os.fork()
    if pid == 0:
        os.setsid(); fd = os.open(name, os.O_RDWR | flags)
        try: os.close(os.open('/dev/tty', os.O_RDWR)); os._exit(1)
        except OSError: os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print('with O_NOCTTY', child(os.O_NOCTTY), flush=True)
pid = os.fork()
if pid == 0:
    os.setsid(); fd = os.open(name, os.O_RDWR); fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
    print('own', os.tcgetpgrp(fd) == os.getpgrp(), flush=True); os._exit(0)
print(os.waitpid(pid, 0)[1])
""")
    assert "with O_NOCTTY 0" in ran.out, ran
    assert "own True" in ran.out and ran.out.endswith("0\n"), ran


def test_own_descriptors_in_paths(place):
    """/proc/self/fd/N at the end and in the middle, /dev/fd, /proc/PID/fd, thread-self, /dev/stdin."""
    ran = python(place, """
import os, threading
os.mkdir('d')
d = os.open('d', os.O_RDONLY | os.O_DIRECTORY); p = os.open('d', os.O_PATH)
for n, fd in enumerate((d, p)):
    for top in ('/proc/self/fd', '/dev/fd', '/proc/%d/fd' % os.getpid(), '/proc/thread-self/fd'):
        name = '%s/%d/made' % (top, fd)
        f = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600); os.write(f, b'x'); os.close(f)
        assert open(name).read() == 'x'; os.rename(name, name + '2'); os.unlink(name + '2')
        os.mkdir('%s/%d/dir' % (top, fd)); os.rmdir('%s/%d/dir' % (top, fd))
f = os.open('d/file', os.O_RDWR | os.O_CREAT, 0o600); os.write(f, b'text')
print(open('/proc/self/fd/%d' % f).read(), open('/dev/fd/%d' % f, 'a').write('!'))
def in_thread(): print(open('/proc/thread-self/fd/%d' % f).read(), os.listdir('/proc/self/fd/%d' % d))
t = threading.Thread(target=in_thread); t.start(); t.join()
os.unlink('d/file'); os.fchmod(f, 0o640); os.chmod('/proc/self/fd/%d' % f, 0o600); print(open('/proc/self/fd/%d' % f).read())
r, w = os.pipe(); open('/proc/self/fd/%d' % w, 'w').write('piped'); print(os.read(r, 9))
m = os.memfd_create('m'); open('/proc/self/fd/%d' % m, 'w').write('memory'); os.chmod('/dev/fd/%d' % m, 0o700)
print(open('/proc/self/fd/%d' % m).read(), os.readlink('/proc/self/cwd') == os.getcwd())
print(open('/proc/self/cwd/README').read().strip(), open('/proc/self/root' + os.getcwd() + '/README').read().strip())
""")
    assert ran.status == 0, ran
    assert ran.out == ("text 1\ntext! []\n".replace("[]", "['file']") +
                       "text!\nb'piped'\nmemory True\nhello hello\n"), ran
    assert not ran.session.refused()


def test_listen_without_bind_stays_on_loopback(place):
    """It works, on 127.0.0.1, and another address of the machine does not answer."""
    world = place.world()
    place.expect_changes("outside")
    address = world.facts()["address"]
    session = place.start(["/usr/bin/python3", "-u", "-c", """
import socket, sys
s = socket.socket(); s.listen(); print(s.getsockname()[1])
b = socket.socket(); b.bind(('0.0.0.0', 0)); b.listen(); print(b.getsockname()[1])
s.settimeout(30); b.settimeout(30); s.accept(); b.accept(); print('accepted')
"""])
    from place import wait_for
    import socket
    ports = [int(p) for p in wait_for(lambda: session.out().count("\n") == 2 and
                                      session.out().split(), 15, "ports")]
    if address not in ("0.0.0.0", "127.0.0.1"):
        for port in ports:
            with pytest.raises(OSError):
                socket.create_connection((address, port), timeout=1).close()
    for port in ports:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    assert session.wait().out.endswith("accepted\n")


def test_order_of_answers(place):
    """What the kernel would have said without changing anything comes before the verdict, and is no
    refusal on record."""
    ran = python(place, """
import errno, os, socket
home = os.path.expanduser('~')
def says(name, f, *a, **k):
    try: f(*a, **k); print(name, 'OK')
    except OSError as e: print(name, errno.errorcode[e.errno])
says('mkdir-home', os.mkdir, home)
says('mkdir-root', os.mkdir, '/')
says('mkdir-usr', os.mkdir, '/usr')
says('makedirs', os.makedirs, home + '/data', exist_ok=True)
says('unlink', os.unlink, home + '/data/none')
says('rmdir', os.rmdir, home + '/none')
says('rename', os.rename, home + '/none', 'x')
says('chmod', os.chmod, home + '/none', 0o600)
says('open', open, home + '/none/deep', 'w')
says('notdir', open, home + '/canary.txt/x', 'w')
says('excl', os.open, home + '/canary.txt', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
says('symlink', os.symlink, 'x', home + '/canary.txt')
says('link', os.link, 'README', home + '/canary.txt')
says('isdir', open, home + '/data', 'w')
says('truncate', os.truncate, home + '/none', 0)
says('loop', lambda: (os.symlink('l', 'l'), open('l', 'w')))
says('long', open, home + '/' + 'x' * 300, 'w')
says('unix-none', socket.socket(socket.AF_UNIX).connect, home + '/none.sock')
says('badfd', os.fchmod, 999, 0o600)
""")
    assert ran.out.split() == (
        "mkdir-home EEXIST mkdir-root EEXIST mkdir-usr EEXIST makedirs OK unlink ENOENT rmdir ENOENT "
        "rename ENOENT chmod ENOENT open ENOENT notdir ENOTDIR excl EEXIST symlink EEXIST link EEXIST "
        "isdir EISDIR truncate ENOENT loop ELOOP long ENAMETOOLONG unix-none ENOENT badfd EBADF").split(), \
        ran
    assert ran.session.refused() == []


def test_mkdir_p_through_the_home_is_no_refusal(place):
    ran = place.run("mkdir -p $PWD/a/b; mkdir -p ~/data ~/.config /usr/bin; echo $?")
    assert ran.out == "0\n" and ran.session.refused() == [], ran


def test_stale_unix_socket_gives_econnrefused(place):
    sock = place.home / "data" / "stale.sock"
    place.native(["python3", "-c", "import socket; socket.socket(socket.AF_UNIX).bind('%s')" % sock],
                 check=True)
    place.expect_changes("data")
    ran = python(place, """
import errno, os, socket
for path in (os.path.expanduser('~/data/stale.sock'), 'own.sock'):
    if path == 'own.sock': s = socket.socket(socket.AF_UNIX); s.bind(path); s.close()
    try: socket.socket(socket.AF_UNIX).connect(path)
    except OSError as e: print(errno.errorcode[e.errno])
""")
    assert ran.out == "ECONNREFUSED\nECONNREFUSED\n" and ran.session.refused() == [], ran


def test_sun_path_is_kept_as_asked(place):
    """getsockname, getpeername and accept tell the name that was bound, relative and all."""
    code = """
import os, socket
os.makedirs('deep', exist_ok=True)
for name in ('plain.sock', './dot.sock', 'deep/../up.sock', os.getcwd() + '/abs.sock',
             'x' * 90 + '.sock'):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen()
    c = socket.socket(socket.AF_UNIX); c.bind(os.path.basename(name)[-20:] + '.c'); c.connect(name)
    a, peer = s.accept()
    print([t.replace(os.getcwd(), 'CWD') for t in (s.getsockname(), c.getpeername(), peer, a.getpeername())])
    assert os.stat(name).st_uid == os.getuid()
s = socket.socket(socket.AF_UNIX); s.bind('\\0abstract-%d' % os.getpid()); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('\\0abstract-%d' % os.getpid()); print(s.getsockname()[:10])
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.send(b'one'); a.send(b'two'); print(b.recv(9), b.recv(9))
"""
    place.write("project/t.py", code)
    native = place.native(["python3", "t.py"])
    place.native(["sh", "-c", "rm -rf *.sock *.c deep"])
    inside = place.run(["python3", "t.py"])
    assert native.status == 0 and inside.out == native.out, (inside, native)


def test_descriptors_passed_and_peer_credentials(place):
    ran = python(place, """
import array, os, socket, struct
s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('s'); a, _ = s.accept()
socket.send_fds(c, [b'x'], [os.open('README', os.O_RDONLY)])
_, fds, _, _ = socket.recv_fds(a, 1, 1); print(os.read(fds[0], 5))
pid, uid, gid = struct.unpack('3i', a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
print(uid == os.getuid(), gid == os.getgid(), pid > 0)
""")
    assert ran.out == "b'hello'\nTrue True True\n", ran


def test_limits_come_from_the_caller(place):
    """EMFILE and EFBIG and ENOSPC-like limits are the caller's own."""
    ran = python(place, """
import errno, os, resource, signal
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
fds = []
try:
    while True: fds.append(os.open('f%d' % len(fds), os.O_WRONLY | os.O_CREAT))
except OSError as e: print(errno.errorcode[e.errno], 20 < len(fds) < 32)
[os.close(f) for f in fds]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
f = os.open('f0', os.O_WRONLY)
try: os.truncate('f0', 100)
except OSError as e: print(errno.errorcode[e.errno])
""")
    assert ran.out.split()[:2] == ["EMFILE", "True"], ran


def test_bad_pointers_and_long_paths(place):
    """Unreadable pointers, pages that end, PATH_MAX and one more: the kernel's errors, no harm."""
    ran = c_program(place, r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void say(const char *what, long r) { printf("%s %s\n", what, r < 0 ? strerrorname_np(errno) : "OK"); }
int main(void) {
  say("null", syscall(SYS_open, NULL, O_WRONLY));
  say("bad", syscall(SYS_unlink, (char *)8));
  say("kernel", syscall(SYS_mkdir, (char *)0xffff800000000000UL, 0700));
  char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  memcpy(pages + 4096 - 5, "edge", 5);
  say("edge", syscall(SYS_open, pages + 4096 - 5, O_WRONLY | O_CREAT, 0600));
  memcpy(pages + 4096 - 4, "over", 4);
  say("over", syscall(SYS_open, pages + 4096 - 4, O_WRONLY | O_CREAT, 0600));
  static char path[5000];
  memset(path, '/', sizeof path - 1); memcpy(path + 4094, "x", 2);
  path[0] = '.';
  say("path-max", syscall(SYS_open, path, O_WRONLY | O_CREAT, 0600));
  memcpy(path + 4094, "xy", 3);
  say("path-max+1", syscall(SYS_open, path, O_WRONLY | O_CREAT, 0600));
  say("empty", syscall(SYS_open, "", O_WRONLY | O_CREAT, 0600));
  say("dirfd", syscall(SYS_openat, -7, "f", O_WRONLY | O_CREAT, 0600));
  say("not-dir", syscall(SYS_openat, 1, "f", O_WRONLY | O_CREAT, 0600));
  say("flags", syscall(SYS_unlinkat, AT_FDCWD, "edge", 0x4000));
  say("times", syscall(SYS_utimensat, AT_FDCWD, "edge", (void *)8, 0));
  say("rename-flags", syscall(SYS_renameat2, AT_FDCWD, "edge", AT_FDCWD, "y", 99));
  say("xattr-name", syscall(SYS_setxattr, "edge", (char *)8, "v", 1UL, 0));
  say("xattr-space", syscall(SYS_setxattr, "edge", "nonsense.x", "v", 1UL, 0));
  say("xattr-big", syscall(SYS_setxattr, "edge", "user.x", "v", 1UL << 30, 0));
  say("connect", syscall(SYS_connect, socket(AF_INET, SOCK_STREAM, 0), (void *)8, 16));
  say("exec", syscall(SYS_execve, (char *)8, NULL, NULL));
  say("exec-argv", syscall(SYS_execve, "./none", (char **)8, NULL));
}
""")
    native = place.native(["sh", "-c", "rm -f edge; ./t"])
    assert ran.out == native.out, (ran.out, native.out)


def test_descriptors_do_not_leak_or_pile_up(place):
    """O_CLOEXEC as asked, lowest number first, and the supervisor's own count stays flat."""
    ran = python(place, """
import fcntl, os, subprocess
a = os.open('a', os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC); b = os.open('b', os.O_WRONLY | os.O_CREAT)
print(b == a + 1)
import ctypes
c = ctypes.CDLL(None).open(b'c', os.O_WRONLY | os.O_CREAT, 0o600)
print(c == b + 1, fcntl.fcntl(a, fcntl.F_GETFD), fcntl.fcntl(c, fcntl.F_GETFD))
os.close(b); print(os.open('d', os.O_WRONLY | os.O_CREAT) == b)
sup = os.getppid()
before = len(os.listdir('/proc/self/fd'))
for i in range(2000): os.close(os.open('a', os.O_RDWR)); os.mkdir('x'); os.rmdir('x')
print(len(os.listdir('/proc/self/fd')) == before)
""")
    assert ran.out == "True\nTrue 1 0\nTrue\nTrue\n", ran


def test_vfork_spawn_exec_chains_and_scripts(place):
    ran = place.run("""
printf '#!/bin/sh\\nexec ./s2 "$@" from-s1\\n' > s1; printf '#!/usr/bin/env -S python3 -I\\nimport sys; print(sys.argv[1:])\\n' > s2
chmod +x s1 s2; ./s1 x; cp /bin/echo e; ./e copied; bash -c 'exec -a fancy ./e named'
python3 -c 'import os; os.posix_spawn("./s1", ["s1", "spawned"], os.environ); os.wait()'
python3 -c '
import os; fd = os.memfd_create("x", 0); os.write(fd, open("/bin/echo", "rb").read())
os.execve(fd, ["echo", "from-memory"], os.environ)'
cp /bin/sleep gone; ./gone 0.3 & rm gone; wait; /lib64/ld-linux-x86-64.so.2 /bin/echo by-loader; ./none 2>/dev/null; echo $?
""")
    assert ran.out.splitlines() == ["['x', 'from-s1']", "copied", "named",
                                    "['spawned', 'from-s1']", "from-memory", "by-loader", "127"], ran
    execs = [e["body"] for e in ran.session.entries("exec")]
    assert any(b["path"] == str(place.project / "e") and b.get("hash") for b in execs), \
        "what the session wrote is on record with its hash"
    assert any("memfd" in str(b["path"]) for b in execs), execs


def test_ps_and_own_proc_files_work(place):
    ran = place.run("ps aux >/dev/null && echo ps; pgrep -x no-such-thing; cat /proc/self/status | "
                    "grep -c Seccomp:; head -c1 /proc/self/maps >/dev/null && echo maps; "
                    "cat /proc/meminfo /proc/cpuinfo /proc/loadavg /proc/sys/kernel/ostype >/dev/null && "
                    "echo system; echo 500 > /proc/self/oom_score_adj; sleep 9 & "
                    "tr '\\0' ' ' < /proc/$!/cmdline; ls /proc/$!/fd | wc -l; kill $!; "
                    "cat /sys/devices/system/cpu/online >/dev/null && echo sys")
    assert ran.out.split() == ["ps", "1", "maps", "system", "sleep", "9", "3", "sys"], ran


def test_two_cpus_of_calls_while_one_waits(place):
    """A performed call that takes long (a write lease, here a FIFO) does not delay another's."""
    ran = python(place, """
import os, threading, time
os.mkfifo('p')
threads = [threading.Thread(target=lambda: os.open('p', os.O_RDONLY), daemon=True) for _ in range(16)]
[t.start() for t in threads]; time.sleep(0.2)
begin = time.monotonic()
for i in range(500): os.close(os.open('f', os.O_WRONLY | os.O_CREAT))
print(time.monotonic() - begin < 3, flush=True)
os._exit(0)
""")
    assert ran.out == "True\n", ran
