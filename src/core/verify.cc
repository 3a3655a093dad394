#include "core/verify.h"

#include <blake3.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json.h"
#include "core/log_format.h"

namespace nd7 {
namespace {

using Digest = std::array<char, log_format::hash_hex_size>;

Digest digest_of(std::string_view first, std::string_view second = {}) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, first.data(), first.size());
  if (!second.empty()) blake3_hasher_update(&hasher, second.data(), second.size());
  std::array<std::uint8_t, BLAKE3_OUT_LEN> raw;
  blake3_hasher_finalize(&hasher, raw.data(), raw.size());
  Digest text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    text[2 * i] = "0123456789abcdef"[raw[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[raw[i] & 15];
  }
  return text;
}

std::string_view view(const Digest& digest) {
  return {digest.data(), digest.size()};
}

bool is_hash(std::string_view text) {
  return text.size() == log_format::hash_hex_size &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

template <class Number> bool read_number(std::string_view raw, Number& value) {
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  return error == std::errc() && end == raw.data() + raw.size();
}

std::string_view inside_quotes(std::string_view raw) {
  return raw.substr(1, raw.size() - 2);
}

// The envelope as raw spans of the line.
struct Parsed {
  std::int64_t v = 0;
  std::uint64_t seq = 0;
  std::int64_t ts = 0;
  std::string_view session_id, source, kind; // quotes included
  std::string_view prev, hash;               // without
  std::string_view body;
};

// What is wrong with the line, empty when it is an entry.
std::string parse_line(std::string_view line, Parsed& entry) {
  if (line.size() >= log_format::entry_size_bytes_max) return "the line is too long";
  auto object = scan_json_object(line, {.size_bytes_max = log_format::entry_size_bytes_max,
                                        .depth_max = log_format::depth_max});
  if (!object) return object.error().text;
  static constexpr std::array<std::string_view, 11> order = {
      "v", "session_id", "seq", "ts", "mono", "host", "source", "kind", "prev", "body", "hash"};
  std::array<std::string_view, order.size()> raw{};
  std::size_t next = 0;
  for (const JsonObject::Member& member : object->members()) {
    const auto known = std::find(order.begin(), order.end(), member.key);
    if (known == order.end()) continue; // readers keep unknown members
    const auto index = static_cast<std::size_t>(known - order.begin());
    if (index < next) return fmt::format("member '{}' is out of order", member.key);
    raw[index] = member.value;
    next = index + 1;
  }
  if (!read_number(raw[0], entry.v)) return "no format version";
  if (entry.v < log_format::version_min || entry.v > log_format::version) return {};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool optional = order[i] == "mono" && entry.v == 0;
    if (raw[i].empty() && !optional) return fmt::format("no member '{}'", order[i]);
  }
  std::uint64_t mono = 0;
  if (!read_number(raw[2], entry.seq)) return "seq is no sequence number";
  if (!read_number(raw[3], entry.ts)) return "ts is no time in nanoseconds";
  if (!raw[4].empty() && !read_number(raw[4], mono)) return "mono is no time in nanoseconds";
  for (const std::size_t i : {1u, 5u, 6u, 7u, 8u, 10u}) {
    if (raw[i].front() != '"') return fmt::format("{} is no text", order[i]);
  }
  if (raw[9].front() != '{') return "body is no object";
  entry.session_id = raw[1];
  entry.source = raw[6];
  entry.kind = raw[7];
  entry.prev = inside_quotes(raw[8]);
  entry.body = raw[9];
  entry.hash = inside_quotes(raw[10]);
  if (!is_hash(entry.prev)) return "prev is no hash";
  // Duplicate keys were refused, and what precedes the last brace is a member of the envelope.
  const bool last =
      line.ends_with(log_format::hash_suffix) && is_hash(entry.hash) &&
      line.size() > log_format::tail_size &&
      line.substr(line.size() - log_format::tail_size).starts_with(log_format::hash_prefix);
  return last ? "" : "hash is not the last member, or no hash";
}

struct HeadFile {
  std::uint64_t seq = 0;
  std::string hash;
};

std::optional<HeadFile> parse_head_file(std::string_view text) {
  HeadFile head;
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || !text.ends_with('\n')) return std::nullopt;
  if (!read_number(text.substr(0, space), head.seq)) return std::nullopt;
  head.hash = text.substr(space + 1, text.size() - space - 2);
  if (!is_hash(head.hash)) return std::nullopt;
  return head;
}

} // namespace

struct Verifier::State {
  State(VerifyOptions o, Reporter& r) : options(std::move(o)), reporter(r) {
    result.session_id = options.session_id;
    if (options.head && !options.head->empty()) {
      head = parse_head_file(*options.head);
      head_malformed = !head;
    }
  }

  void line(std::string_view text);
  void check(std::string_view text, const Parsed& entry);
  void checkpoint(const Parsed& entry);
  void check_head();
  void report(FaultKind kind, std::string detail);
  bool is_nd7(const Parsed& entry, std::string_view kind) const {
    return inside_quotes(entry.source) == log_format::source_nd7 &&
           inside_quotes(entry.kind) == kind;
  }

  VerifyOptions options;
  Reporter& reporter;
  VerifyResult result;
  std::string partial;          // bytes after the last newline
  std::string previous;         // hash the next entry must name in `prev`
  std::optional<Fault> missing; // waits until it is known whether the entry stands further down
  bool faulty = false;
  std::uint64_t lines = 0;
  std::uint64_t line_start = 0;
  std::optional<HeadFile> head;
  bool head_malformed = false;
  bool head_seen = false; // the entry the head names has passed
  bool head_matches = false;
};

void Verifier::State::report(FaultKind kind, std::string detail) {
  if (faulty) return;
  faulty = true;
  // Whatever it is by itself, behind the closing entry it is an addition.
  if (result.ended && kind != FaultKind::transplanted && kind != FaultKind::duplicate &&
      kind != FaultKind::cut && kind != FaultKind::head_disagrees) {
    detail = fmt::format("the session was closed by entry {}, and this follows it ({})",
                         result.entries - 1, detail);
    kind = FaultKind::after_end;
  }
  if (kind == FaultKind::unknown_version) result.checkable = false;
  reporter.fault({kind, result.entries, lines, line_start, std::move(detail)});
}

void Verifier::State::line(std::string_view text) {
  ++lines;
  Parsed entry;
  if (missing) { // only the question of where the entry went is still open
    if (parse_line(text, entry).empty() && entry.seq == missing->entry && !faulty) {
      faulty = true;
      missing->kind = FaultKind::reordered;
      missing->detail += fmt::format("; entry {} stands in line {}", missing->entry, lines);
      reporter.fault(*missing);
    }
    return;
  }
  const std::string wrong = parse_line(text, entry);
  if (!wrong.empty()) return report(FaultKind::malformed, wrong);
  if (entry.v < log_format::version_min || entry.v > log_format::version) {
    return report(
        FaultKind::unknown_version,
        fmt::format("format version {}; this nd7 reads up to {}", entry.v, log_format::version));
  }
  check(text, entry);
}

void Verifier::State::check(std::string_view text, const Parsed& entry) {
  const std::uint64_t expected = result.entries;
  const Digest own = digest_of(text.substr(0, text.size() - log_format::tail_size), "}");
  if (view(own) != entry.hash) {
    return report(FaultKind::changed,
                  fmt::format("its bytes hash to {}, it states {}", view(own), entry.hash));
  }
  if (result.session_id.empty()) result.session_id = json_unquote(entry.session_id);
  if (inside_quotes(entry.session_id) != result.session_id &&
      json_unquote(entry.session_id) != result.session_id) {
    return report(FaultKind::transplanted,
                  fmt::format("it belongs to session {}", inside_quotes(entry.session_id)));
  }
  if (entry.seq < expected) {
    return report(FaultKind::duplicate, fmt::format("number {} stood here before", entry.seq));
  }
  if (entry.seq > expected) {
    const std::uint64_t count = entry.seq - expected;
    Fault fault{FaultKind::missing, expected, lines, line_start,
                count == 1
                    ? fmt::format("entry {} is not there, entry {} follows", expected, entry.seq)
                    : fmt::format("entries {} to {} are not there, entry {} follows", expected,
                                  entry.seq - 1, entry.seq)};
    if (result.ended) return report(FaultKind::missing, fault.detail);
    missing = std::move(fault);
    return;
  }
  if (expected == 0) previous = std::string(view(digest_of(result.session_id)));
  if (entry.prev != previous) {
    return report(FaultKind::unlinked,
                  expected == 0
                      ? fmt::format("its prev is {}, not the hash of the session id", entry.prev)
                      : fmt::format("its prev is {}, entry {} has the hash {}", entry.prev,
                                    expected - 1, previous));
  }
  const bool is_checkpoint = is_nd7(entry, log_format::kind_checkpoint);
  const bool is_gap = is_nd7(entry, log_format::kind_gap);
  if (result.ended && !is_checkpoint && !is_gap)
    return report(FaultKind::after_end, "sound by itself");
  if (is_checkpoint) {
    checkpoint(entry);
    if (faulty) return;
  }
  if (is_gap) ++result.gaps;
  if (is_nd7(entry, log_format::kind_end)) result.ended = true;
  if (head && head->seq == entry.seq) {
    head_seen = true;
    head_matches = head->hash == entry.hash;
  }
  previous = entry.hash;
  ++result.entries;
  reporter.entry({entry.seq, entry.ts, entry.source, entry.kind, entry.body});
}

void Verifier::State::checkpoint(const Parsed& entry) {
  auto body = scan_json_object(entry.body);
  std::uint64_t count = 0;
  if (!body || !read_number(body->find("count"), count)) {
    return report(FaultKind::bad_checkpoint, "it states no count");
  }
  const std::string stated = body->text("head");
  if (count != entry.seq || stated != previous) {
    return report(FaultKind::bad_checkpoint,
                  fmt::format("it signs {} entries with head {}, the chain has {} with {}", count,
                              stated, entry.seq, previous));
  }
  const std::string message = fmt::format("{}\n{}\n{}\n{}\n{}\n", log_format::checkpoint_label,
                                          result.session_id, count, stated, entry.ts);
  const std::string key_id = body->text("key");
  const SignatureAnswer answer =
      options.check_signature ? options.check_signature(key_id, message, body->text("signature"))
                              : SignatureAnswer::unknown_key;
  reporter.checkpoint(entry.seq, answer);
  switch (answer) {
  case SignatureAnswer::good:
    result.attested = {count, key_id, entry.ts};
    break;
  case SignatureAnswer::unknown_key:
    ++result.unknown_checkpoints;
    break;
  case SignatureAnswer::bad:
    report(FaultKind::bad_signature, fmt::format("key {} did not sign this", key_id));
  }
}

void Verifier::State::check_head() {
  if (head_malformed) {
    result.head = HeadState::wrong;
    return report(FaultKind::head_disagrees, "the head file holds no head");
  }
  if (!head) return;
  if (head->seq >= result.entries) {
    result.head = HeadState::wrong;
    const std::string ends =
        result.entries == 0 ? "holds none" : fmt::format("ends with {}", result.entries - 1);
    return report(FaultKind::cut, fmt::format("the head names entry {}, the log {}: {} cut off",
                                              head->seq, ends, head->seq - result.entries + 1));
  }
  if (!head_seen || !head_matches) {
    result.head = HeadState::wrong;
    return report(FaultKind::head_disagrees,
                  fmt::format("the head gives entry {} another hash than it has", head->seq));
  }
  const std::uint64_t behind = result.entries - 1 - head->seq;
  result.head = behind == 0   ? HeadState::agrees
                : behind == 1 ? HeadState::one_behind
                              : HeadState::behind;
  if (behind > 1 && !options.live) {
    result.head = HeadState::wrong;
    report(FaultKind::head_disagrees,
           fmt::format("the head stops at entry {}, {} stand after it", head->seq, behind));
  }
}

Verifier::Verifier(VerifyOptions options, Reporter& reporter)
    : state_(std::make_unique<State>(std::move(options), reporter)) {}

Verifier::~Verifier() = default;

void Verifier::feed(std::string_view chunk) {
  State& s = *state_;
  while (!chunk.empty() && !s.faulty) {
    const std::size_t newline = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, newline);
    // Of a line that is too long only so much is kept that it is found to be so.
    const std::size_t room = log_format::entry_size_bytes_max - s.partial.size();
    if (newline == std::string_view::npos) {
      s.partial.append(piece.substr(0, room));
      s.result.torn_bytes += piece.size();
      break;
    }
    const std::uint64_t length = s.result.torn_bytes + piece.size() + 1;
    if (s.partial.empty()) {
      s.line(piece);
    } else {
      s.partial.append(piece.substr(0, room));
      s.line(s.partial);
      s.partial.clear();
    }
    s.result.torn_bytes = 0;
    if (!s.faulty && !s.missing) s.line_start += length;
    s.result.size_bytes += length;
    chunk.remove_prefix(newline + 1);
  }
}

VerifyResult Verifier::finish() {
  State& s = *state_;
  s.result.size_bytes += s.result.torn_bytes;
  if (s.missing && !s.faulty) {
    s.faulty = true;
    s.reporter.fault(*s.missing);
  }
  if (!s.faulty) {
    s.lines += 1; // a fault of the head stands where the next line would be
    s.check_head();
  }
  s.result.consistent = !s.faulty;
  s.result.last_hash = s.previous;
  return s.result;
}

std::uint64_t VerifyResult::unattested_tail() const {
  if (attested.key_id.empty()) return entries;
  return entries - attested.entries - 1;
}

const char* fault_name(FaultKind kind) {
  switch (kind) {
  case FaultKind::malformed:
    return "malformed";
  case FaultKind::unknown_version:
    return "unknown_version";
  case FaultKind::changed:
    return "changed";
  case FaultKind::transplanted:
    return "transplanted";
  case FaultKind::missing:
    return "missing";
  case FaultKind::reordered:
    return "reordered";
  case FaultKind::duplicate:
    return "duplicate";
  case FaultKind::unlinked:
    return "unlinked";
  case FaultKind::after_end:
    return "after_end";
  case FaultKind::cut:
    return "cut";
  case FaultKind::head_disagrees:
    return "head_disagrees";
  case FaultKind::bad_checkpoint:
    return "bad_checkpoint";
  case FaultKind::bad_signature:
    return "bad_signature";
  }
  return "unknown";
}

VerifyResult verify_log(std::string_view bytes, VerifyOptions options, Reporter& reporter) {
  Verifier verifier(std::move(options), reporter);
  verifier.feed(bytes);
  return verifier.finish();
}

} // namespace nd7
