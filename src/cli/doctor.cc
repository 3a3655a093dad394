// `nd7 doctor`: what this kernel, container and configuration can and cannot enforce; one finding a
// line, each bad one with the command that repairs it.
#include <cstdlib>

#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/agent_doctor.h"
#include "cli/command.h"
#include "cli/ui.h"
#include "gate/exec_trees.h"
#include "net/network.h"
#include "os/kernel.h"
#include "os/landlock.h"

namespace nd7 {
namespace {

constexpr Option options[] = {{"json", 0, nullptr, "print JSON"}};

void check_kernel(std::vector<Finding>& out) {
  const os::KernelFacts facts = os::kernel_facts();
  for (const os::Obstacle& obstacle : os::obstacles(facts, geteuid() == 0))
    out.push_back({false, obstacle.what, obstacle.repair});
  if (out.empty())
    out.push_back({true, fmt::format("Linux {}: sessions can start", facts.release), ""});
  if (facts.landlock_abi >= 2) {
    const os::Downgraded domain = os::downgrade(session_ruleset({}), facts.landlock_abi);
    out.push_back({true, fmt::format("Landlock ABI {}", facts.landlock_abi), ""});
    for (const std::string& lost : domain.lost)
      out.push_back({false, "no second layer behind the gate for " + lost, "a newer kernel"});
  }
  if (facts.user_notify && !facts.sync_wake_up)
    out.push_back({false, "answers to trapped calls are slow before Linux 6.6", "a newer kernel"});
  else if (facts.user_notify)
    out.push_back({true, "seccomp answers wake the caller at once", ""});
  if (facts.yama_scope >= 0)
    out.push_back({facts.yama_scope < 2 || geteuid() == 0,
                   fmt::format("Yama ptrace_scope {}", facts.yama_scope),
                   facts.yama_scope < 2 ? "" : "sudo sysctl kernel.yama.ptrace_scope=1"});
}

void check_network(std::vector<Finding>& out) {
  // In a child: the helper dies with it.
  auto network = Network::start({}, {});
  if (!network) {
    out.push_back({false, "network: " + network.error().text, network.error().hint});
    return;
  }
  if ((*network)->parked())
    out.push_back({true, "names resolve through nd7 in an empty network namespace", ""});
  else
    out.push_back(
        {false,
         "no network namespace: UDP is refused, names go over TCP and a loopback proxy (" +
             (*network)->why_not() + ")",
         (*network)->repair()});
}

void check_places(std::vector<Finding>& out, const Places& places) {
  for (const auto& [what, path] :
       {std::pair{"records", places.state}, {"cache", places.cache}, {"sockets", places.runtime}}) {
    auto ok = make_private_directory(path);
    if (ok)
      out.push_back({true, fmt::format("{} in {}", what, visible(path)), ""});
    else
      out.push_back({false, fmt::format("{}: {}", what, ok.error().text), ok.error().hint});
  }
}

} // namespace

const Usage usage_doctor{
    .name = "doctor",
    .summary = "what can and cannot be enforced here",
    .options = options,
    .details = "Exit status 0 when nothing is wrong, 1 otherwise.",
    .example = "nd7 doctor",
};

int cmd_doctor(int argc, char** argv) {
  auto args = parse_options(usage_doctor, argc, argv);
  if (!args) return args.error();
  auto places = find_places();
  if (!places) return say_error(places.error());
  std::vector<Finding> findings;
  check_kernel(findings);
  check_network(findings);
  check_places(findings, *places);
  AgentCheck check;
  char* self = ::realpath("/proc/self/exe", nullptr);
  check.nd7 = self != nullptr ? self : "";
  std::free(self);
  char* cwd = ::realpath(".", nullptr);
  check.project = cwd != nullptr ? cwd : "/";
  std::free(cwd);
  for (Finding& finding : check_agents(*places, check)) findings.push_back(std::move(finding));
  bool all_good = true;
  std::string json = "[";
  for (const Finding& finding : findings) {
    all_good = all_good && finding.good;
    if (args->has("json")) {
      JsonWriter row;
      row.boolean("good", finding.good).text("text", finding.text).text("repair", finding.repair);
      json += (json.size() > 1 ? "," : "") + row.finish();
      continue;
    }
    print(fmt::format("{} {}\n", finding.good ? "ok  " : "bad ", visible(finding.text)));
    if (!finding.repair.empty()) print(fmt::format("       {}\n", visible(finding.repair)));
  }
  if (args->has("json")) print(json + "]\n");
  return finish_output(all_good ? 0 : 1);
}

} // namespace nd7
