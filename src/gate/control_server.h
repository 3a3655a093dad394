// The control socket: changes the live rules of a running session, from outside only.
//
// One request a connection, one line of JSON each way:
//   {"op":"allow"|"deny","what":"path|read|host|port|listen|socket","value":"..."}
//   {"op":"rules"}   {"op":"why","what":"write|read|connect|socket","value":"..."}
// Answers: {"ok":true,...} or {"ok":false,"error":"...","hint":"..."}.
// The socket lies in nd7's private directory; the gate refuses it inside; a client whose process
// belongs to the session is refused once more here.
#pragma once

#include "gate/context.h"

namespace nd7 {

class ControlServer {
public:
  explicit ControlServer(Context& context) : c_(context) {}
  void serve(Fd connection);

private:
  std::string handle(std::string_view line, pid_t client);
  std::string change(bool allow, const std::string& what, const std::string& value);
  Context& c_;
  std::mutex changing_;
  std::uint32_t order_ = 0;
};

// Adds or takes back a live rule; the sentence says what changed. Pure, for tests and `--save`.
struct RuleChange {
  Policy policy;
  std::string said;
};
Result<RuleChange> change_policy(const Policy& now, bool allow, const std::string& what,
                                 const std::string& value, std::uint32_t order, Origin origin);
// What rules imply: guards in granted directories, the identities of what protecting rules name
// now, and the places where links lead.
void complete(Policy& policy);
std::string rules_json(const Policy& policy);
// The question of `nd7 why`, asked of the same decide() with the object as it is now.
std::string why_json(Context* c, const Policy& policy, const std::string& what,
                     const std::string& value);
Result<Address> parse_listen(std::string_view text);
Result<HostGrant> parse_host(std::string_view text);

} // namespace nd7
