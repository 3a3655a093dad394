#include "agents/codex_trust.h"

#include <fmt/format.h>
#include <sodium.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json.h"

namespace nd7 {
namespace {

constexpr std::string_view mark = "  # nd7";

// Events whose time limit the client clamps.
bool is_last_words(std::string_view event) {
  return event == "SessionEnd" || event == "Interrupt";
}

std::string heading(std::string_view source) {
  return fmt::format("# nd7: trust in its hooks of {} (nd7 init codex; undone by --remove)\n",
                     json_quote(source));
}

std::string record(const CodexHook& hook) {
  return fmt::format("[hooks.state.{}]\ntrusted_hash = \"{}\"{}\n",
                     json_quote(codex_hook_key(hook)), codex_hook_hash(hook), mark);
}

Result<toml::table> parse(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return fail(fmt::format("{}:{}: {}", at.line, at.column, error.description()));
  }
}

// The line that begins at `at`, its end included.
std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('\n', at);
  return text.substr(at, end == std::string_view::npos ? end : end + 1 - at);
}

// `text` without the records that we made for this source and without their heading.
std::string without_ours(std::string_view text, std::string_view source) {
  const std::string begin_of_key = "[hooks.state." + json_quote(source);
  // Without the closing quote: the key goes on with ":event:0:0".
  const std::string_view header = std::string_view(begin_of_key).substr(0, begin_of_key.size() - 1);
  const std::string title = heading(source);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = line_at(text, at);
    const std::string_view next = line_at(text, std::min(at + line.size(), text.size()));
    if (line == title) {
      if (out.ends_with('\n')) out.pop_back(); // it came with the heading
      at += line.size();
    } else if (line.starts_with(header) && next.starts_with("trusted_hash = \"sha256:") &&
               next.ends_with(fmt::format("\"{}\n", mark))) {
      at += line.size() + next.size();
    } else {
      out += line;
      at += line.size();
    }
  }
  return out;
}

CodexTrust state_of(const toml::table& config, const CodexHook& hook) {
  const toml::node_view<const toml::node> entry = config["hooks"]["state"][codex_hook_key(hook)];
  if (entry["enabled"].value_or(true) == false) return CodexTrust::disabled;
  const auto hash = entry["trusted_hash"].value<std::string>();
  if (!hash) return CodexTrust::missing;
  return *hash == codex_hook_hash(hook) ? CodexTrust::trusted : CodexTrust::modified;
}

// Replaces the string that `node` was parsed from. False when it does not stand there plainly.
bool replace_hash(std::string& text, const toml::node& node, const std::string& hash) {
  const toml::source_position from = node.source().begin;
  std::size_t at = 0;
  for (toml::source_index line = 1; line < from.line; ++line) {
    at = text.find('\n', at);
    if (at == std::string::npos) return false;
    ++at;
  }
  const std::string old = json_quote(node.value_or(std::string()));
  // Columns count characters, not bytes: look for the value on its line.
  const std::string_view line = line_at(text, at);
  const std::size_t column = line.find(old);
  if (column == std::string_view::npos || line.find(old, column + 1) != std::string_view::npos) {
    return false;
  }
  text.replace(at + column, old.size(), json_quote(hash));
  return true;
}

} // namespace

std::string codex_event_key(std::string_view event) {
  std::string key;
  for (const char c : event) {
    if (c >= 'A' && c <= 'Z') {
      if (!key.empty()) key += '_';
      key += static_cast<char>(c - 'A' + 'a');
    } else {
      key += c;
    }
  }
  return key;
}

std::string codex_hook_key(const CodexHook& hook) {
  return fmt::format("{}:{}:{}:{}", hook.source, codex_event_key(hook.event), hook.group,
                     hook.handler);
}

std::string codex_hook_hash(const CodexHook& hook) {
  const int timeout =
      is_last_words(hook.event) ? std::clamp(hook.timeout_s, 1, 3) : std::max(hook.timeout_s, 1);
  const std::string handler = JsonWriter()
                                  .boolean("async", false)
                                  .text("command", hook.command)
                                  .number("timeout", timeout)
                                  .text("type", "command")
                                  .finish();
  const std::string canonical = JsonWriter()
                                    .text("event_name", codex_event_key(hook.event))
                                    .raw("hooks", "[" + handler + "]")
                                    .finish();
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(canonical.data()),
                     canonical.size());
  std::string hash = "sha256:";
  for (const unsigned char byte : digest) hash += fmt::format("{:02x}", byte);
  return hash;
}

Result<CodexTrust> codex_trust(std::string_view text, const CodexHook& hook) {
  const Result<toml::table> config = parse(text);
  if (!config) return std::unexpected(config.error());
  return state_of(*config, hook);
}

Result<std::string> edit_codex_trust(std::string_view text, bool exists, std::string_view source,
                                     const std::vector<CodexHook>& hooks) {
  const Result<toml::table> before = parse(text);
  if (!before) return std::unexpected(before.error());
  std::string edited = without_ours(text, source);
  Result<toml::table> config = parse(edited);
  if (!config) return fail("the records of nd7 in it were changed by hand: " + config.error().text);
  std::string added;
  for (const CodexHook& hook : hooks) {
    switch (state_of(*config, hook)) {
    case CodexTrust::trusted:
      break;
    case CodexTrust::missing:
      added += record(hook);
      break;
    case CodexTrust::modified: {
      const toml::node* node = config->at_path("hooks.state")
                                   .as_table()
                                   ->get(codex_hook_key(hook))
                                   ->as_table()
                                   ->get("trusted_hash");
      if (!replace_hash(edited, *node, codex_hook_hash(hook))) {
        return fail(fmt::format("the record of {} stands there in a form nd7 does not edit",
                                codex_hook_key(hook)));
      }
      break;
    }
    case CodexTrust::disabled:
      break; // the user's own switch; doctor tells
    }
  }
  if (!added.empty()) {
    // The line end ends a last line without one, and comes out with the heading.
    if (exists && !(edited.empty() && made_for_trust(text, source))) edited += '\n';
    edited += heading(source) + added;
  }
  const Result<toml::table> after = parse(edited);
  if (!after) return fail("nd7's records do not fit into it: " + after.error().text);
  // Nothing to change but the place of our records: leave the file alone.
  if (!hooks.empty()) {
    const std::size_t records = edited.size();
    const bool held = std::ranges::all_of(hooks, [&](const CodexHook& hook) {
      return state_of(*before, hook) == state_of(*after, hook);
    });
    if (held && records == text.size()) return std::string(text);
  }
  return edited;
}

bool made_for_trust(std::string_view text, std::string_view source) {
  return text.starts_with(heading(source));
}

Result<CodexSwitches> codex_switches(std::string_view text) {
  const Result<toml::table> config = parse(text);
  if (!config) return std::unexpected(config.error());
  return CodexSwitches{.hooks_off = !(*config)["features"]["hooks"].value_or(true),
                       .managed_only = (*config)["allow_managed_hooks_only"].value_or(false)};
}

} // namespace nd7
