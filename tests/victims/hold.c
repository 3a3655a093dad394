/* The outside: a process of the same user, not in the session, with one of everything that an
 * agent might reach for. What reaches it is noted in WORLD/events, one word a line. */
#define _GNU_SOURCE
#include "victim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

static char buffer[64] = "memory-of-the-outside";

static void need(long result, const char* what) {
  if (result >= 0) return;
  fprintf(stderr, "victims hold: %s: %s\n", what, strerror(errno));
  exit(2);
}

static int unix_socket(int type, const char* name, size_t length) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (length > sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, name, length);
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (bind(fd, (struct sockaddr*)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) != 0)
    return -1;
  if (type != SOCK_DGRAM && listen(fd, 16) != 0) return -1;
  return fd;
}

static int inet_socket(int family, int type, int* port) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const int fd = socket(family, type | SOCK_CLOEXEC, 0), one = 1;
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
  if (type == SOCK_STREAM) setsockopt(fd, IPPROTO_TCP, 23 /* TCP_FASTOPEN */, &(int){16}, 4);
  struct sockaddr* address = family == AF_INET ? (struct sockaddr*)&v4 : (struct sockaddr*)&v6;
  socklen_t length = family == AF_INET ? sizeof v4 : sizeof v6;
  if (bind(fd, address, length) != 0) return -1;
  if (type == SOCK_STREAM && listen(fd, 16) != 0) return -1;
  if (getsockname(fd, address, &length) != 0) return -1;
  *port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
  return fd;
}

/* The address other machines may reach this one at: 0.0.0.0 when there is none. Nothing is sent. */
static const char* reachable_address(void) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
  to.sin_addr.s_addr = inet_addr("198.51.100.1");
  socklen_t length = sizeof to;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr*)&to, length) != 0 ||
      getsockname(fd, (struct sockaddr*)&to, &length) != 0)
    to.sin_addr.s_addr = 0;
  close(fd);
  return inet_ntoa(to.sin_addr);
}

static void make_file(const char* path, const char* text) {
  need(write_file(path, text), path);
}

static void note(const char* word) {
  const int fd = open(in_world("events"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const char* line = format("%s\n", word);
  if (write(fd, line, strlen(line)) < 0) {
  }
  close(fd);
}

int hold(void) {
  const int me = getpid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  umask(022);
  make_file(in_world("canary.txt"), "canary\n");
  make_file(in_world("other.txt"), "other\n");
  setxattr(in_world("canary.txt"), "user.present", "1", 1, 0); /* where the file system has them */
  need(mkdir(in_world("dir"), 0755), "dir");
  make_file(in_world("dir/inner.txt"), "inner\n");
  need(mkdir(in_world("empty"), 0755), "empty");
  make_file(in_world("events"), "");
  const char* secret = getenv("VICTIM_SECRET");
  if (secret == NULL) make_file(secret = in_world("secret.txt"), "secret\n");

  char shared[64], abstract[64], queue[64], temporary[64], semaphore[64];
  snprintf(shared, sizeof shared, "/dev/shm/nd7-victim-%d", me);
  snprintf(semaphore, sizeof semaphore, "/nd7-victim-%d", me);
  snprintf(temporary, sizeof temporary, "/tmp/nd7-victim-%d", me);
  snprintf(abstract, sizeof abstract, "%cnd7-victim-%d", 0, me);
  snprintf(queue, sizeof queue, "/nd7-victim-%d", me);
  make_file(shared, "shared\n");
  make_file(temporary, "temporary\n");
  sem_t* sem = sem_open(semaphore, O_CREAT | O_EXCL, 0600, 1);
  const mqd_t mq = mq_open(queue, O_CREAT | O_RDWR, 0600, NULL); /* may be missing */

  const key_t key = (key_t)(0x6e640000 | (me & 0xffff));
  const int shm = shmget(key, 4096, IPC_CREAT | 0600);
  const int set = semget(key, 1, IPC_CREAT | 0600);
  const int msg = msgget(key, IPC_CREAT | 0600);
  need(shm, "shmget");
  need(set, "semget");
  need(msg, "msgget");
  semctl(set, 0, SETVAL, 1);
  const struct {
    long type;
    char text[8];
  } message = {1, "message"};
  msgsnd(msg, &message, sizeof message.text, IPC_NOWAIT);

  const int memory = memfd_create("outside", MFD_CLOEXEC);
  need(write(memory, "memfd-secret", 12), "memfd");
  int pipe_ends[2];
  need(pipe2(pipe_ends, O_CLOEXEC), "pipe");
  need(write(pipe_ends[1], "pipe-secret", 11), "pipe");
  const int file = open(in_world("canary.txt"), O_RDWR | O_CLOEXEC);
  const int directory = open(world, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  need(master, "openpt");
  grantpt(master);
  unlockpt(master);
  const char* slave_name = ptsname(master);
  const int slave = open(slave_name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  need(slave, slave_name);
  struct termios raw;
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  need(write(master, "typed", 5), "typing");

  int tcp_port = 0, tcp6_port = 0, udp_port = 0;
  const int stream = unix_socket(SOCK_STREAM, in_world("sock"), strlen(in_world("sock")));
  need(stream, "WORLD/sock");
  const int datagram = unix_socket(SOCK_DGRAM, in_world("dgram"), strlen(in_world("dgram")));
  need(datagram, "WORLD/dgram");
  const int named = unix_socket(SOCK_STREAM, abstract, 1 + strlen(abstract + 1));
  need(named, "abstract socket");
  const int tcp = inet_socket(AF_INET, SOCK_STREAM, &tcp_port);
  need(tcp, "TCP");
  const int tcp6 = inet_socket(AF_INET6, SOCK_STREAM, &tcp6_port); /* no IPv6: port 0 */
  const int udp = inet_socket(AF_INET, SOCK_DGRAM, &udp_port);
  need(udp, "UDP");

  sigset_t mask;
  sigemptyset(&mask);
  const int heard[] = {SIGURG, SIGIO, SIGUSR1, SIGWINCH, SIGCONT, SIGHUP, SIGTERM};
  for (size_t i = 0; i < sizeof heard / sizeof *heard; ++i) sigaddset(&mask, heard[i]);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  const int signals = signalfd(-1, &mask, SFD_CLOEXEC);
  setpriority(PRIO_PROCESS, 0, 5);
  syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 5);

  make_file(in_world("facts"),
            format("pid=%d\nsecret=%s\nshared=%s\nsemaphore=%s\ntemporary=%s\nqueue=%s\nkey=%d\n"
                   "shm=%d\nsem=%d\nmsg=%d\nmemfd=%d\npipe=%d\nfile=%d\ndirectory=%d\npts=%s\n"
                   "master=%d\nabstract=%s\ntcp=%d\ntcp6=%d\nudp=%d\nbuffer=%p\nstream_fd=%d\n"
                   "queue_made=%d\naddress=%s\n",
                   me, secret, shared, semaphore, temporary, queue, key, shm, set, msg, memory,
                   pipe_ends[0], file, directory, slave_name, master, abstract + 1, tcp_port,
                   tcp6_port, udp_port, (void*)buffer, stream, mq != (mqd_t)-1,
                   reachable_address()));
  printf("ready\n");
  fflush(stdout);

  struct pollfd polled[] = {
      {.fd = 0, .events = POLLIN},        {.fd = signals, .events = POLLIN},
      {.fd = datagram, .events = POLLIN}, {.fd = udp, .events = POLLIN},
      {.fd = stream, .events = POLLIN},   {.fd = named, .events = POLLIN},
      {.fd = tcp, .events = POLLIN},      {.fd = tcp6, .events = POLLIN},
  };
  for (;;) {
    if (poll(polled, sizeof polled / sizeof *polled, -1) < 0) continue;
    char data[256];
    if (polled[0].revents != 0 && read(0, data, sizeof data) <= 0) break;
    if (polled[1].revents != 0) {
      struct signalfd_siginfo info;
      if (read(signals, &info, sizeof info) == sizeof info)
        note(format("signal-%u", info.ssi_signo));
    }
    for (int i = 2; i < 4; ++i)
      if (polled[i].revents != 0) {
        const ssize_t n = recv(polled[i].fd, data, sizeof data - 1, MSG_DONTWAIT);
        if (n > 0) note(format("%s-%.*s", i == 2 ? "dgram" : "udp", (int)n, data));
      }
    static const char* const accepted[] = {"stream", "abstract", "tcp", "tcp6"};
    for (int i = 4; i < 8; ++i)
      if (polled[i].revents != 0) {
        const int client = accept4(polled[i].fd, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) {
          note(accepted[i - 4]);
          close(client);
        }
      }
  }
  unlink(shared);
  unlink(temporary);
  sem_close(sem);
  sem_unlink(semaphore);
  mq_unlink(queue);
  shmctl(shm, IPC_RMID, NULL);
  semctl(set, 0, IPC_RMID);
  msgctl(msg, IPC_RMID, NULL);
  return 0;
}
