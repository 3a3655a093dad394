#include "gate/supervisor.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "core/chain.h"
#include "core/proxy_setting.h"
#include "core/telling.h"
#include "gate/control_server.h"
#include "gate/gate.h"
#include "gate/hook_server.h"
#include "os/fd_passing.h"
#include "os/remote.h"

namespace nd7 {
namespace {

constexpr int hand_over_ms_max = 10000; // a child that died before the listener came
constexpr unsigned receivers_max = 2;
constexpr int housekeeping_s = 1;
constexpr int checkpoint_every_ticks = 10;
constexpr int grace_ms_max = 500; // for what is left when the agent has ended
constexpr int clients_max = 64;

enum Source : std::uint64_t { front_end, child_signals, control, hooks, network, ticks };

void send_line(const Fd& to, const std::string& line) {
  (void)!::send(to.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

// NAME=VALUE, in place of what the name had before: of two the first would count.
void set(std::vector<std::string>& environment, const std::string& entry) {
  const std::string name = entry.substr(0, entry.find('=') + 1);
  std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name); });
  environment.push_back(entry);
}

struct Ending {
  bool ended = false;
  int status = 0; // as waitpid gives it
};

class Session {
public:
  Session(SupervisorPlan plan, LogFile& log, Fd front)
      : plan_(std::move(plan)), log_(log), front_(std::move(front)) {}
  int run();

private:
  Result<> start();
  Result<Fd> receive_listener(int channel);
  void say_network();
  void loop();
  void on_child_signals();
  void on_front();
  void record_exits();
  void on_tick();
  void serve_client(const Fd& listener, bool hook);
  void stop_holders(bool stop);
  void kill_rest(bool gently);
  void finish();

  SupervisorPlan plan_;
  LogFile& log_;
  Fd front_;
  std::unique_ptr<Network> network_;
  Fd epoll_, signals_, control_, hooks_, timer_;
  std::unique_ptr<os::Listener> listener_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<LivePolicy> policy_;
  Tracees tracees_;
  Joins joins_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Inflight> inflight_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<ControlServer> control_server_;
  std::unique_ptr<HookServer> hook_server_;
  std::vector<std::thread> threads_;
  std::atomic<int> clients_{0};
  std::atomic<bool> record_lost_{false};
  pid_t agent_ = 0;
  Ending ending_;
  std::map<pid_t, int> reaped_; // orphans of the session, by how they ended
  int tick_ = 0;
  std::uint64_t started_mono_ = 0;
  std::string exec_error_;
  Fd channel_;
};

Result<Fd> Session::receive_listener(int channel) {
  pollfd wait{channel, POLLIN, 0};
  if (poll(&wait, 1, hand_over_ms_max) <= 0)
    return fail("the session's first process did not start");
  auto message = os::receive_fds(channel);
  if (!message) return std::unexpected(message.error());
  if (message->fds.size() == 1) return std::move(message->fds[0]);
  return fail(message->bytes.empty() ? std::string("the session's first process died at once")
                                     : "confinement failed at " + message->bytes);
}

// How names and datagrams are served, into the start entry; the lesser way is told to the person.
void Session::say_network() {
  JsonWriter network;
  network.boolean("parked", network_->parked());
  if (!network_->parked()) {
    const std::string what = fmt::format(
        "no network namespace ({}): UDP is refused, names resolve over TCP, HTTPS goes through a "
        "proxy on loopback",
        network_->why_not());
    network.text("note", what);
    send_line(front_, "note " + what +
                          (network_->repair().empty() ? "" : "; to repair: " + network_->repair()));
  }
  // Without namespaces nd7's own proxy has taken the place of these.
  if (network_->parked())
    for (const std::string& note : proxy_notes(plan_.domain.environment, plan_.policy))
      send_line(front_, "note " + note);
  plan_.start_body.pop_back();
  plan_.start_body += ",\"network\":" + network.finish() + "}";
}

// The start, a line a step.
Result<> Session::start() {
  started_mono_ = system_clock().boot_ns();
  (void)blake3_hex(""); // the hash looks at the CPU once, before there are threads
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  plan_.domain.files = files;
  files.rlim_cur = files.rlim_max; // two descriptors a thread of the session
  setrlimit(RLIMIT_NOFILE, &files);

  policy_ = std::make_unique<LivePolicy>(
      plan_.policy, plan_.reads_exact ? std::vector<std::string>{} : plan_.read_trees);
  recorder_ = std::make_unique<Recorder>(log_, [this](const std::string& error) {
    send_line(front_, "lost " + error);
    record_lost_ = true;
  });
  auto inflight = Inflight::create(plan_.directory);
  if (!inflight) return std::unexpected(inflight.error());
  inflight_ = std::make_unique<Inflight>(std::move(*inflight));
  auto control = listen_unix(plan_.runtime + "/control");
  if (!control) return std::unexpected(control.error());
  control_ = std::move(*control);
  auto hooks = listen_unix(plan_.runtime + "/hook");
  if (!hooks) return std::unexpected(hooks.error());
  hooks_ = std::move(*hooks);

  // The helper of the network forks before there are threads, and dies with this one.
  NetworkEvents events;
  events.on_resolve = [this](const ResolveRecord& record) {
    JsonWriter body;
    body.text("name", record.name).text("type", record.type).texts("answers", record.answers);
    if (record.refused.empty())
      body.null("refused");
    else
      body.text("refused", record.refused);
    recorder_->counts.effects++;
    recorder_->note("effect:kernel", "resolve", body.finish());
  };
  events.may_connect = [this](const Address& address, const std::string& name,
                              std::uint16_t from_port) {
    return proxy_connect(*context_, address, name, from_port);
  };
  events.name_granted = [this](const std::string& name) {
    return host_granted(*policy_->now(), name);
  };
  auto net = Network::start(plan_.network, std::move(events));
  if (!net) return std::unexpected(net.error());
  network_ = std::move(*net);
  for (const std::string& entry : network_->environment()) set(plan_.domain.environment, entry);
  say_network();

  // SIGCHLD comes by descriptor; the agent gets an empty mask of its own.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  signals_.reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGHUP})
    signal(number, SIG_IGN);

  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return os_error("socketpair");
  channel_.reset(pair[0]);
  Fd child_end(pair[1]);
  const pid_t self = getpid();
  agent_ = fork();
  if (agent_ < 0) return os_error("fork");
  if (agent_ == 0) enter(plan_.domain, child_end.get(), self);
  child_end.reset();
  tracees_.set_root(agent_);
  tracees_.set_reaper(self, network_->helper_pid());

  // Only now: the agent stays in front's group and in the user's terminal session.
  const pid_t group = getpgrp();
  setsid();
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = 0; fd < 3; ++fd) dup2(null.get(), fd);
  if (plan_.root)
    if (auto ok = keep_capabilities(plan_.domain.capabilities); !ok)
      return std::unexpected(ok.error());

  auto listener = receive_listener(channel_.get());
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::make_unique<os::Listener>(std::move(*listener));
  const bool sync = listener_->set_sync_wake_up();
  (void)sync; // said in the start entry by kernel facts; slower without, nothing else

  pool_ = std::make_unique<Pool>();
  context_ = std::make_unique<Context>(*listener_, *recorder_, *policy_, tracees_, joins_, *pool_,
                                       network_.get());
  Context& c = *context_;
  c.facts.id = plan_.id;
  c.facts.hook_socket = plan_.runtime + "/hook";
  c.facts.control_socket = plan_.runtime + "/control";
  c.facts.tty = plan_.tty;
  c.facts.has_hooks = plan_.agent != "none";
  c.facts.root = plan_.root;
  c.facts.signals_scoped = plan_.signals_scoped;
  c.facts.front_group = group;
  c.in_session = [this](pid_t pid) { return tracees_.belongs(pid); };
  if (plan_.agent == "none")
    recorder_->on_refusal = [](const Process& process, const Refusal& refusal) {
      // No hooks to speak through: one line on the program's own standard error, through its own
      // description, so that offsets stay shared; never if that could block.
      auto error_output = os::take_fd(process.pidfd.get(), 2);
      if (!error_output) return;
      pollfd room{error_output->get(), POLLOUT, 0};
      if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
      const std::string line =
          tell_line({refusal.operation, refusal.object, refusal.rule, refusal.open_with, 1});
      (void)!::write(error_output->get(), line.data(), line.size());
    };
  gate_ = std::make_unique<Gate>(c, *inflight_);
  control_server_ = std::make_unique<ControlServer>(c);
  hook_server_ = std::make_unique<HookServer>(c, plan_.hooks, plan_.note);

  recorder_->note("nd7", "start", plan_.start_body);
  // Receivers set their umask and working directory. Where threads cannot have their own (Docker's
  // default profile refuses every unshare), there is one receiver only.
  const unsigned receivers = unshare(CLONE_FS) == 0 ? receivers_max : 1;
  for (unsigned slot = 0; slot < receivers; ++slot)
    threads_.emplace_back([this, slot] {
      auto served = gate_->serve(slot);
      if (served) return;
      // Nobody would answer: the session must not hang, and everything of it dies with us.
      send_line(front_, "error receiver: " + served.error().text);
      _exit(125);
    });
  send_line(front_, "started " + plan_.id);
  if (::send(channel_.get(), "g", 1, MSG_NOSIGNAL) != 1)
    return os_error("let the session's first process go");
  return {};
}

void Session::loop() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec every{{housekeeping_s, 0}, {housekeeping_s, 0}};
  timerfd_settime(timer_.get(), 0, &every, nullptr);
  const auto watch = [&](int fd, Source source) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = source;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  };
  watch(front_.get(), front_end);
  watch(signals_.get(), child_signals);
  watch(control_.get(), control);
  watch(hooks_.get(), hooks);
  watch(timer_.get(), ticks);
  if (network_->poll_fd() >= 0) watch(network_->poll_fd(), network);
  on_child_signals(); // a child that ended before the mask was watched
  while (!ending_.ended) {
    epoll_event events[16];
    const int n = epoll_wait(epoll_.get(), events, 16, -1);
    for (int i = 0; i < n && !ending_.ended; ++i) {
      switch (events[i].data.u64) {
      case front_end:
        on_front();
        break;
      case child_signals:
        on_child_signals();
        break;
      case control:
        serve_client(control_, false);
        break;
      case hooks:
        serve_client(hooks_, true);
        break;
      case network:
        network_->on_ready();
        break;
      case ticks:
        on_tick();
        break;
      default:
        break;
      }
    }
    if (record_lost_ && plan_.stop_on_lost_record && !ending_.ended) {
      kill_rest(false); // fail closed: what cannot be recorded does not go on
    }
  }
}

void Session::serve_client(const Fd& listener, bool hook) {
  Fd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return;
  if (clients_ >= clients_max) return;
  ++clients_;
  std::thread([this, hook, fd = connection.release()] {
    if (hook)
      hook_server_->serve(Fd(fd));
    else
      control_server_->serve(Fd(fd));
    --clients_;
  }).detach();
}

void Session::on_child_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) > 0) {
  }
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (pid != agent_) {
      if (WIFSTOPPED(status)) continue;
      reaped_[pid] = status;
      continue;
    }
    if (WIFSTOPPED(status)) {
      // Front is about to stop too: nobody of ours may touch the terminal meanwhile.
      context_->foreground_lost = true;
      stop_holders(true);
      send_line(front_, fmt::format("stopped {}", WSTOPSIG(status)));
      continue;
    }
    ending_.ended = true;
    ending_.status = status;
  }
}

// Every process of the session that holds the user's terminal stops and goes on with front.
void Session::stop_holders(bool stop) {
  if (plan_.tty.empty()) return;
  for (const pid_t pid : tracees_.all()) {
    if (pid == agent_) continue;
    bool holds = false;
    for (int fd = 0; fd < 3 && !holds; ++fd) {
      char target[256];
      const ssize_t n =
          readlink(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), target, sizeof target);
      holds = n > 0 && std::string_view(target, static_cast<std::size_t>(n)) == plan_.tty;
    }
    if (holds) ::kill(pid, stop ? SIGSTOP : SIGCONT);
  }
}

void Session::on_front() {
  char buffer[256];
  const ssize_t n = ::recv(front_.get(), buffer, sizeof buffer - 1, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    // Front is gone: so is everything.
    kill_rest(false);
    int status = SIGKILL;
    waitpid(agent_, &status, 0);
    ending_ = {true, status};
    return;
  }
  const std::string_view line(buffer, static_cast<std::size_t>(n));
  if (line == "continue") {
    context_->foreground_lost = false;
    stop_holders(false);
    ::kill(agent_, SIGCONT);
  } else if (line.starts_with("signal ")) {
    ::kill(agent_, std::atoi(buffer + 7));
  }
}

// Processes that are gone. How one ended the kernel tells its parent only: known for the agent, and
// for orphans that came to us.
void Session::record_exits() {
  for (const auto& process : tracees_.sweep()) {
    recorder_->flush_reads(*process);
    JsonWriter body = recorder_->effect(*process, "exit", 0, "observed");
    std::optional<int> known;
    if (process->pid == agent_ && ending_.ended)
      known = ending_.status;
    else if (const auto at = reaped_.find(process->pid); at != reaped_.end())
      known = at->second;
    if (known && WIFEXITED(*known))
      body.number("status", WEXITSTATUS(*known));
    else if (known && WIFSIGNALED(*known))
      body.number("signal", WTERMSIG(*known));
    else
      body.null("status");
    recorder_->append(*process, "exit", body);
  }
  reaped_.clear();
}

void Session::on_tick() {
  std::uint64_t expirations;
  (void)!::read(timer_.get(), &expirations, sizeof expirations);
  record_exits();
  if (++tick_ % checkpoint_every_ticks == 0 && !recorder_->failed())
    (void)log_.checkpoint(); // a failure shows at the next append
}

void Session::kill_rest(bool gently) {
  const auto others = [&] {
    std::vector<pid_t> out = tracees_.all();
    std::erase_if(out, [&](pid_t pid) {
      auto stat = read_proc_stat(pid);
      return !stat || stat->state == 'Z';
    });
    return out;
  };
  if (gently) {
    bool any = false;
    for (const pid_t pid : others()) any = ::kill(pid, SIGTERM) == 0 || any;
    for (int waited = 0; any && waited < grace_ms_max; waited += 10) {
      usleep(10000);
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      any = !others().empty();
    }
  }
  // A process may fork while we look: again until nobody is left.
  for (int round = 0; round < 1000; ++round) {
    const auto left = others();
    if (left.empty()) break;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    while (ending_.ended && waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    usleep(1000);
  }
}

void Session::finish() {
  kill_rest(true);
  record_exits();
  const Counts& n = recorder_->counts;
  JsonWriter counts;
  counts.count("effects", n.effects)
      .count("reads", n.reads)
      .count("writes", n.writes)
      .count("execs", n.execs)
      .count("connects", n.connects);
  JsonWriter body;
  if (WIFEXITED(ending_.status))
    body.number("exit", WEXITSTATUS(ending_.status));
  else
    body.number("signal", WTERMSIG(ending_.status));
  body.raw("counts", counts.finish())
      .count("refused", n.refused)
      .count("lost", n.lost)
      .number("seconds", static_cast<std::int64_t>((system_clock().boot_ns() - started_mono_) /
                                                   1000000000ULL));
  recorder_->note("nd7", "end", body.finish());
  const std::size_t told = recorder_->all_refusals().size();
  send_line(front_, WIFEXITED(ending_.status)
                        ? fmt::format("exit {} {}", WEXITSTATUS(ending_.status), told)
                        : fmt::format("signal {} {}", WTERMSIG(ending_.status), told));
  front_.reset();
  // Front has gone on; what is left is to make it durable.
  (void)log_.checkpoint();
  ::unlink((plan_.directory + "/inflight").c_str()); // its absence says: ended as it should
  ::unlink((plan_.runtime + "/control").c_str());
  ::unlink((plan_.runtime + "/hook").c_str());
  ::rmdir(plan_.runtime.c_str());
}

int Session::run() {
  if (auto ok = start(); !ok) {
    send_line(front_,
              "error " + ok.error().text + (ok.error().hint.empty() ? "" : "\n" + ok.error().hint));
    if (agent_ > 0) {
      ::kill(agent_, SIGKILL);
      waitpid(agent_, nullptr, 0);
    }
    _exit(125);
  }
  loop();
  finish();
  _exit(0); // receivers may sleep in the kernel; nothing of theirs is left to be done
}

} // namespace

int supervise(SupervisorPlan plan, LogFile& log, Fd front) {
  Session session(std::move(plan), log, std::move(front));
  return session.run();
}

} // namespace nd7
