#include "core/mount_alias.h"

#include <algorithm>
#include <charconv>

namespace nd7 {

namespace {

constexpr std::size_t aliases_max = 4096; // of one rule; a table with more is no ordinary machine

// \ooo for space, tab, newline, backslash and # (fs/proc_namespace.c).
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto octal = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      int value = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      out += static_cast<char>(value & 0xFF);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool number(std::string_view text, int& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
bool parse_line(std::string_view line, Mount& out) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0; at <= line.size();) {
    std::size_t end = std::min(line.find(' ', at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  auto dash = std::find(fields.begin(), fields.end(), "-");
  if (fields.size() < 6 || dash - fields.begin() < 6 || fields.end() - dash < 2) return false;
  if (!number(fields[0], out.id) || !number(fields[1], out.parent)) return false;
  out.device = std::string(fields[2]);
  out.root = unescaped(fields[3]);
  out.point = unescaped(fields[4]);
  out.type = unescaped(*(dash + 1));
  return out.point.starts_with('/') && out.device.find(':') != std::string::npos;
}

bool at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// `path` seen from `from` and put below `to`.
std::string moved(std::string_view path, std::string_view from, std::string_view to) {
  std::string_view rest = from == "/" ? path : path.substr(from.size());
  while (rest.starts_with('/')) rest.remove_prefix(1);
  std::string out(to == "/" && !rest.empty() ? "" : to);
  if (!rest.empty()) out.append("/").append(rest);
  return out;
}

} // namespace

MountTable parse_mountinfo(std::string_view text) {
  MountTable table;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    Mount mount;
    if (parse_line(text.substr(at, end - at), mount))
      table.mounts.push_back(std::move(mount));
    else
      ++table.malformed;
    at = end + 1;
  }
  return table;
}

const Mount* mount_of(const MountTable& table, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : table.mounts)
    if (at_or_below(path, mount.point) && (!best || mount.point.size() >= best->point.size()))
      best = &mount;
  return best;
}

std::vector<std::string> other_names(const MountTable& table, std::string_view path) {
  std::vector<std::string> out;
  const Mount* mount = mount_of(table, path);
  // Roots such as "net:[4026531833]" are no directories.
  if (mount == nullptr || !mount->root.starts_with('/')) return out;
  std::string inside = moved(path, mount->point, mount->root);
  for (const Mount& other : table.mounts) {
    if (other.device != mount->device || !other.root.starts_with('/')) continue;
    if (!at_or_below(inside, other.root)) continue;
    std::string name = moved(inside, other.root, other.point);
    if (name == path || mount_of(table, name) != &other) continue;
    if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
    if (out.size() >= aliases_max) break;
  }
  return out;
}

std::vector<std::string> parts_elsewhere(const MountTable& table, std::string_view path) {
  std::vector<std::string> out;
  const Mount* mount = mount_of(table, path);
  if (mount == nullptr || !mount->root.starts_with('/')) return out;
  std::string inside = moved(path, mount->point, mount->root);
  for (const Mount& other : table.mounts) {
    if (other.device != mount->device || other.root == inside) continue;
    if (!at_or_below(other.root, inside) || at_or_below(other.point, path)) continue;
    if (mount_of(table, other.point) == &other) out.push_back(other.point);
  }
  return out;
}

std::vector<Rule> with_mount_aliases(const std::vector<Rule>& rules, const MountTable& table) {
  std::vector<Rule> out;
  for (const Rule& rule : rules) {
    out.push_back(rule);
    const bool allows = rule.effect == Effect::allow_read || rule.effect == Effect::allow_write ||
                        rule.effect == Effect::own_write;
    const bool by_scope = rule.shape == Shape::suffix || rule.shape == Shape::glob;
    const std::string& place = by_scope ? rule.scope : rule.path;
    if (allows || place.empty()) continue; // without a scope it holds anywhere already
    auto copy = [&](std::string name, bool whole) {
      Rule twin = rule;
      twin.objects.clear();
      if (by_scope) {
        twin.scope = std::move(name);
      } else {
        twin.path = std::move(name);
        if (whole) twin.shape = Shape::subtree;
      }
      out.push_back(std::move(twin));
    };
    for (std::string& name : other_names(table, place)) copy(std::move(name), false);
    if (rule.shape == Shape::exact) continue;
    // What a pattern is anchored at is lost in a part of its scope: there it may match too much,
    // which for a rule that restricts is the right side to err on.
    for (std::string& name : parts_elsewhere(table, place)) copy(std::move(name), true);
    for (const Mount& inner : table.mounts) {
      if (inner.point == place || !at_or_below(inner.point, place)) continue;
      if (mount_of(table, inner.point) != &inner) continue;
      for (std::string& name : other_names(table, inner.point))
        if (!at_or_below(name, place)) copy(std::move(name), true);
    }
  }
  return out;
}

} // namespace nd7
