#include "core/policy_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "core/policy_entry.h"

namespace nd7 {

namespace {

constexpr std::size_t file_size_bytes_max = std::size_t{1} << 20;
constexpr std::size_t entries_max = 10000;
constexpr std::uint64_t keep_content_bytes_max = std::uint64_t{1} << 30;

using Words = std::span<const std::string_view>;
constexpr std::array<std::string_view, 6> tables_known = {"files", "network", "env",
                                                          "log",   "project", "profile"};
constexpr std::array<std::string_view, 4> files_known = {"write", "deny_write", "deny_read",
                                                         "read"};
constexpr std::array<std::string_view, 4> network_known = {"hosts", "dns", "ports", "listen"};
constexpr std::array<std::string_view, 1> env_known = {"pass"};
constexpr std::array<std::string_view, 2> log_known = {"keep_content", "reads"};

std::string key_text(std::string_view key) {
  bool bare = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return bare ? std::string(key) : toml_quoted(key);
}

// Walks one document. The first mistake is kept and everything after it is skipped.
class Reader {
public:
  Reader(std::string name, PolicySource source) : name_(std::move(name)), source_(source) {}

  Result<PolicyFile> read(const toml::table& root) {
    PolicyFile file;
    file.name = name_;
    file.source = source_;
    tables(root, "", file.general, true);
    if (const toml::node* node = root.get("project")) each(*node, "project", file.projects);
    if (const toml::node* node = root.get("profile")) each(*node, "profile", file.profiles);
    if (failed_) return fail(error_, hint_);
    return file;
  }

private:
  void wrong(const toml::source_position& at, std::string text, std::string hint = {}) {
    if (failed_) return;
    failed_ = true;
    error_ = fmt::format("{}:{}:{}: {}", name_, at.line, at.column, text);
    hint_ = std::move(hint);
  }
  void wrong(const toml::node& node, std::string text, std::string hint = {}) {
    wrong(node.source().begin, std::move(text), std::move(hint));
  }

  void unknown(const toml::key& key, const std::string& below, Words known) {
    std::string name = below + key_text(key.str());
    std::string near =
        nearest_word(key.str(), std::vector<std::string_view>(known.begin(), known.end()));
    std::string text = fmt::format("unknown key '{}'", name);
    if (!near.empty()) text += fmt::format(", did you mean '{}{}'?", below, near);
    wrong(key.source().begin, text);
  }

  const toml::table* table_of(const toml::node& node, const std::string& name) {
    const toml::table* table = node.as_table();
    if (table == nullptr) wrong(node, fmt::format("'{}' must be a table", name));
    return table;
  }

  void each(const toml::node& node, const std::string& kind,
            std::vector<std::pair<std::string, PolicyTables>>& out) {
    if (source_ != PolicySource::policy_file)
      return wrong(node, fmt::format("'{}' belongs in policy.toml, not in a project's file", kind));
    const toml::table* table = table_of(node, kind);
    if (table == nullptr) return;
    for (const auto& [key, value] : *table) {
      std::string name = kind + "." + key_text(key.str());
      if (kind == "project" && !key.str().starts_with('/') && key.str() != "~" &&
          !key.str().starts_with("~/"))
        return wrong(key.source().begin, fmt::format("'{}': the path of a project must begin with "
                                                     "/ or ~/",
                                                     name));
      const toml::table* inner = table_of(value, name);
      if (inner == nullptr) return;
      PolicyTables tables_of_it;
      tables(*inner, name + ".", tables_of_it, false);
      out.emplace_back(std::string(key.str()), std::move(tables_of_it));
    }
  }

  void tables(const toml::table& table, const std::string& below, PolicyTables& out, bool top) {
    Words known = tables_known;
    if (!top) known = known.first(4);
    for (const auto& [key, value] : table) {
      if (std::ranges::find(known, key.str()) == known.end()) return unknown(key, below, known);
      if (key.str() == "project" || key.str() == "profile") continue;
      std::string name = below + std::string(key.str());
      const toml::table* inner = table_of(value, name);
      if (inner == nullptr) return;
      for (const auto& [inner_key, inner_value] : *inner)
        setting(key.str(), inner_key, inner_value, name + ".", out);
    }
  }

  void setting(std::string_view table, const toml::key& key, const toml::node& value,
               const std::string& below, PolicyTables& out) {
    std::string_view name = key.str();
    std::string full = below + key_text(name);
    bool narrows = true; // what a project's file may say before it is accepted
    if (table == "files") {
      if (name == "write" || name == "read") {
        narrows = false;
        entries(value, full, EntryKind::path, name == "write" ? out.write : out.read);
      } else if (name == "deny_write" || name == "deny_read") {
        entries(value, full, EntryKind::pattern,
                name == "deny_write" ? out.deny_write : out.deny_read);
      } else {
        return unknown(key, below, files_known);
      }
    } else if (table == "network") {
      if (name == "hosts") {
        out.hosts.emplace();
        entries(value, full, EntryKind::host, *out.hosts);
      } else if (name == "dns") {
        narrows = choice(value, full, "any", "hosts", out.dns_hosts_only);
      } else if (name == "ports" || name == "listen") {
        narrows = false;
        if (name == "ports")
          ports(value, full, out.ports);
        else
          entries(value, full, EntryKind::listen, out.listen);
      } else {
        return unknown(key, below, network_known);
      }
    } else if (table == "env") {
      if (name != "pass") return unknown(key, below, env_known);
      narrows = false;
      entries(value, full, EntryKind::variable, out.pass);
    } else {
      if (name == "keep_content") {
        narrows = false;
        size(value, full, out.keep_content_bytes);
      } else if (name == "reads") {
        narrows = choice(value, full, "observed", "exact", out.reads_exact);
      } else {
        return unknown(key, below, log_known);
      }
    }
    if (!narrows && source_ == PolicySource::project_file)
      wrong(key.source().begin,
            fmt::format("'{}' would widen the rules; a project may only narrow them", full),
            "read it, then accept it: nd7 trust " + name_);
  }

  void entries(const toml::node& node, const std::string& name, EntryKind kind,
               std::vector<PolicyEntry>& out) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return wrong(node, fmt::format("'{}' must be a list of strings", name));
    if (array->size() > entries_max)
      return wrong(node, fmt::format("'{}' has more than {} entries", name, entries_max));
    for (const toml::node& element : *array) {
      const auto* text = element.as_string();
      if (text == nullptr) return wrong(element, fmt::format("'{}' must hold strings only", name));
      if (Result<> good = check_entry(kind, text->get()); !good)
        return wrong(element, good.error().text, good.error().hint);
      out.push_back({text->get(), element.source().begin.line, element.source().begin.column});
    }
  }

  void ports(const toml::node& node, const std::string& name, std::vector<PolicyEntry>& out) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return wrong(node, fmt::format("'{}' must be a list of numbers", name));
    for (const toml::node& element : *array) {
      const auto* number = element.as_integer();
      if (number == nullptr)
        return wrong(element, fmt::format("'{}' must hold numbers only", name));
      if (number->get() < 1 || number->get() > 65535)
        return wrong(element, fmt::format("{} is no port: 1 to 65535", number->get()));
      out.push_back({std::to_string(number->get()), element.source().begin.line,
                     element.source().begin.column});
    }
  }

  // True when the value is the narrow one.
  bool choice(const toml::node& node, const std::string& name, std::string_view wide,
              std::string_view narrow, std::optional<bool>& out) {
    const auto* text = node.as_string();
    if (text == nullptr || (text->get() != wide && text->get() != narrow)) {
      wrong(node, fmt::format("'{}' must be \"{}\" or \"{}\"", name, wide, narrow));
      return true;
    }
    out = text->get() == narrow;
    return *out;
  }

  void size(const toml::node& node, const std::string& name, std::optional<std::uint64_t>& out) {
    if (const auto* text = node.as_string())
      out = parse_size(text->get());
    else if (const auto* number = node.as_integer())
      out = parse_size(std::to_string(number->get()));
    if (!out) wrong(node, fmt::format("'{}' must be a size up to 1GiB, such as \"64KiB\"", name));
  }

  std::string name_;
  PolicySource source_;
  bool failed_ = false;
  std::string error_, hint_;
};

void print_list(std::string& out, std::string_view key, const std::vector<PolicyEntry>& list,
                bool numbers = false) {
  out += fmt::format("{} = [", key);
  for (std::size_t i = 0; i < list.size(); ++i)
    out += (i > 0 ? ", " : "") + (numbers ? list[i].text : toml_quoted(list[i].text));
  out += "]\n";
}

} // namespace

Result<PolicyFile> parse_policy(std::string_view text, std::string name, PolicySource source) {
  if (text.size() > file_size_bytes_max)
    return fail(fmt::format("{}: larger than {} bytes", name, file_size_bytes_max));
  try {
    const toml::table root = toml::parse(text);
    return Reader(std::move(name), source).read(root);
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    return fail(fmt::format("{}:{}:{}: {}", name, at.line, at.column, error.description()));
  }
}

std::string tables_text(const PolicyTables& tables) {
  std::string files, network, env, log, out;
  if (!tables.write.empty()) print_list(files, "write", tables.write);
  if (!tables.deny_write.empty()) print_list(files, "deny_write", tables.deny_write);
  if (!tables.read.empty()) print_list(files, "read", tables.read);
  if (!tables.deny_read.empty()) print_list(files, "deny_read", tables.deny_read);
  if (tables.hosts) print_list(network, "hosts", *tables.hosts);
  if (tables.dns_hosts_only)
    network += fmt::format("dns = \"{}\"\n", *tables.dns_hosts_only ? "hosts" : "any");
  if (!tables.ports.empty()) print_list(network, "ports", tables.ports, true);
  if (!tables.listen.empty()) print_list(network, "listen", tables.listen);
  if (!tables.pass.empty()) print_list(env, "pass", tables.pass);
  if (tables.keep_content_bytes)
    log += fmt::format("keep_content = {}\n", *tables.keep_content_bytes);
  if (tables.reads_exact)
    log += fmt::format("reads = \"{}\"\n", *tables.reads_exact ? "exact" : "observed");
  if (!files.empty()) out += "[files]\n" + files;
  if (!network.empty()) out += "[network]\n" + network;
  if (!env.empty()) out += "[env]\n" + env;
  if (!log.empty()) out += "[log]\n" + log;
  return out;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  std::string_view unit(after, static_cast<std::size_t>(end - after));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr Unit units[] = {{"", 1},
                            {"B", 1},
                            {"kB", 1000},
                            {"MB", 1000 * 1000},
                            {"GB", 1000 * 1000 * 1000},
                            {"KiB", 1024},
                            {"MiB", 1024 * 1024},
                            {"GiB", 1024 * 1024 * 1024}};
  for (const Unit& known : units)
    if (unit == known.name && number <= keep_content_bytes_max / known.bytes)
      return number * known.bytes;
  return std::nullopt;
}

std::string nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  std::string best;
  std::size_t best_distance = 3;
  for (std::string_view candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size() && i <= 64; ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        std::size_t change = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    // Two slips in a word of three letters make any word of it.
    if (row.back() < best_distance && row.back() < candidate.size()) {
      best_distance = row.back();
      best = std::string(candidate);
    }
  }
  return best;
}

} // namespace nd7
