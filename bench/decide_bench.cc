// What one question to decide() costs with the rules of a real session, by the index and by looking
// at all rules.
//   decide_bench [QUESTIONS]      default: 200000 for each line
#include <chrono>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "core/credentials.h"
#include "core/guarded.h"
#include "core/policy.h"

namespace {

using namespace nd7;

Policy session() {
  Policy policy;
  policy.home = "/home/u";
  policy.project = "/home/u/work/project";
  CredentialInput credentials;
  credentials.homes = {"/home/u"};
  credentials.agent = "claude";
  policy.rules = credential_rules(credentials);
  WriteInput write;
  write.homes = {"/home/u"};
  write.project = policy.project;
  write.claude_dir = "/home/u/.claude";
  write.claude_json = "/home/u/.claude.json";
  write.codex_dir = "/home/u/.codex";
  write.agent = "claude";
  write.uid = 1000;
  write.tmp = "/tmp/nd7-1000/ID";
  write.cache = "/home/u/.cache/nd7/K";
  write.own_places = {"/home/u/.local/state/nd7", "/home/u/.config/nd7"};
  for (Rule& rule : write_rules(write)) policy.rules.push_back(std::move(rule));
  for (const char* pattern : {"**/migrations/", ".env", ".env.*"}) {
    Rule rule;
    rule.effect = Effect::deny_write;
    rule.shape = Shape::glob;
    rule.path = pattern;
    rule.scope = policy.project;
    rule.origin = Origin::policy_file;
    if (auto glob = Glob::parse(pattern)) rule.compiled = std::make_shared<const Glob>(*glob);
    policy.rules.push_back(std::move(rule));
  }
  for (Rule& rule : policy.rules)
    if (rule.shape == Shape::subtree || rule.shape == Shape::exact)
      rule.objects = {{1, std::hash<std::string>{}(rule.path)}};
  return policy;
}

double nanoseconds(const Policy& policy, const FileAction& action, long questions) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t length = 0;
  for (long i = 0; i < questions; ++i) length += decide(policy, action).rule.size();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  if (length == 0) std::abort();
  return took.count() / static_cast<double>(questions);
}

} // namespace

int main(int argc, char** argv) {
  const long questions = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 200000;
  if (questions <= 0) return 2;
  const Policy plain = session();
  Policy indexed = plain;
  const auto start = std::chrono::steady_clock::now();
  compile(indexed);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} rules, compiled in {:.0f} us\n", plain.rules.size(), took.count());
  fmt::print("{:5} {:50} {:>9} {:>9}\n", "", "", "index ns", "all ns");
  for (const Access access : {Access::read, Access::write})
    for (const char* path :
         {"/usr/include/c++/12/bits/stl_vector.h", "/home/u/work/project/src/core/policy.cc",
          "/home/u/work/project/node_modules/@types/node/dist/v20/fs.d.ts",
          "/home/u/work/project/.git/objects/ab/cdef0123", "/home/u/.claude/projects/x/y.jsonl",
          "/home/u/.cache/nd7/K/npm/_cacache/index-v5/aa/bb", "/home/u/.ssh/id_ed25519",
          "/tmp/nd7-1000/ID/x"}) {
      FileAction action;
      action.access = access;
      action.path = path;
      action.exists = true;
      action.object = {1, 77};
      fmt::print("{:5} {:50.50} {:9.0f} {:9.0f}\n", access == Access::read ? "read" : "write", path,
                 nanoseconds(indexed, action, questions),
                 nanoseconds(plain, action, questions / 20 + 1));
    }
  return 0;
}
