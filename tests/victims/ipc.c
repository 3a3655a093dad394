/* System V and POSIX objects of other programs of the user, and their files in shared places. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FOREIGN "EACCES EPERM ENOENT EINVAL EIDRM"

static key_t key(void) {
  return (key_t)fact_number("key");
}
static int shm(void) {
  return (int)fact_number("shm");
}
static int sem(void) {
  return (int)fact_number("sem");
}
static int msg(void) {
  return (int)fact_number("msg");
}

static int shm_get(void) {
  return outcome(shmget(key(), 1, 0600));
}
static int shm_attach(void) {
  return shmat(shm(), NULL, 0) != (void*)-1 ? worked : says_refused(errno);
}
static int shm_attach_read(void) {
  return shmat(shm(), NULL, SHM_RDONLY) != (void*)-1 ? worked : says_refused(errno);
}
static int shm_remove(void) {
  return outcome(shmctl(shm(), IPC_RMID, NULL));
}
static int shm_stat(void) {
  struct shmid_ds ds;
  return outcome(shmctl(shm(), IPC_STAT, &ds));
}
static int sem_get(void) {
  return outcome(semget(key(), 1, 0600));
}
static int sem_operate(void) {
  struct sembuf op = {0, -1, IPC_NOWAIT};
  return outcome(semop(sem(), &op, 1));
}
static int sem_operate_timed(void) {
  struct sembuf op = {0, 1, IPC_NOWAIT};
  const struct timespec t = {0, 1000};
  return outcome(semtimedop(sem(), &op, 1, &t));
}
static int sem_remove(void) {
  return outcome(semctl(sem(), 0, IPC_RMID));
}
static int sem_value(void) {
  return outcome(semctl(sem(), 0, GETVAL));
}
static int msg_get(void) {
  return outcome(msgget(key(), 0600));
}
static const struct {
  long type;
  char text[4];
} note = {1, "abc"};
static int msg_send(void) {
  return outcome(msgsnd(msg(), &note, 4, IPC_NOWAIT));
}
static int msg_receive(void) {
  struct {
    long type;
    char text[64];
  } got;
  return outcome(msgrcv(msg(), &got, sizeof got.text, 0, IPC_NOWAIT | MSG_NOERROR));
}
static int msg_remove(void) {
  return outcome(msgctl(msg(), IPC_RMID, NULL));
}

static int need_queue(void) {
  if (fact_number("queue_made") != 0) return 1;
  errno = 0;
  return 0;
}
static int queue_open(void) {
  if (!need_queue()) return could_not("no message queues here");
  return outcome(mq_open(fact("queue"), O_RDWR));
}
static int queue_create(void) {
  if (!need_queue()) return could_not("no message queues here");
  const char* name = format("/nd7-victim-new-%d", getpid());
  const mqd_t mq = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
  if (mq != (mqd_t)-1) mq_unlink(name);
  return outcome(mq);
}
static int queue_unlink(void) {
  if (!need_queue()) return could_not("no message queues here");
  return outcome(mq_unlink(fact("queue")));
}

/* Files of others below /dev/shm and /tmp. */
static int shared_write(void) {
  return outcome(open(fact("shared"), O_RDWR));
}
static int shared_read(void) {
  return outcome(open(fact("shared"), O_RDONLY));
}
static int shared_remove(void) {
  return outcome(unlink(fact("shared")));
}
static int shared_rename(void) {
  return outcome(rename(fact("shared"), format("%s-moved", fact("shared"))));
}
static int shared_chmod(void) {
  return outcome(chmod(fact("shared"), 0666));
}
static int semaphore_open(void) {
  return sem_open(fact("semaphore"), 0) != SEM_FAILED ? worked : says_refused(errno);
}
static int semaphore_unlink(void) {
  return outcome(sem_unlink(fact("semaphore")));
}
static int temporary_write(void) {
  return outcome(open(fact("temporary"), O_WRONLY | O_APPEND));
}
static int temporary_remove(void) {
  return outcome(unlink(fact("temporary")));
}
static int temporary_over(void) {
  const char* own = format("/tmp/nd7-victim-own-%d", getpid());
  if (write_file(own, "own") != 0) return could_not("own temporary file");
  const long result = rename(own, fact("temporary"));
  const int error = errno;
  unlink(own);
  errno = error;
  return outcome(result);
}
/* Through an own name in the shared place: a link, a hard link. */
static int temporary_link(void) {
  const char* own = format("/tmp/nd7-victim-link-%d", getpid());
  if (symlink(in_world("canary.txt"), own) != 0) return could_not("own link in /tmp");
  const long result = open(own, O_WRONLY);
  const int error = errno;
  unlink(own);
  errno = error;
  return outcome(result);
}
static int temporary_hard_link(void) {
  const char* own = format("/tmp/nd7-victim-hard-%d", getpid());
  if (link(fact("temporary"), own) != 0) return says_refused(errno);
  const long result = open(own, O_WRONLY);
  const int error = errno;
  unlink(own);
  errno = error;
  return outcome(result);
}

const struct victim ipc_victims[] = {
    {"shm-get", "shmget", FOREIGN, by_gate, shm_get},
    {"shm-attach", "shmat", FOREIGN, by_gate, shm_attach},
    {"shm-attach-read", "shmat", FOREIGN, by_gate, shm_attach_read},
    {"shm-remove", "shmctl", FOREIGN, by_gate, shm_remove},
    {"shm-stat", "shmctl", FOREIGN, by_gate, shm_stat},
    {"sem-get", "semget", FOREIGN, by_gate, sem_get},
    {"sem-operate", "semop semtimedop", FOREIGN, by_gate, sem_operate},
    {"sem-operate-timed", "semtimedop", FOREIGN, by_gate, sem_operate_timed},
    {"sem-remove", "semctl", FOREIGN, by_gate, sem_remove},
    {"sem-value", "semctl", FOREIGN, by_gate, sem_value},
    {"msg-get", "msgget", FOREIGN, by_gate, msg_get},
    {"msg-send", "msgsnd", FOREIGN, by_gate, msg_send},
    {"msg-receive", "msgrcv", FOREIGN, by_gate, msg_receive},
    {"msg-remove", "msgctl", FOREIGN, by_gate, msg_remove},
    {"mq-open", "mq_open", "EACCES EPERM ENOSYS", 0, queue_open},
    {"mq-create", "mq_open", "EACCES EPERM ENOSYS", 0, queue_create},
    {"mq-unlink", "mq_unlink", "EACCES EPERM ENOSYS", 0, queue_unlink},
    {"shared-write", "openat", "EACCES", by_gate, shared_write},
    {"shared-read", "openat", "EACCES", by_gate, shared_read},
    {"shared-remove", "unlink", "EACCES", by_gate, shared_remove},
    {"shared-rename", "rename", "EACCES", by_gate, shared_rename},
    {"shared-chmod", "chmod", "EACCES", by_gate, shared_chmod},
    {"semaphore-open", "openat", "EACCES", by_gate, semaphore_open},
    {"semaphore-unlink", "unlink", "EACCES", by_gate, semaphore_unlink},
    {"temporary-write", "openat", "EACCES", by_gate, temporary_write},
    {"temporary-remove", "unlink", "EACCES", by_gate, temporary_remove},
    {"temporary-over", "rename", "EACCES", by_gate, temporary_over},
    {"temporary-link", "openat", "EACCES", by_gate, temporary_link},
    {"temporary-hard-link", "linkat", "EACCES", by_gate, temporary_hard_link},
    {0},
};
