// The other names that mounts give to a place.
//
// A file system mounted at two points (a bind mount, a container's volume, a subvolume beside its
// root) shows the same file under two paths that no link connects. Rules are texts, so each rule is
// written down once more for every other mount through which its place can be reached.
//
// What this does not see: mounts of other namespaces, and a network or overlay file system that
// shows the same files under another device number. Rule::objects covers what existed at start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/policy.h"

namespace nd7 {

struct Mount {
  int id = 0;
  int parent = 0;
  std::string device; // "259:1": the same for all mounts of one file system
  std::string root;   // the directory of the file system that is shown, "/" for all of it
  std::string point;  // where it is shown
  std::string type;   // "ext4"
};

// The lines of /proc/PID/mountinfo (proc(5)), in their order; \040 and its like are undone. A line
// that does not parse is left out and counted.
struct MountTable {
  std::vector<Mount> mounts;
  unsigned malformed = 0;
};
MountTable parse_mountinfo(std::string_view text);

// The mount that shows `path`: of the longest point the one mounted last. nullptr when none does.
const Mount* mount_of(const MountTable& table, std::string_view path);

// All names of `path` through other mounts of its file system that are not covered by a mount on
// top, without `path` itself.
std::vector<std::string> other_names(const MountTable& table, std::string_view path);

// The points of other mounts that show only a part of what lies below `path`.
std::vector<std::string> parts_elsewhere(const MountTable& table, std::string_view path);

// The rules, and behind each that restricts its copies under other mounts; rules that allow have
// none, so that a second name of a place is never more open than the first. A subtree is copied
// whole, and so are a part of it that is mounted elsewhere and what is mounted inside of it and
// elsewhere too; of suffix and glob the scope is. Copies lose the objects, which are the
// original's.
std::vector<Rule> with_mount_aliases(const std::vector<Rule>& rules, const MountTable& table);

} // namespace nd7
