// The text of a mount table: whatever it says, no rule is lost or widened, and other names lead
// back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/mount_alias.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

nd7::Rule rule(nd7::Effect effect, nd7::Shape shape, std::string path, std::string scope = {}) {
  nd7::Rule out;
  out.effect = effect;
  out.shape = shape;
  out.path = std::move(path);
  out.scope = std::move(scope);
  out.objects = {{1, 2}};
  return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nd7;
  if (size > 4096) return 0;
  const MountTable table =
      parse_mountinfo(std::string_view(reinterpret_cast<const char*>(data), size));
  for (const Mount& mount : table.mounts) {
    check(mount.point.starts_with('/'));
    for (const std::string& name : other_names(table, mount.point)) {
      check(name != mount.point);
      check(mount_of(table, name) != nullptr);
    }
  }
  const std::vector<Rule> rules = {rule(Effect::never_read, Shape::subtree, "/a/b"),
                                   rule(Effect::deny_read, Shape::exact, "/a"),
                                   rule(Effect::allow_write, Shape::subtree, "/a"),
                                   rule(Effect::guarded, Shape::suffix, ".git/hooks/*", "/a")};
  const std::vector<Rule> more = with_mount_aliases(rules, table);
  check(more.size() >= rules.size());
  std::size_t found = 0, allowing = 0;
  for (const Rule& each : more) {
    // The given ones are all there, in order; what is added has no objects of its own.
    if (found < rules.size() && each.objects == rules[found].objects &&
        each.path == rules[found].path && each.scope == rules[found].scope &&
        each.effect == rules[found].effect)
      ++found;
    else
      check(each.objects.empty());
    if (each.effect == Effect::allow_write) ++allowing;
    check((each.shape == Shape::suffix ? each.scope : each.path).starts_with('/'));
  }
  check(found == rules.size() && allowing == 1);
  return 0;
}
