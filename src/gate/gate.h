// The gate: decode, resolve, decide, keep, perform, record, answer.
//
// Gate::handle dispatches one notification to the function of its family; each returns an Answer.
// Each receiver thread owns a Worker. Files: open_call, file_calls, descriptor_calls, exec_call,
// network_calls, socket_calls, process_calls, ipc_calls, terminal_calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gate/answer.h"
#include "gate/context.h"
#include "gate/syscalls.h"

namespace nd7 {

// One per receiver or pool thread.
struct Worker {
  os::Resolver resolver;
  std::size_t slot = 0; // in the in-flight file
  Inflight* inflight = nullptr;
};

// One notification being handled: the caller, its arguments, and the policy it is judged by.
struct Call {
  seccomp_notif notification{};
  const CallRow* row = nullptr;
  std::shared_ptr<Tracee> tracee;
  std::shared_ptr<const Policy> policy;
  os::Caller caller;

  std::uint64_t arg(unsigned i) const { return notification.data.args[i]; }
  int fd(unsigned i) const { return static_cast<int>(static_cast<std::uint32_t>(arg(i))); }
  unsigned word(unsigned i) const { return static_cast<unsigned>(arg(i)); }
  Process& process() const { return *tracee->process; }
  std::string_view name() const { return row->name; }
};

class Gate {
public:
  Gate(Context& context, Inflight& inflight) : c(context), inflight_(inflight) {}
  // Receives and answers until no process is left under the filter. One a thread. An error: it
  // could not begin.
  Result<> serve(std::size_t slot);

private:
  void deliver(Call& call, Answer answer);
  void deliver_later(std::shared_ptr<Call> call, std::function<Answer()> work);
  Result<std::shared_ptr<Call>> decode(const seccomp_notif& notification);

  Context& c;
  Inflight& inflight_;
};

// The seven steps for one call; everything below is a function of (context, worker, call).
Answer handle(Context& c, Worker& w, Call& call);

Answer open_call(Context& c, Worker& w, Call& call);
Answer mkdir_call(Context& c, Worker& w, Call& call);
Answer remove_call(Context& c, Worker& w, Call& call);
Answer rename_call(Context& c, Worker& w, Call& call);
Answer link_call(Context& c, Worker& w, Call& call);
Answer symlink_call(Context& c, Worker& w, Call& call);
Answer mknod_call(Context& c, Worker& w, Call& call);
Answer metadata_call(Context& c, Worker& w, Call& call); // truncate, chmod, chown, utime, xattr
Answer exec_call(Context& c, Worker& w, Call& call);
void confirm_exec(Context& c, Process& process);
Answer socket_call(Context& c, Worker& w, Call& call);
Answer socketpair_call(Context& c, Worker& w, Call& call);
Answer connect_call(Context& c, Worker& w, Call& call);
// A connection that the CONNECT proxy wants to make for its client: decided and recorded like one
// of the client's own. "" or the refusal.
std::string proxy_connect(Context& c, const Address& address, const std::string& name,
                          std::uint16_t from_port);
Answer bind_call(Context& c, Worker& w, Call& call);
Answer listen_call(Context& c, Worker& w, Call& call);
Answer signal_call(Context& c, Worker& w, Call& call);
Answer foreign_process_call(Context& c, Worker& w, Call& call);
Answer ioctl_call(Context& c, Worker& w, Call& call);
Answer ipc_call(Context& c, Worker& w, Call& call);

// --- shared by the handlers (gate/judging.cc)
// -------------------------------------------------------

// The question decide() is asked about a Place, with what the gate knows of it.
FileAction action_of(Context& c, const Policy& policy, Access access, const os::Place& place);
Verdict judge(Context& c, Call& call, Access access, const os::Place& place);
bool has_other_names(const struct stat& st); // a regular file with more than one link
// Refuses: records and gives EACCES. But what the kernel would have refused by itself (the caller
// may not write there anyway) is answered as the kernel would, as an effect that failed.
// `more` adds the members of the kind it would have been.
Answer deny(Context& c, Call& call, const os::Place& place, std::string_view would,
            const Verdict& verdict, const std::function<void(JsonWriter&)>& more = {});
// Who is to hear of a refusal of this object.
Telling telling_of(Context& c, const Process& process, const std::string& object,
                   std::string_view would);
// A read of a credential-like file that programs try all the time is counted, not told.
bool is_quiet(const Policy& policy, const std::string& path, std::string_view would);
// Sets this thread's umask to the caller's; call before creating something.
void take_umask(const Call& call);
// After a creation: remembers it where only what the session made may be changed.
void remember_made(Context& c, const Policy& policy, const std::string& path,
                   const struct stat& st);
// Something below `object` that a rule would cover under the name `path`; empty if nothing.
struct Covered {
  std::string path;
  const Rule* rule = nullptr;
};
Covered covered_below(const Policy& policy, const std::string& path, int object_fd,
                      bool including_suffixes);
// The caller's path argument; error carries the errno.
Result<std::string> path_argument(const Call& call, unsigned index);
Result<os::Place> place_of(Context& c, Worker& w, Call& call, int dirfd, const std::string& path,
                           os::Follow follow);
// "/proc/self/fd/N" in a small buffer, for calls that take a path only.
struct FdPath {
  char text[32];
  explicit FdPath(int fd);
  const char* c_str() const { return text; }
};
int errno_of(const Error& error);

} // namespace nd7
