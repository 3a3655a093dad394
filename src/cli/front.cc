#include "cli/front.h"

#include <csignal>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/ui.h"
#include "gate/tracee.h"

namespace nd7 {
namespace {

constexpr int status_failed = 125;

// Everything below this process: the supervisor died, and its adopted children came to us.
void kill_descendants() {
  for (int round = 0; round < 1000; ++round) {
    bool any = false;
    DIR* proc = opendir("/proc");
    while (const dirent* entry = proc != nullptr ? readdir(proc) : nullptr) {
      pid_t pid = std::atoi(entry->d_name);
      const pid_t candidate = pid;
      if (pid <= 1 || pid == getpid()) continue;
      // Up the parents; a chain is short and a process that vanishes is no problem.
      for (int depth = 0; depth < 256 && pid > 1; ++depth) {
        auto stat = read_proc_stat(pid);
        if (!stat || stat->state == 'Z') break;
        if (stat->parent == getpid()) {
          ::kill(candidate, SIGKILL);
          any = true;
          break;
        }
        pid = stat->parent;
      }
    }
    if (proc != nullptr) closedir(proc);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!any) return;
    usleep(2000);
  }
}

void die_of(int number) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none); // the agent's own core, if any, is enough
  signal(number, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, number);
  sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  raise(number);
  _exit(128 + number);
}

void say_refused(std::size_t refused) {
  if (refused > 0)
    say(fmt::format("{} distinct thing{} refused, see nd7 show", refused,
                    refused == 1 ? " was" : "s were"));
}

} // namespace

int run_front(SupervisorPlan plan, LogFile& log) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0)
      plan.domain.ignored[static_cast<std::size_t>(number)] = now.sa_handler == SIG_IGN;
  }
  sigprocmask(SIG_SETMASK, nullptr, &plan.domain.mask);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    say_error(os_error("socketpair").error());
    return status_failed;
  }
  const Fd own(pair[0]);
  Fd theirs(pair[1]);
  const std::string id = plan.id;
  const pid_t supervisor = fork();
  if (supervisor < 0) {
    say_error(os_error("fork").error());
    return status_failed;
  }
  if (supervisor == 0) {
    close(pair[0]);
    _exit(supervise(std::move(plan), log, std::move(theirs)));
  }
  theirs.reset();
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : {SIGTERM, SIGHUP, SIGCONT, SIGUSR1, SIGUSR2}) sigaddset(&mask, number);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  const Fd signals(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}) signal(number, SIG_IGN);

  for (;;) {
    pollfd wait[2] = {{own.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    if (poll(wait, 2, -1) < 0) continue;
    if (wait[1].revents != 0) {
      signalfd_siginfo info;
      while (::read(signals.get(), &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        const std::string line =
            number == SIGCONT ? std::string("continue") : fmt::format("signal {}", number);
        (void)!::send(own.get(), line.data(), line.size(), MSG_NOSIGNAL);
      }
    }
    if (wait[0].revents == 0) continue;
    char buffer[4096];
    const ssize_t n = ::recv(own.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) {
      // The supervisor is gone without a word: nothing of the session may live on.
      kill_descendants();
      say(fmt::format("the supervisor died; session {} was stopped, its log ends there", id));
      return status_failed;
    }
    const std::string line(buffer, static_cast<std::size_t>(n));
    const auto number_at = [&](std::size_t at) { return std::atoi(line.c_str() + at); };
    const auto second = [&] {
      const std::size_t space = line.rfind(' ');
      return static_cast<std::size_t>(std::strtoul(line.c_str() + space + 1, nullptr, 10));
    };
    if (line.starts_with("stopped ")) {
      // The shell sees us stop as the program did; after its CONT the agent goes on.
      raise(SIGSTOP);
    } else if (line.starts_with("exit ")) {
      say_refused(second());
      return number_at(5);
    } else if (line.starts_with("signal ")) {
      say_refused(second());
      die_of(number_at(7));
    } else if (line.starts_with("lost ")) {
      say("the log cannot be written: " + visible(line.substr(5)));
    } else if (line.starts_with("note ")) {
      say(visible(line.substr(5)));
    } else if (line.starts_with("error ")) {
      const std::size_t hint = line.find('\n');
      Error error{line.substr(6, hint == std::string::npos ? hint : hint - 6), 0,
                  hint == std::string::npos ? "" : line.substr(hint + 1)};
      say_error(error);
      waitpid(supervisor, nullptr, 0);
      return status_failed;
    }
  }
}

} // namespace nd7
