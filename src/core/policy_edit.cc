// `nd7 allow --save`: one more entry in a policy file, and not one other byte.
//
// The place is found by toml++'s source positions or by a look at the lines; whether it was the
// right one is then proved by parsing the result: it must say what the old text said, and the new
// entry. A form that cannot be edited so (an inline table, say) is left to the person.
#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "core/policy_entry.h"
#include "core/policy_text.h"

namespace nd7 {

namespace {

struct Slot {
  std::string_view table, key;
  EntryKind kind;
  bool number;
};

Slot slot_of(GrantKind kind) {
  switch (kind) {
  case GrantKind::write:
    return {"files", "write", EntryKind::path, false};
  case GrantKind::read:
    return {"files", "read", EntryKind::path, false};
  case GrantKind::deny_write:
    return {"files", "deny_write", EntryKind::pattern, false};
  case GrantKind::deny_read:
    return {"files", "deny_read", EntryKind::pattern, false};
  case GrantKind::host:
    return {"network", "hosts", EntryKind::host, false};
  case GrantKind::port:
    return {"network", "ports", EntryKind::host, true};
  case GrantKind::listen:
    return {"network", "listen", EntryKind::listen, false};
  }
  return {};
}

std::vector<PolicyEntry>& list_of(PolicyTables& tables, GrantKind kind) {
  switch (kind) {
  case GrantKind::write:
    return tables.write;
  case GrantKind::read:
    return tables.read;
  case GrantKind::deny_write:
    return tables.deny_write;
  case GrantKind::deny_read:
    return tables.deny_read;
  case GrantKind::host:
    if (!tables.hosts) tables.hosts.emplace();
    return *tables.hosts;
  case GrantKind::port:
    return tables.ports;
  case GrantKind::listen:
    break;
  }
  return tables.listen;
}

// toml++ counts lines from 1 and, within one, characters from 1.
std::size_t offset_of(std::string_view text, const toml::source_position& at) {
  std::size_t offset = 0;
  for (toml::source_index line = 1; line < at.line; ++line) {
    offset = text.find('\n', offset);
    if (offset == std::string_view::npos) return text.size();
    ++offset;
  }
  if (at.line == 1 && text.starts_with("\xEF\xBB\xBF")) offset = 3;
  for (toml::source_index column = 1; column < at.column && offset < text.size(); ++column) {
    ++offset;
    while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80)
      ++offset;
  }
  return offset;
}

std::size_t line_end(std::string_view text, std::size_t from) {
  return std::min(text.find('\n', from), text.size());
}

std::string inserted(std::string_view text, std::size_t at, std::string_view what) {
  return fmt::format("{}{}{}", text.substr(0, at), what, text.substr(at));
}

// Behind the last element; on a line of its own when that one stands on its own.
std::string into_array(std::string_view text, const toml::array& array, const std::string& value) {
  std::size_t open = offset_of(text, array.source().begin);
  if (array.empty()) return inserted(text, open + 1, value);
  const toml::node& last = *array.get(array.size() - 1);
  std::size_t begin = offset_of(text, last.source().begin);
  std::size_t end = offset_of(text, last.source().end);
  std::size_t line = text.rfind('\n', begin);
  line = line == std::string_view::npos ? 0 : line + 1;
  std::string_view indent = text.substr(line, begin - line);
  if (indent.find_first_not_of(" \t") != std::string_view::npos)
    return inserted(text, end, ", " + value);
  std::size_t stop = line_end(text, end);
  std::string_view rest = text.substr(end, stop - end);
  std::string_view newline = rest.ends_with('\r') ? "\r\n" : "\n";
  if (rest.ends_with('\r')) --stop;
  std::size_t next = rest.find_first_not_of(" \t\r");
  bool comma = next != std::string_view::npos && rest[next] == ',';
  if (comma) next = rest.find_first_not_of(" \t\r", next + 1);
  if (next != std::string_view::npos && rest[next] != '#') // the list is closed on this line
    return inserted(text, end, ", " + value);
  if (comma) return inserted(text, stop, fmt::format("{}{}{},", newline, indent, value));
  // A comment behind the last element stays with it.
  std::string line_added = fmt::format("{}{}{}", newline, indent, value);
  return inserted(inserted(text, stop, line_added), end, ",");
}

// The end of the line "[files]", or npos. Could be fooled by a string of many lines: the proof
// finds that out.
std::size_t header_end(std::string_view text, std::string_view table) {
  for (std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; at < text.size();) {
    std::size_t end = line_end(text, at);
    std::string compact;
    for (char c : text.substr(at, end - at))
      if (c != ' ' && c != '\t' && c != '\r') compact += c;
    std::string header = fmt::format("[{}]", table);
    if (compact == header || compact.starts_with(header + "#")) return end;
    at = end + 1;
  }
  return std::string_view::npos;
}

bool same(const PolicyFile& a, const PolicyFile& b) {
  return a.general == b.general && a.projects == b.projects && a.profiles == b.profiles;
}

} // namespace

Result<std::string> save_grant(std::string_view text, const std::string& name, const Grant& grant) {
  Result<PolicyFile> before = parse_policy(text, name);
  if (!before) return std::unexpected(before.error());
  const Slot slot = slot_of(grant.kind);
  if (grant.kind == GrantKind::host && !before->general.hosts)
    return fail(
        fmt::format("{}: network.hosts is absent, which means any host; with one name in it "
                    "no other would be reachable",
                    name),
        "list all hosts there yourself if that is meant");
  const std::string line = fmt::format("{}.{} = [{}]", slot.table, slot.key,
                                       slot.number ? grant.value : toml_quoted(grant.value));
  if (slot.number) {
    if (!parse_policy(line, "value")) return fail(fmt::format("'{}' is no port", grant.value));
  } else if (Result<> good = check_entry(slot.kind, grant.value); !good) {
    return std::unexpected(good.error());
  }
  PolicyFile expected = *before;
  std::vector<PolicyEntry>& list = list_of(expected.general, grant.kind);
  if (std::ranges::find(list, PolicyEntry{grant.value}) != list.end()) return std::string(text);
  list.push_back({grant.value});

  const std::string value = slot.number ? grant.value : toml_quoted(grant.value);
  const std::string setting = fmt::format("{} = [{}]", slot.key, value);
  std::vector<std::string> candidates;
  const toml::table root = toml::parse(text); // parsed before, so it does not throw
  if (const toml::array* array = root[slot.table][slot.key].as_array())
    candidates.push_back(into_array(text, *array, value));
  if (std::size_t end = header_end(text, slot.table); end != std::string_view::npos) {
    bool carriage = end > 0 && text[end - 1] == '\r';
    candidates.push_back(inserted(text, end, "\n" + setting + (carriage ? "\r" : "")));
  }
  std::string_view gap = text.empty() ? "" : text.ends_with('\n') ? "\n" : "\n\n";
  candidates.push_back(fmt::format("{}{}[{}]\n{}\n", text, gap, slot.table, setting));
  candidates.push_back(inserted(text, text.starts_with("\xEF\xBB\xBF") ? 3 : 0, line + "\n"));
  for (std::string& candidate : candidates) {
    Result<PolicyFile> after = parse_policy(candidate, name);
    if (after && same(*after, expected)) return std::move(candidate);
  }
  return fail(
      fmt::format("{}: found no place to add an entry to {}.{}", name, slot.table, slot.key),
      "write it by hand: " + line);
}

} // namespace nd7
