#include "core/chain.h"

#include <blake3.h>
#include <fmt/format.h>

#include <charconv>

#include "base/bytes.h"
#include "base/json.h"
#include "core/log_format.h"

namespace nd7 {

std::string blake3_hex(std::string_view bytes) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  char digest[BLAKE3_OUT_LEN];
  blake3_hasher_finalize(&hasher, reinterpret_cast<std::uint8_t*>(digest), sizeof digest);
  return hex({digest, sizeof digest});
}

void prepare_hashing() {
  blake3_hex({});
}

std::string first_link(std::string_view session_id) {
  return blake3_hex(session_id);
}

SealedEntry seal_entry(const Envelope& e) {
  SealedEntry sealed;
  std::string& line = sealed.line;
  line.reserve(e.body.size() + 512);
  fmt::format_to(std::back_inserter(line),
                 R"({{"v":{},"session_id":{},"seq":{},"ts":{},"mono":{},"host":{},"source":{},)"
                 R"("kind":{},"prev":"{}","body":)",
                 log_format::version, json_quote(e.session_id), e.seq, e.ts, e.mono,
                 json_quote(e.host), json_quote(e.source), json_quote(e.kind), e.prev);
  line += e.body;
  line += '}';
  sealed.hash = blake3_hex(line);
  line.pop_back();
  line += log_format::hash_prefix;
  line += sealed.hash;
  line += log_format::hash_suffix;
  line += '\n';
  return sealed;
}

std::string head_text(const Head& head) {
  return fmt::format("{} {}\n", head.seq, head.hash);
}

std::optional<Head> parse_head(std::string_view text) {
  Head head;
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.empty() || text.back() != '\n') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + space, head.seq);
  if (error != std::errc() || end != text.data() + space) return std::nullopt;
  if (space > 1 && text.front() == '0') return std::nullopt;
  head.hash = text.substr(space + 1, text.size() - space - 2);
  if (!is_hex(head.hash, log_format::hash_hex_size)) return std::nullopt;
  return head;
}

std::string checkpoint_message(std::string_view session_id, std::uint64_t count,
                               std::string_view head_hash, std::int64_t ts) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", log_format::checkpoint_label, session_id, count,
                     head_hash, ts);
}

} // namespace nd7
