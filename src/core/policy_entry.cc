#include "core/policy_entry.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>

namespace nd7 {

namespace {

bool has_special(std::string_view text) {
  return text.find_first_of("*?[\\") != std::string_view::npos;
}

// A path or pattern taken apart: which base, and what is below it.
struct Split {
  enum class Base : std::uint8_t { home, root, relative } base = Base::relative;
  std::string_view rest; // without a leading slash
};

Split split(std::string_view text) {
  if (text == "~") return {Split::Base::home, {}};
  if (text.starts_with("~/")) return {Split::Base::home, text.substr(2)};
  if (text.starts_with('/')) return {Split::Base::root, text.substr(1)};
  return {Split::Base::relative, text};
}

std::string_view without_slashes_at_end(std::string_view text) {
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

Result<> check_path(EntryKind kind, std::string_view text) {
  if (text.empty()) return fail("an empty path");
  if (text.find('\0') != std::string_view::npos) return fail("a path with a NUL in it");
  if (text.starts_with('~') && text != "~" && !text.starts_with("~/"))
    return fail(fmt::format("'{}': only ~/ is known, no other user's home", text));
  Split parts = split(text);
  std::string_view rest = parts.rest;
  if (rest.starts_with("./")) rest.remove_prefix(2);
  for (std::size_t at = 0; at < rest.size();) {
    std::size_t end = std::min(rest.find('/', at), rest.size());
    std::string_view name = rest.substr(at, end - at);
    if (name == "." || name == ".." || (name.empty() && end < rest.size()))
      return fail(fmt::format("'{}': write the path without '.', '..' and double slashes", text));
    at = end + 1;
  }
  bool pattern =
      has_special(rest) || (kind == EntryKind::pattern && parts.base == Split::Base::relative);
  if (!pattern) return {};
  Result<Glob> glob = Glob::parse(parts.base == Split::Base::relative ? std::string(rest)
                                                                      : "/" + std::string(rest));
  if (!glob) return std::unexpected(glob.error());
  return {};
}

bool port_of(std::string_view text, std::uint16_t& port) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port != 0;
}

// NAME[:PORT], ADDRESS, [ADDRESS6][:PORT]; no port leaves `port` as it is.
bool split_host(std::string_view text, std::string& name, std::uint16_t& port) {
  if (text.starts_with('[')) {
    std::size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    std::string_view after = text.substr(close + 1);
    if (!after.empty() && (after[0] != ':' || !port_of(after.substr(1), port))) return false;
    std::optional<Address> address = parse_address(text.substr(1, close - 1));
    if (!address || !address->v6) return false;
    name = address_text(*address);
    return true;
  }
  if (std::optional<Address> address = parse_address(text)) {
    name = address_text(*address);
    return true;
  }
  std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    if (!port_of(text.substr(colon + 1), port)) return false;
    text = text.substr(0, colon);
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  name = std::string(text);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (std::optional<Address> address = parse_address(name)) name = address_text(*address);
  return true;
}

Result<> check_host(std::string_view text) {
  std::string name;
  std::uint16_t port = 443;
  auto bad = [&](const char* why) { return fail(fmt::format("'{}' is no host: {}", text, why)); };
  if (!split_host(text, name, port)) return bad("write NAME or NAME:PORT");
  if (parse_address(name)) return {};
  std::string_view rest = name;
  if (rest.starts_with("*.")) rest.remove_prefix(2);
  if (rest.empty() || rest.size() > 253) return bad("a name has 1 to 253 characters");
  for (std::size_t at = 0; at <= rest.size();) {
    std::size_t end = std::min(rest.find('.', at), rest.size());
    std::string_view label = rest.substr(at, end - at);
    if (label.empty() || label.size() > 63)
      return bad("a part between dots has 1 to 63 characters");
    if (label.find('*') != std::string_view::npos)
      return bad("a star stands only at the front, *.");
    for (char c : label)
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
        return bad("letters, digits, - and _ only; write other names in their xn-- form");
    at = end + 1;
  }
  // "10.1" or "0x7f.1" would be read as an address by some programs and as a name by others.
  std::string_view last =
      rest.substr(rest.rfind('.') == std::string_view::npos ? 0 : rest.rfind('.') + 1);
  if (last.front() >= '0' && last.front() <= '9')
    return bad("it looks like an address and is none");
  return {};
}

bool split_listen(std::string_view text, Address& out) {
  std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == std::string_view::npos || !port_of(text.substr(colon + 1), port)) return false;
  std::string_view address = text.substr(0, colon);
  bool bracketed = address.starts_with('[') && address.ends_with(']');
  if (bracketed) address = address.substr(1, address.size() - 2);
  std::optional<Address> parsed = parse_address(address, port);
  if (!parsed || parsed->v6 != bracketed) return false;
  out = *parsed;
  return true;
}

Rule rule_at(const PolicyEntry& entry, Effect effect, std::string path, std::string scope) {
  Rule rule;
  rule.effect = effect;
  rule.shape = scope.empty() ? Shape::subtree : Shape::glob;
  rule.path = std::move(path);
  rule.scope = std::move(scope);
  rule.origin = Origin::policy_file;
  rule.reason = fmt::format("\"{}\"", entry.text);
  if (rule.shape == Shape::glob)
    if (Result<Glob> glob = Glob::parse(rule.path))
      rule.compiled = std::make_shared<const Glob>(std::move(*glob));
  return rule;
}

std::string joined(const std::string& base, std::string_view rest) {
  if (rest.empty()) return base;
  return (base == "/" ? "" : base) + "/" + std::string(rest);
}

} // namespace

Result<> check_entry(EntryKind kind, std::string_view text) {
  switch (kind) {
  case EntryKind::path:
  case EntryKind::pattern:
    return check_path(kind, text);
  case EntryKind::host:
    return check_host(text);
  case EntryKind::listen: {
    Address address;
    if (split_listen(text, address)) return {};
    return fail(
        fmt::format("'{}' is no address to listen on, such as 0.0.0.0:3000 or [::]:3000", text));
  }
  case EntryKind::variable: {
    bool good = !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
                std::ranges::all_of(text, [](char c) {
                  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_';
                });
    if (good) return {};
    return fail(fmt::format("'{}' is no name of a variable", text));
  }
  }
  return fail("unknown kind of entry");
}

std::vector<Rule> entry_rules(EntryKind kind, const PolicyEntry& entry, Effect effect,
                              const EntryBases& bases) {
  Split parts = split(entry.text);
  std::string_view rest = parts.rest;
  if (rest.starts_with("./")) rest.remove_prefix(2);
  bool relative = parts.base == Split::Base::relative;
  if (kind == EntryKind::pattern && relative) {
    std::vector<Rule> out;
    // "." names the project itself; a pattern cannot.
    std::string pattern(rest);
    out.push_back(rule_at(entry, effect, pattern, bases.project));
    for (const std::string& scope : bases.more_scopes)
      if (scope != bases.project) out.push_back(rule_at(entry, effect, pattern, scope));
    return out;
  }
  bool in_project = relative || (parts.base == Split::Base::root && bases.root_is_project);
  const std::string base = parts.base == Split::Base::home ? bases.home
                           : in_project                    ? bases.project
                                                           : "/";
  if (!has_special(rest))
    return {rule_at(entry, effect, joined(base, without_slashes_at_end(rest)), "")};
  // The literal components become the scope, so that the rule costs nothing elsewhere.
  std::size_t special = rest.find_first_of("*?[\\");
  std::size_t slash = rest.substr(0, special).rfind('/');
  std::string_view leading = slash == std::string_view::npos ? "" : rest.substr(0, slash);
  std::string_view pattern = slash == std::string_view::npos ? rest : rest.substr(slash + 1);
  return {rule_at(entry, effect, "/" + std::string(pattern), joined(base, leading))};
}

HostGrant host_of(std::string_view text) {
  HostGrant grant;
  split_host(text, grant.name, grant.port);
  grant.origin = Origin::policy_file;
  return grant;
}

ListenGrant listen_of(std::string_view text) {
  ListenGrant grant;
  split_listen(text, grant.address);
  grant.origin = Origin::policy_file;
  return grant;
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32 || c == 127)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

} // namespace nd7
