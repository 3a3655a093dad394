// What all handlers of the gate share: services and the session's own tables.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/policy.h"
#include "gate/hidden_names.h"
#include "gate/joins.h"
#include "gate/live_policy.h"
#include "gate/pool.h"
#include "gate/record.h"
#include "gate/tracee.h"
#include "net/network.h"
#include "os/resolve.h"
#include "os/seccomp_notify.h"
#include "session/inflight.h"

namespace nd7 {

// Objects that this session created in shared places, by identity.
class Made {
public:
  void add(ObjectId id) {
    const std::lock_guard hold(lock_);
    ids_.insert(id);
  }
  void remove(ObjectId id) {
    const std::lock_guard hold(lock_);
    ids_.erase(id);
  }
  bool has(ObjectId id) const {
    const std::lock_guard hold(lock_);
    return ids_.contains(id);
  }

private:
  mutable std::mutex lock_;
  std::set<ObjectId> ids_;
};

// Names that were FIFOs when last seen: opening one is not tried out (gate/open_call.cc).
class Fifos {
public:
  void add(const std::string& path) {
    const std::lock_guard hold(lock_);
    if (paths_.size() < paths_max) paths_.insert(path);
    any_ = true;
  }
  bool has(const std::string& path) const {
    if (!any_) return false;
    const std::lock_guard hold(lock_);
    return paths_.contains(path);
  }

private:
  static constexpr std::size_t paths_max = 65536;
  mutable std::mutex lock_;
  std::atomic<bool> any_{false};
  std::set<std::string> paths_;
};

// A `.git` file that somebody is writing: unnamed until it was judged (gate/judged.h).
struct PendingPointer {
  std::shared_ptr<Fd> file, parent;
  std::string leaf;
};

struct SessionFacts {
  std::string id;
  std::string hook_socket; // real path of the hook socket
  std::string control_socket;
  std::string tty;             // the user's terminal, "/dev/pts/3", or empty
  bool has_hooks = false;      // the agent says what it does
  bool root = false;           // the session runs as uid 0
  bool signals_scoped = false; // Landlock ABI 6
  pid_t front_group = 0;       // the process group the agent was started in
};

struct Context {
  Context(os::Listener& l, Recorder& r, LivePolicy& p, Tracees& t, Joins& j, Pool& pl, Network* n)
      : listener(l), recorder(r), policy(p), tracees(t), joins(j), pool(pl), network(n) {}

  os::Listener& listener;
  Recorder& recorder;
  LivePolicy& policy;
  Tracees& tracees;
  Joins& joins;
  Pool& pool;
  Network* network = nullptr;
  SessionFacts facts;

  HiddenNames hidden; // what closed places hold, by identity
  Fifos fifos;
  Made made;               // files in shared temporary places
  std::shared_mutex names; // renames exclusive, other changes of names shared
  std::mutex tables;       // guards what follows
  std::set<unsigned> ptys; // pts numbers opened in this session
  std::map<std::uint16_t, std::weak_ptr<Process>> loopback_clients; // of nd7's ports, by their own
  std::set<std::uint64_t> listeners; // inodes of TCP sockets this session listens on
  // Unix sockets bound by the session: the file or the abstract name, to the socket's inode. A
  // number and a name may come to belong to somebody else; whether the socket lives is asked at
  // each use.
  std::map<ObjectId, std::uint64_t> bound;
  std::map<std::string, std::uint64_t> abstract_bound;
  std::set<int> shm_ids, sem_ids, msg_ids;                // System V objects the session made
  std::map<std::string, PendingPointer> pending_pointers; // .git files waiting to be judged
  std::atomic<bool> pointers_wait{false};

  std::function<bool(pid_t)> in_session; // Tracees::belongs, kept here to be pointed to
  std::atomic<bool> capabilities_differ{false};
  std::atomic<bool> foreground_lost{false}; // front is stopped or in the background

  std::mutex hook_lock;
  std::map<std::string, pid_t> hook_callers; // autobound client name -> pid that connected
};

} // namespace nd7
