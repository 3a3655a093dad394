// Which rules of a policy may match a path, found without looking at all of them.
//
// decide() is asked several times in a system call and a policy has hundreds of rules. The index
// names a few candidates: always all that match, sometimes more; decide() then looks closely.
//
// Every rule but a suffix has a literal beginning that each matching path shares (its path, the
// scope of a glob with what stands before the first star). All beginnings are kept sorted, each
// with a link to the longest other one that it begins with: one binary search gives the chain.
// Suffix rules are found by one of their components, ignoring case; rules that name objects by
// identity.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/action.h"

namespace nd7 {

struct Rule;

class PolicyIndex {
public:
  explicit PolicyIndex(const std::vector<Rule>& rules);

  static constexpr std::size_t candidates_max = 96;
  struct Candidates {
    std::array<std::uint32_t, candidates_max> numbers;
    std::size_t count = 0;
    bool overflow = false; // more than fit: look at all rules
  };
  // Numbers of rules, ascending, each once.
  void find(const FileAction& action, Candidates& out) const;
  std::size_t rules() const { return rules_; }

private:
  struct Beginning {
    std::string text;
    std::uint32_t parent; // the longest other beginning that this one begins with, or none
    std::vector<std::uint32_t> rules;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::size_t rules_;
  std::vector<Beginning> beginnings_;                                      // sorted by text
  std::unordered_map<std::string, std::vector<std::uint32_t>> components_; // folded
  std::bitset<4096> component_hints_; // length and first byte of the keys of components_
  std::vector<std::pair<ObjectId, std::uint32_t>> objects_; // sorted
  std::vector<std::uint32_t> always_;
};

// A policy's index. A copy of a policy is made to be changed, so the index stays behind: the copy
// is decided by looking at all rules until compile() is called on it.
class IndexHandle {
public:
  IndexHandle() = default;
  IndexHandle(const IndexHandle&) noexcept {}
  IndexHandle(IndexHandle&&) noexcept = default;
  IndexHandle& operator=(const IndexHandle& other) noexcept {
    if (this != &other) index_.reset();
    return *this;
  }
  IndexHandle& operator=(IndexHandle&&) noexcept = default;
  ~IndexHandle() = default;

  void set(std::shared_ptr<const PolicyIndex> index) { index_ = std::move(index); }
  const PolicyIndex* get() const { return index_.get(); }

private:
  std::shared_ptr<const PolicyIndex> index_;
};

} // namespace nd7
