// The policy file's tables made into rules of a Policy.
#include <algorithm>

#include <fmt/format.h>

#include "core/policy_entry.h"
#include "core/policy_text.h"

namespace nd7 {

namespace {

std::string expanded(std::string_view path, const std::string& home) {
  std::string out(path);
  if (out == "~" || out.starts_with("~/")) out = home + out.substr(1);
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

void append(std::vector<PolicyEntry>& to, const std::vector<PolicyEntry>& from) {
  for (const PolicyEntry& entry : from)
    if (std::ranges::find(to, entry) == to.end()) to.push_back(entry);
}

void join(PolicyTables& into, const PolicyTables& more) {
  append(into.write, more.write);
  append(into.deny_write, more.deny_write);
  append(into.read, more.read);
  append(into.deny_read, more.deny_read);
  if (more.hosts) {
    if (!into.hosts) into.hosts.emplace();
    append(*into.hosts, *more.hosts);
  }
  append(into.ports, more.ports);
  append(into.listen, more.listen);
  append(into.pass, more.pass);
  if (more.dns_hosts_only) into.dns_hosts_only = more.dns_hosts_only;
  if (more.keep_content_bytes) into.keep_content_bytes = more.keep_content_bytes;
  if (more.reads_exact) into.reads_exact = more.reads_exact;
}

bool covers(const HostGrant& wide, const HostGrant& narrow) {
  if (wide.port != narrow.port) return false;
  if (wide.name == narrow.name) return true;
  if (!wide.name.starts_with("*.")) return false;
  std::string_view below = std::string_view(wide.name).substr(1); // ".example.com"
  std::string_view name = narrow.name;
  if (name.starts_with("*")) name.remove_prefix(1);
  return name.size() > below.size() && name.ends_with(below);
}

// What both lists allow. The grants that the person made keep their origin.
std::vector<HostGrant> both(const std::vector<HostGrant>& now, const std::vector<HostGrant>& more) {
  std::vector<HostGrant> out;
  auto add = [&](const HostGrant& grant) {
    for (const HostGrant& known : out)
      if (known.name == grant.name && known.port == grant.port) return;
    out.push_back(grant);
  };
  for (const HostGrant& a : now) {
    for (const HostGrant& b : more) {
      if (covers(b, a))
        add(a);
      else if (covers(a, b))
        add({b.name, b.port, a.origin});
    }
  }
  return out;
}

void add_hosts(const PolicyFile& file, const std::vector<PolicyEntry>& entries, Policy& policy) {
  std::vector<HostGrant> hosts;
  for (const PolicyEntry& entry : entries) hosts.push_back(host_of(entry.text));
  if (file.source == PolicySource::policy_file) {
    policy.hosts.insert(policy.hosts.end(), hosts.begin(), hosts.end());
    policy.only_hosts = true;
    return;
  }
  const bool trusted = file.source == PolicySource::trusted_project_file;
  for (HostGrant& host : hosts) host.origin = trusted ? Origin::policy_file : Origin::project_file;
  if (policy.only_hosts) {
    policy.hosts = both(policy.hosts, hosts);
  } else {
    // Any host on 443 is allowed so far: of an unaccepted file only names on 443 can narrow that.
    if (!trusted) std::erase_if(hosts, [](const HostGrant& host) { return host.port != 443; });
    policy.hosts.insert(policy.hosts.end(), hosts.begin(), hosts.end());
  }
  policy.only_hosts = true;
}

} // namespace

Result<PolicyTables> effective_tables(const PolicyFile& file, const PolicyContext& context) {
  PolicyTables out = file.general;
  for (const auto& [path, tables] : file.projects)
    if (expanded(path, context.home) == context.project) join(out, tables);
  if (context.profile.empty() || file.source != PolicySource::policy_file) return out;
  std::vector<std::string_view> names;
  for (const auto& [name, tables] : file.profiles) {
    if (name == context.profile) {
      join(out, tables);
      return out;
    }
    names.push_back(name);
  }
  std::string near = nearest_word(context.profile, names);
  return fail(fmt::format("{}: no profile '{}'", file.name, context.profile),
              near.empty() ? "" : "did you mean --profile " + near + "?");
}

Result<> apply_policy(const PolicyFile& file, const PolicyContext& context, Policy& policy,
                      PolicySettings& settings) {
  Result<PolicyTables> tables = effective_tables(file, context);
  if (!tables) return std::unexpected(tables.error());
  EntryBases bases{context.home, context.project, false, {}};
  const bool from_project = file.source != PolicySource::policy_file;
  const Origin origin =
      file.source == PolicySource::project_file ? Origin::project_file : Origin::policy_file;
  auto add = [&](const std::vector<PolicyEntry>& entries, EntryKind kind, Effect effect) {
    for (const PolicyEntry& entry : entries)
      for (Rule& rule : entry_rules(kind, entry, effect, bases)) {
        rule.origin = origin;
        policy.rules.push_back(std::move(rule));
      }
  };
  add(tables->write, EntryKind::path, Effect::allow_write);
  add(tables->read, EntryKind::path, Effect::allow_read);
  // What the project forbids to be written in itself it forbids in the granted directories too.
  for (const Rule& rule : policy.rules)
    if (rule.effect == Effect::allow_write && rule.shape == Shape::subtree &&
        rule.origin != Origin::builtin)
      bases.more_scopes.push_back(rule.path);
  bases.root_is_project = from_project;
  add(tables->deny_write, EntryKind::pattern, Effect::deny_write);
  add(tables->deny_read, EntryKind::pattern, Effect::deny_read);

  if (tables->hosts) add_hosts(file, *tables->hosts, policy);
  for (const PolicyEntry& entry : tables->ports)
    policy.ports.push_back({static_cast<std::uint16_t>(std::stoul(entry.text)), origin});
  for (const PolicyEntry& entry : tables->listen) policy.listens.push_back(listen_of(entry.text));
  for (const PolicyEntry& entry : tables->pass) settings.pass.push_back(entry.text);
  // A project's file can only make these stricter; an accepted one may also loosen them.
  const bool may_loosen = file.source != PolicySource::project_file;
  auto set = [&](const std::optional<bool>& value, bool& setting) {
    if (value && (*value || may_loosen)) setting = *value;
  };
  set(tables->dns_hosts_only, settings.dns_hosts_only);
  set(tables->reads_exact, settings.reads_exact);
  if (tables->keep_content_bytes) settings.keep_content_bytes = *tables->keep_content_bytes;
  return {};
}

} // namespace nd7
