// ioctls by number: the user's terminal, and inode flags that a read-only descriptor may change.
#include <algorithm>
#include <csignal>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gate/gate.h"
#include "os/remote.h"

namespace nd7 {
namespace {

Answer inode_flags(Context& c, Worker& w, Call& call, Fd fd) {
  os::Place place;
  if (fstat(fd.get(), &place.st) != 0) return Answer::error(errno);
  place.exists = true;
  place.real = w.resolver.readlink_of(fd.get());
  place.object = std::move(fd);
  if (!place.is_anonymous() && place.st.st_nlink > 0) {
    const Verdict verdict = judge(c, call, Access::write, place);
    if (!verdict.allowed())
      return deny(c, call, place, "meta", verdict,
                  [](JsonWriter& body) { body.text("change", "inode flags"); });
  }
  // FSXATTR is 28 bytes, the flags a long or an int.
  alignas(8) char argument[64]{};
  const unsigned command = call.word(1);
  const std::size_t size = _IOC_SIZE(command);
  if (size > sizeof argument) return Answer::error(EINVAL);
  if (auto ok = os::read_remote(call.caller.tid, call.arg(2), argument, size); !ok)
    return Answer::error(EFAULT);
  const int result = ioctl(place.object.get(), command, argument);
  const int error = result < 0 ? errno : 0;
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.path("path", place.real).text("change", "inode flags").null("before").null("after");
  c.recorder.append(call.process(), "meta", body);
  return error != 0 ? Answer::error(error) : Answer::value(result);
}

// Is a process group the session's? Its leader may have ended before the rest (a pipeline), or all
// of it: the group of a job that is over stays in front until a shell puts itself there, and nobody
// outside could have put it there meanwhile without living.
bool is_ours(Context& c, pid_t group) {
  if (c.tracees.belongs(group)) return true;
  if (::kill(-group, 0) != 0 && errno == ESRCH) return true;
  const std::vector<pid_t> all = c.tracees.all();
  return std::any_of(all.begin(), all.end(), [group](pid_t pid) {
    auto stat = read_proc_stat(pid);
    return stat && stat->group == group;
  });
}

} // namespace

Answer ioctl_call(Context& c, Worker& w, Call& call) {
  const unsigned command = call.word(1);
  auto fd = os::take_fd(call.caller.pidfd, call.fd(0));
  if (!fd) return Answer::error(errno_of(fd.error()));
  switch (command) {
  case TIOCSPGRP:
  case TIOCSETD: {
    struct stat st {};
    if (fstat(fd->get(), &st) != 0) return Answer::error(errno);
    const std::string name = S_ISCHR(st.st_mode) ? w.resolver.readlink_of(fd->get()) : "";
    const bool users = !c.facts.tty.empty() && name == c.facts.tty;
    if (!users) return Answer::go_on();
    // The user's terminal: only while the session is in front, and never another discipline.
    if (command == TIOCSETD) return Answer::error(EPERM);
    if (c.foreground_lost) return Answer::error(EIO);
    const pid_t foreground = tcgetpgrp(fd->get());
    auto stat = read_proc_stat(call.caller.tgid);
    const pid_t now = foreground > 0 ? foreground : stat ? stat->tty_foreground : 0;
    if (now > 0 && now != c.facts.front_group && !is_ours(c, now)) return Answer::error(EIO);
    return Answer::go_on();
  }
  case FIOSETOWN:
  case SIOCSPGRP: {
    int target = 0;
    if (auto ok = os::read_remote(call.caller.tid, call.arg(2), &target, sizeof target); !ok)
      return Answer::error(EFAULT);
    const pid_t checked = target < 0 ? -target : target;
    if (target != 0 && !c.tracees.belongs(checked)) return Answer::error(EPERM);
    return Answer::of(ioctl(fd->get(), command, &target));
  }
  default:
    return inode_flags(c, w, call, std::move(*fd));
  }
}

} // namespace nd7
