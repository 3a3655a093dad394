#include "gate/gate.h"

#include <cstring>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gate/judged.h"
#include "os/remote.h"

namespace nd7 {
namespace {

// As root the performing thread takes the caller's capabilities while a call is performed, once any
// process of the session may have given some up (gate/syscalls.def, capset). uid, gid and groups
// cannot differ: changing them needs capabilities that no session keeps.
class CallersCapabilities {
public:
  CallersCapabilities(bool needed, pid_t tid) {
    if (!needed) return;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    if (syscall(SYS_capget, &header, own_) != 0) return;
    __user_cap_data_struct theirs[2]{};
    __user_cap_header_struct of{_LINUX_CAPABILITY_VERSION_3, tid};
    // A caller that cannot be asked gets nothing.
    if (syscall(SYS_capget, &of, theirs) != 0) std::memset(theirs, 0, sizeof theirs);
    __user_cap_data_struct narrow[2];
    std::memcpy(narrow, own_, sizeof narrow);
    for (int i = 0; i < 2; ++i) narrow[i].effective &= theirs[i].effective;
    taken_ = syscall(SYS_capset, &header, narrow) == 0;
  }
  ~CallersCapabilities() {
    if (!taken_) return;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    syscall(SYS_capset, &header, own_);
  }
  CallersCapabilities(const CallersCapabilities&) = delete;
  CallersCapabilities& operator=(const CallersCapabilities&) = delete;

private:
  __user_cap_data_struct own_[2]{};
  bool taken_ = false;
};

} // namespace

// The seven steps. `decode` has filled the Call; each family's function resolves (os/resolve.h),
// decides (core/policy.h), keeps what undo will need, performs on the object it checked, and
// records before it returns the answer.
Answer handle(Context& c, Worker& w, Call& call) {
  switch (call.row->family) {
  case Family::open:
  case Family::creat:
    return open_call(c, w, call);
  case Family::mkdir:
    return mkdir_call(c, w, call);
  case Family::remove:
    return remove_call(c, w, call);
  case Family::rename:
    return rename_call(c, w, call);
  case Family::link:
    return link_call(c, w, call);
  case Family::symlink:
    return symlink_call(c, w, call);
  case Family::mknod:
    return mknod_call(c, w, call);
  case Family::truncate:
  case Family::chmod:
  case Family::chown:
  case Family::utime:
  case Family::setxattr:
  case Family::removexattr:
  case Family::fchmod:
  case Family::fchown:
  case Family::fsetxattr:
  case Family::fremovexattr:
    return metadata_call(c, w, call);
  case Family::exec:
    return exec_call(c, w, call);
  case Family::socket:
    return socket_call(c, w, call);
  case Family::socketpair:
    return socketpair_call(c, w, call);
  case Family::connect:
    return connect_call(c, w, call);
  case Family::bind:
    return bind_call(c, w, call);
  case Family::listen:
    return listen_call(c, w, call);
  case Family::kill:
  case Family::tkill:
  case Family::tgkill:
  case Family::sigqueue:
  case Family::pidfd_signal:
  case Family::setown:
    return signal_call(c, w, call);
  case Family::foreign_pid:
  case Family::priority:
    return foreign_process_call(c, w, call);
  case Family::credentials:
  case Family::prctl:
    // From here on a caller's capabilities may be fewer than ours.
    c.capabilities_differ = true;
    return Answer::go_on();
  case Family::ioctl:
    return ioctl_call(c, w, call);
  case Family::ipc_get:
  case Family::ipc_use:
  case Family::mq:
    return ipc_call(c, w, call);
  case Family::inner_landlock: {
    const Verdict verdict{Decision::deny,
                          "an inner Landlock domain would be defeated silently by the gate; switch "
                          "the tool's own sandbox off",
                          {},
                          Judge::none};
    c.recorder.refuse(
        call.process(), call.name(), "inner sandbox", "landlock", verdict, [](JsonWriter&) {},
        Telling::none);
    return Answer::error(EOPNOTSUPP);
  }
  case Family::none:
    break;
  }
  return Answer::error(ENOSYS);
}

Result<std::shared_ptr<Call>> Gate::decode(const seccomp_notif& notification) {
  auto call = std::make_shared<Call>();
  call->notification = notification;
  call->row = find_call(notification.data.nr);
  if (call->row == nullptr) return os_error("system call", ENOSYS);
  bool fresh = false;
  auto tracee = c.tracees.of(static_cast<pid_t>(notification.pid), &fresh);
  // Only now is it certain that /proc/TID belonged to this caller.
  if (!tracee || !c.listener.still_valid(notification.id)) return os_error("the caller", ENOENT);
  call->tracee = std::move(*tracee);
  Process& process = call->process();
  if (fresh) {
    const auto parent = c.tracees.process(process.parent);
    const Join join = c.joins.of_new(process, parent.get());
    const std::lock_guard hold(process.lock);
    if (process.join.call.empty()) process.join = join;
  }
  if (process.exec_pending && call->row->family != Family::exec) confirm_exec(c, process);
  call->policy = c.policy.now();
  settle_pointers(c, *call->policy, process);
  call->caller = {call->tracee->tid, process.pid, call->tracee->proc.get(),
                  call->tracee->pidfd.get(), &c.in_session};
  return call;
}

void Gate::deliver(Call& call, Answer answer) {
  const std::uint64_t id = call.notification.id;
  switch (answer.kind) {
  case Answer::Kind::value:
    c.listener.answer_value(id, answer.number);
    return;
  case Answer::Kind::error:
    c.listener.answer_error(id, static_cast<int>(answer.number));
    return;
  case Answer::Kind::let_continue:
    c.listener.answer_continue(id);
    return;
  case Answer::Kind::done:
    return;
  case Answer::Kind::later:
    return; // deliver_later
  case Answer::Kind::descriptor: {
    const int number = c.listener.add_fd(id, answer.fd.get(), answer.close_on_exec);
    const int error = errno;
    // Our copy must be gone before the caller runs on: a second reference makes exec say ETXTBSY
    // and flock conflict with itself.
    answer.fd.reset();
    if (number < 0)
      c.listener.answer_error(id, error);
    else
      c.listener.answer_value(id, number);
    return;
  }
  }
}

void Gate::deliver_later(std::shared_ptr<Call> call, std::function<Answer()> work) {
  const std::uint64_t id = call->notification.id;
  const pid_t caller = call->tracee->tid;
  c.pool.submit(
      caller, [this, call, work = std::move(work)] { deliver(*call, work()); },
      [this, id] { return !c.listener.still_valid(id); });
}

Result<> Gate::serve(std::size_t slot) {
  auto resolver = os::Resolver::make();
  if (!resolver) return std::unexpected(resolver.error());
  Worker w{std::move(*resolver), slot, &inflight_};
  seccomp_notif notification;
  for (;;) {
    const os::Received received = c.listener.receive(notification);
    if (received == os::Received::gone) continue;
    if (received != os::Received::call) return {};
    auto call = decode(notification);
    if (!call) {
      c.listener.answer_error(notification.id, errno_of(call.error()));
      continue;
    }
    Answer answer;
    {
      const CallersCapabilities as_caller(c.capabilities_differ && c.facts.root,
                                          (*call)->tracee->tid);
      answer = handle(c, w, **call);
      inflight_.end(slot);
    }
    if (answer.kind == Answer::Kind::later)
      deliver_later(*call, std::move(answer.work));
    else
      deliver(**call, std::move(answer));
  }
}

int errno_of(const Error& error) {
  return error.os_errno != 0 ? error.os_errno : EACCES;
}

FdPath::FdPath(int fd) {
  *fmt::format_to(text, "/proc/self/fd/{}", fd) = 0;
}

} // namespace nd7
