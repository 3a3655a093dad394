#include "core/policy_index.h"

#include <algorithm>

#include "core/policy.h"

namespace nd7 {

namespace {

char folded(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::size_t hint(std::string_view component) {
  return (component.size() & 15) << 8 | static_cast<unsigned char>(folded(component.front()));
}

// Calls `visit` for each component.
template <class Visit> void each_component(std::string_view path, const Visit& visit) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) visit(path.substr(at, end - at));
    at = end + 1;
  }
}

// The last component without a star: the most telling one (".git" stands in many). Empty when all
// have one.
std::string anchor(std::string_view pattern) {
  std::string out;
  each_component(pattern, [&](std::string_view part) {
    if (part.find('*') == std::string_view::npos) out = part;
  });
  std::transform(out.begin(), out.end(), out.begin(), folded);
  return out;
}

// What every path that the rule matches begins with.
std::vector<std::string> beginnings_of(const Rule& rule) {
  if (rule.shape != Shape::glob) return {rule.path == "/" ? std::string() : rule.path};
  const std::string base = rule.scope.empty() || rule.scope == "/" ? "/" : rule.scope + "/";
  std::vector<std::string> out;
  for (const std::string& start : rule.compiled->literal_starts()) out.push_back(base + start);
  return out;
}

} // namespace

PolicyIndex::PolicyIndex(const std::vector<Rule>& rules) : rules_(rules.size()) {
  std::vector<std::pair<std::string, std::uint32_t>> starts;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    const auto number = static_cast<std::uint32_t>(i);
    for (const ObjectId& object : rule.objects) objects_.emplace_back(object, number);
    if (rule.shape == Shape::suffix) {
      const std::string key = anchor(rule.path);
      if (key.empty()) {
        always_.push_back(number);
      } else {
        components_[key].push_back(number);
        component_hints_.set(hint(key));
      }
    } else if (rule.shape == Shape::glob && !rule.compiled) {
      always_.push_back(number);
    } else {
      for (std::string& start : beginnings_of(rule)) starts.emplace_back(std::move(start), number);
    }
  }
  std::sort(objects_.begin(), objects_.end());
  std::sort(starts.begin(), starts.end());
  for (auto& [text, number] : starts) {
    if (beginnings_.empty() || beginnings_.back().text != text) {
      // The chain of the one before holds all beginnings that this one can begin with.
      std::uint32_t parent =
          beginnings_.empty() ? none : static_cast<std::uint32_t>(beginnings_.size() - 1);
      while (parent != none && !text.starts_with(beginnings_[parent].text))
        parent = beginnings_[parent].parent;
      beginnings_.push_back({std::move(text), parent, {}});
    }
    beginnings_.back().rules.push_back(number);
  }
}

void PolicyIndex::find(const FileAction& action, Candidates& out) const {
  out.count = 0;
  out.overflow = false;
  const auto add = [&](const std::vector<std::uint32_t>& numbers) {
    for (const std::uint32_t number : numbers) {
      if (out.count == out.numbers.size()) {
        out.overflow = true;
        return;
      }
      out.numbers[out.count++] = number;
    }
  };
  add(always_);
  const std::string_view path = action.path;
  const auto after = std::upper_bound(
      beginnings_.begin(), beginnings_.end(), path,
      [](std::string_view text, const Beginning& other) { return text < other.text; });
  if (after != beginnings_.begin()) {
    // Strings between a beginning of the path and the path begin with it too: all that count lie on
    // the chain of the last one that is not after the path.
    const Beginning* at = &*(after - 1);
    const auto common = static_cast<std::size_t>(
        std::mismatch(path.begin(), path.end(), at->text.begin(), at->text.end()).first -
        path.begin());
    for (;;) {
      if (at->text.size() <= common) add(at->rules);
      if (at->parent == none) break;
      at = &beginnings_[at->parent];
    }
  }
  if (!components_.empty()) {
    each_component(path, [&](std::string_view part) {
      if (!component_hints_.test(hint(part))) return;
      std::string key(part);
      std::transform(key.begin(), key.end(), key.begin(), folded);
      if (const auto found = components_.find(key); found != components_.end()) add(found->second);
    });
  }
  if (action.exists) {
    auto found = std::lower_bound(
        objects_.begin(), objects_.end(), action.object,
        [](const auto& entry, const ObjectId& object) { return entry.first < object; });
    for (; found != objects_.end() && found->first == action.object; ++found) {
      if (out.count == out.numbers.size()) {
        out.overflow = true;
        break;
      }
      out.numbers[out.count++] = found->second;
    }
  }
  const auto begin = out.numbers.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(out.count);
  std::sort(begin, end);
  out.count = static_cast<std::size_t>(std::unique(begin, end) - begin);
}

} // namespace nd7
