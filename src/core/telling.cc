#include "core/telling.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace nd7 {
namespace {

// Plain sentences for what people meet first.
struct Advice {
  const char* operation;
  const char* part; // of the object
  const char* sentence;
};
constexpr Advice advices[] = {
    {"connect", "S.gpg-agent", "Signing keys are closed: commit with --no-gpg-sign."},
    {"connect", "ssh-agent", "ssh keys are closed: use https for git, and --no-gpg-sign."},
    {"connect", "/agent.", "ssh keys are closed: use https for git, and --no-gpg-sign."},
    {"connect", ":22", "ssh does not go out: use the https address of the repository."},
    {"read", "/.ssh/", "ssh keys are closed: use the https address of the repository."},
    {"read", "private-keys-v1.d", "Signing keys are closed: commit with --no-gpg-sign."},
    {"connect", "127.0.0.1:",
     "A program outside the session listens there, for instance an IDE; "
     "the person can open its port."},
};

const char* verb(const std::string& operation) {
  if (operation == "write") return "writing";
  if (operation == "read") return "reading";
  if (operation == "connect") return "connecting to";
  if (operation == "remove") return "removing";
  if (operation == "mkdir") return "making the directory";
  if (operation == "rename") return "renaming to";
  if (operation == "link") return "linking";
  if (operation == "symlink") return "making the link";
  if (operation == "meta") return "changing mode, owner, times or attributes of";
  if (operation == "exec") return "executing";
  if (operation == "listen") return "listening on";
  if (operation == "signal") return "signalling";
  return "";
}

std::string one(const Told& refusal) {
  const char* known = verb(refusal.operation);
  return fmt::format("{} {} ({})", *known != 0 ? known : refusal.operation.c_str(),
                     visible(refusal.object), visible(refusal.rule));
}

} // namespace

std::string tell_line(const Told& refusal) {
  std::string out = "nd7: refused " + one(refusal);
  if (!refusal.open_with.empty()) out += "; to allow it: " + visible(refusal.open_with);
  return out + "\n";
}

std::string tell(const std::vector<Told>& refusals) {
  if (refusals.empty()) return {};
  std::string out = "the sandbox this session runs in refused:\n";
  std::string advice;
  bool any_grant = false;
  std::size_t shown = 0;
  for (const Told& refusal : refusals) {
    std::string line = "- " + one(refusal);
    if (refusal.times > 1) line += fmt::format(", {} times", refusal.times);
    if (!refusal.open_with.empty()) {
      line += ". The person can allow it in another terminal: " + visible(refusal.open_with);
      any_grant = true;
    } else {
      line += ". No grant opens this";
    }
    line += "\n";
    if (out.size() + line.size() + advice.size() > told_bytes_max - 400) break;
    out += line;
    ++shown;
    for (const Advice& row : advices)
      if (refusal.operation == row.operation && refusal.object.contains(row.part) &&
          !advice.contains(row.sentence))
        advice += std::string(row.sentence) + "\n";
  }
  if (shown < refusals.size())
    out += fmt::format("- and {} more, see nd7 show\n", refusals.size() - shown);
  out += advice;
  out += any_grant
             ? "Retrying or going around it is pointless until the person allows it; say what "
               "you need and go on with what is possible."
             : "Retrying or going around it is pointless.";
  return out;
}

} // namespace nd7
