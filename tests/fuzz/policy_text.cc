// The policy file: no text may crash the reader, and what is accepted must print to the same
// tables, apply, and survive one more entry.
#include "core/policy_text.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nd7;
  if (size < 1 || size > 16384) return 0;
  const PolicySource sources[] = {PolicySource::policy_file, PolicySource::project_file,
                                  PolicySource::trusted_project_file};
  const PolicySource source = sources[data[0] % 3];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Result<PolicyFile> file = parse_policy(text, "p", source);
  if (!file) {
    if (!file.error().text.starts_with("p:")) std::abort(); // every mistake has a place
    return 0;
  }
  const Result<PolicyFile> again = parse_policy(tables_text(file->general), "p");
  if (!again || !(again->general == file->general)) std::abort();

  Policy policy;
  PolicySettings settings;
  if (!apply_policy(*file, {"/home/u", "/home/u/p", ""}, policy, settings)) std::abort();
  for (const Rule& rule : policy.rules) {
    if (rule.shape == Shape::glob && !rule.compiled) std::abort();
    if (source == PolicySource::project_file && rule.effect != Effect::deny_write &&
        rule.effect != Effect::deny_read)
      std::abort();
  }
  if (source == PolicySource::project_file &&
      (!policy.ports.empty() || !policy.listens.empty() || !settings.pass.empty()))
    std::abort();

  if (source == PolicySource::policy_file) {
    const Result<std::string> saved = save_grant(text, "p", {GrantKind::write, "/new"});
    if (saved && saved->size() < text.size()) std::abort();
  }
  return 0;
}
