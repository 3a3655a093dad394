#include "gate/record.h"

#include <fmt/format.h>

namespace nd7 {
namespace {

constexpr std::size_t folded_reads_max = 8192;       // objects a process, then they are written
constexpr std::size_t distinct_refusals_max = 10000; // beyond it only entries and counts

} // namespace

JsonWriter Recorder::effect(const Process& process, std::string_view op, int error,
                            const char* how) {
  JsonWriter body;
  body.number("pid", process.pid).count("start", process.start_ticks).text("op", op);
  if (error == 0)
    body.number("result", 0);
  else
    body.text("result", errno_name(error));
  const Join join = process.joined();
  if (join.call.empty())
    body.null("call");
  else
    body.text("call", join.call);
  if (join.how.empty())
    body.null("join");
  else
    body.text("join", join.how);
  body.text("how", how);
  return body;
}

std::uint64_t Recorder::note(std::string_view source, std::string_view kind,
                             std::string_view body) {
  auto seq = log_.append({source, kind, body, 0, 0});
  if (seq) return *seq;
  counts.lost++;
  // Said once: from here on the session stops or goes on with a counted gap, as its policy says.
  if (!failed_.exchange(true)) on_failure_(seq.error().text);
  return 0;
}

void Recorder::append(const Process&, std::string_view kind, JsonWriter& body) {
  counts.effects++;
  note("effect:kernel", kind, body.finish());
}

void Recorder::read(Process& process, std::string_view op, const std::string& path,
                    const char* how) {
  counts.reads++;
  bool full = false;
  {
    const std::lock_guard hold(process.lock);
    full = process.reads.size() >= folded_reads_max;
  }
  if (full) flush_reads(process);
  {
    const std::lock_guard hold(process.lock);
    auto [at, first] = process.reads.try_emplace(path, 0);
    if (!first) {
      at->second++;
      return;
    }
  }
  JsonWriter body = effect(process, op, 0, how);
  body.path("path", path).number("count", 1);
  append(process, "read", body);
}

void Recorder::flush_reads(Process& process) {
  std::unordered_map<std::string, std::uint32_t> reads;
  {
    const std::lock_guard hold(process.lock);
    reads.swap(process.reads);
  }
  for (const auto& [path, more] : reads) {
    if (more == 0) continue;
    JsonWriter body = effect(process, "open", 0, "performed");
    body.path("path", path).count("count", more);
    append(process, "read", body);
  }
}

void Recorder::refuse(Process& process, std::string_view op, std::string_view would,
                      std::string_view object, const Verdict& verdict,
                      std::function<void(JsonWriter&)> members, Telling telling) {
  counts.refused++;
  JsonWriter body = effect(process, op, EACCES, "performed");
  body.text("would", would);
  members(body);
  body.text("rule", verdict.rule);
  if (verdict.open_with.empty())
    body.null("open_with");
  else
    body.text("open_with", verdict.open_with);
  if (telling == Telling::none) body.boolean("quiet", true);
  const std::uint64_t seq = note("effect:kernel", "refused", body.finish());
  if (telling == Telling::none) return;
  Refusal told;
  {
    const std::lock_guard hold(lock_);
    const auto key = std::pair(std::string(would) + ' ' + verdict.rule, std::string(object));
    if (const auto at = known_.find(key); at != known_.end()) {
      refusals_[at->second].times++;
      refusals_[at->second].untold =
          telling == Telling::all && told_before_.erase(at->first.second) == 0;
      return;
    }
    if (refusals_.size() >= distinct_refusals_max) return;
    known_[key] = refusals_.size();
    refusals_.push_back({std::string(would), std::string(object), verdict.rule, verdict.open_with,
                         seq, 1, telling == Telling::all && told_before_.erase(key.second) == 0});
    told = refusals_.back();
  }
  if (on_refusal) on_refusal(process, told);
}

std::vector<Refusal> Recorder::take_untold() {
  const std::lock_guard hold(lock_);
  std::vector<Refusal> out;
  for (Refusal& refusal : refusals_) {
    if (!refusal.untold) continue;
    refusal.untold = false;
    out.push_back(refusal);
  }
  return out;
}

void Recorder::told_before(const std::string& object) {
  const std::lock_guard hold(lock_);
  told_before_.insert(object);
}

std::vector<Refusal> Recorder::all_refusals() {
  const std::lock_guard hold(lock_);
  return {refusals_.begin(), refusals_.end()};
}

} // namespace nd7
