// System V shared memory, semaphores and queues, and POSIX message queues: only what this session
// made. The namespace of keys and ids is the user's whole login, so all are performed or checked.
#include <cstring>

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <fmt/format.h>

#include "gate/gate.h"

namespace nd7 {
namespace {

struct Kind {
  const char* what;
  std::set<int>* ids;
};

Kind kind_of(Context& c, std::string_view name) {
  if (name.starts_with("shm")) return {"shared memory", &c.shm_ids};
  if (name.starts_with("sem")) return {"semaphores", &c.sem_ids};
  return {"a message queue", &c.msg_ids};
}

Answer refuse(Context& c, Call& call, const char* what, std::string object) {
  c.recorder.refuse(call.process(), call.name(), "use", object,
                    {Decision::deny,
                     fmt::format("processes: {} that this session did not make", what),
                     {},
                     Judge::none},
                    [&](JsonWriter& body) { body.text("object", object); });
  return Answer::error(EACCES);
}

long get(std::string_view name, const Call& call, int flags) {
  const auto key = static_cast<key_t>(call.word(0));
  if (name == "shmget") return syscall(SYS_shmget, key, call.arg(1), flags);
  if (name == "semget") return syscall(SYS_semget, key, static_cast<int>(call.word(1)), flags);
  return syscall(SYS_msgget, key, flags);
}

} // namespace

Answer ipc_call(Context& c, Worker&, Call& call) {
  if (call.row->family == Family::mq) return refuse(c, call, "a POSIX message queue", "mqueue");
  const Kind kind = kind_of(c, call.name());
  const std::lock_guard hold(c.tables);
  if (call.row->family == Family::ipc_get) {
    const auto key = static_cast<key_t>(call.word(0));
    const int flags = static_cast<int>(call.word(call.name() == "msgget" ? 1 : 2));
    if (key != IPC_PRIVATE) {
      const long there = get(call.name(), call, flags & ~(IPC_CREAT | IPC_EXCL));
      if (there >= 0) {
        if (!kind.ids->contains(static_cast<int>(there)))
          return refuse(c, call, kind.what, fmt::format("key {:#x}", static_cast<unsigned>(key)));
        if ((flags & IPC_CREAT) != 0 && (flags & IPC_EXCL) != 0) return Answer::error(EEXIST);
        return Answer::value(there);
      }
      if (errno != ENOENT || (flags & IPC_CREAT) == 0) return Answer::error(errno);
    }
    // Exclusively: one that appears between look and make is not ours.
    const long made = get(call.name(), call, key == IPC_PRIVATE ? flags : flags | IPC_EXCL);
    if (made < 0) return Answer::error(errno);
    kind.ids->insert(static_cast<int>(made));
    return Answer::value(made);
  }
  const int id = static_cast<int>(call.word(0));
  if (kind.ids->contains(id)) return Answer::go_on();
  // shmctl(SHM_INFO) and the like look at the whole system's table.
  return refuse(c, call, kind.what, fmt::format("id {}", id));
}

} // namespace nd7
