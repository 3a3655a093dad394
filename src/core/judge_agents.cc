#include "core/judge_agents.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/json.h"

namespace nd7 {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// A name and not a sentence: these words reach the model's instructions (language) or the terminal.
bool is_name(std::string_view text) {
  constexpr std::size_t length_max = 80;
  return text.size() <= length_max && std::all_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                  (byte >= 'A' && byte <= 'Z') ||
                  std::string_view("-_.:/[]()+, @").find(c) != std::string_view::npos;
         });
}

// ---- Codex

Result<toml::table> parse_toml(std::string_view text) {
  if (text.size() > agent_settings_bytes_max) return fail("too long");
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return fail(fmt::format("line {}: {}", at.line, printable_key(error.description())));
  }
}

Judgement refuse_codex(std::string_view key, std::string_view what) {
  return {false, fmt::format("codex config {} {}", printable_key(key), what)};
}

constexpr std::string_view decides = "decides what later sessions run or may do";

bool equal(const toml::node* a, const toml::node* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->type() != b->type()) return false;
  if (const toml::table* table = a->as_table()) return *table == *b->as_table();
  if (const toml::array* array = a->as_array()) return *array == *b->as_array();
  return a->visit([b]<class Node>(const Node& node) {
    if constexpr (toml::is_value<Node>)
      return node == *b->as<typename Node::value_type>();
    else
      return false;
  });
}

// Every key of both, once.
std::vector<std::string> keys_of(const toml::table* a, const toml::table* b) {
  std::vector<std::string> keys;
  for (const toml::table* table : {a, b})
    if (table != nullptr)
      for (const auto& [key, node] : *table) keys.emplace_back(key.str());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

const toml::node* at(const toml::table* table, std::string_view key) {
  return table == nullptr ? nullptr : table->get(key);
}
const toml::table* table_at(const toml::table* table, std::string_view key) {
  const toml::node* node = at(table, key);
  return node == nullptr ? nullptr : node->as_table();
}

template <class Value> bool holds_only(const toml::node& node) {
  const toml::table* table = node.as_table();
  return table != nullptr && std::all_of(table->begin(), table->end(), [](const auto& item) {
           return item.second.template is<Value>();
         });
}

// Codex records trust for the repository's root, which may lie above where the session was started.
bool is_of_project(std::string_view path, std::string_view project) {
  if (project.empty()) return true;
  const auto below = [](std::string_view inner, std::string_view outer) {
    return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
  };
  const std::string ended = fmt::format("{}/", path);
  if (!path.starts_with('/') || path.ends_with('/') || ended.find("/../") != std::string::npos ||
      ended.find("/./") != std::string::npos || ended.find("//") != std::string::npos)
    return false;
  return below(path, project) || below(project, path);
}

// projects.PATH: trust_level alone, for this project; who said "untrusted" is not overruled.
std::optional<Judgement> judge_projects(const toml::table* before, const toml::table* after,
                                        std::string_view project) {
  for (const std::string& path : keys_of(before, after)) {
    const toml::table* was = table_at(before, path);
    const toml::node* node = at(after, path);
    if (node == nullptr || equal(at(before, path), node)) continue; // asking again is safe
    const std::string name = fmt::format("projects.\"{}\"", path);
    const toml::table* is = node->as_table();
    if (is == nullptr || (at(before, path) != nullptr && was == nullptr))
      return refuse_codex(name, "is no table of a project");
    for (const std::string& key : keys_of(was, is)) {
      const toml::node* old_value = at(was, key);
      const toml::node* value = at(is, key);
      if (equal(old_value, value)) continue;
      if (key != "trust_level") return refuse_codex(name + "." + key, decides);
      const auto level = value == nullptr ? std::nullopt : value->value_exact<std::string>();
      if (value != nullptr && level != "trusted" && level != "untrusted")
        return refuse_codex(name + "." + key, "has an unknown value");
      if (level != "trusted") continue;
      if (old_value != nullptr) return refuse_codex(name + "." + key, "was decided by a person");
      if (!is_of_project(path, project))
        return refuse_codex(name + "." + key, "is of another project");
    }
  }
  return {};
}

// notice: which migrations of the model were shown. Not the warnings about access that can be
// hidden.
std::optional<Judgement> judge_notice(const toml::table* before, const toml::table* after) {
  for (const std::string& key : keys_of(before, after)) {
    const toml::node* is = at(after, key);
    if (equal(at(before, key), is) || is == nullptr) continue;
    if (key == "model_migrations" && holds_only<std::string>(*is)) continue;
    if (key.starts_with("hide_") && key.ends_with("_migration_prompt") && is->is_boolean())
      continue;
    return refuse_codex("notice." + key, "is not a notice of a migration");
  }
  return {};
}

bool is_name_or_gone(const toml::node* node) {
  return node == nullptr || is_name(node->value_exact<std::string>().value_or("\n"));
}

// What /model and the question after a new model's coming write.
bool is_of_model(std::string_view key) {
  return key == "model" || key == "model_reasoning_effort";
}

// tui: what the client notes at its first start, and /theme.
std::optional<Judgement> judge_tui(const toml::table* before, const toml::table* after) {
  for (const std::string& key : keys_of(before, after)) {
    const toml::node* is = at(after, key);
    if (equal(at(before, key), is)) continue;
    if (key == "screen_reader_detection_done" && (is == nullptr || is->is_boolean())) continue;
    if (key == "theme" && is_name_or_gone(is)) continue;
    if (key == "model_availability_nux" && (is == nullptr || holds_only<std::int64_t>(*is)))
      continue;
    return refuse_codex("tui." + key, decides);
  }
  return {};
}

// ---- Claude Code

Judgement refuse_claude(std::string_view key, std::string_view what) {
  return {false, fmt::format("claude settings {} {}", printable_key(key), what)};
}

enum class Kind { boolean, number, word, text };

// What the client writes of itself (/model, /theme, /config, /effort, ...): how it looks and which
// model answers. Not here, though the same screen sets them: outputStyle and agent (instructions),
// permissions, fileCheckpointingEnabled (a protection), remote control, updates, autoMode.
struct Setting {
  std::string_view key;
  Kind kind;
};
constexpr Setting settings[] = {
    {"$schema", Kind::text},
    {"advisorModel", Kind::word},
    {"alwaysThinkingEnabled", Kind::boolean},
    {"autoCompactEnabled", Kind::boolean},
    {"autoCompactWindow", Kind::number},
    {"autoContinueAtUsageLimit", Kind::boolean},
    {"autoScrollEnabled", Kind::boolean},
    {"awaySummaryEnabled", Kind::boolean},
    {"copyFullResponse", Kind::boolean},
    {"copyOnSelect", Kind::boolean},
    {"editorMode", Kind::word},
    {"effortLevel", Kind::word},
    {"emojiCompletionEnabled", Kind::boolean},
    {"fastMode", Kind::boolean},
    {"fastModePerSessionOptIn", Kind::boolean},
    {"feedbackDrafts", Kind::word},
    {"feedbackSurveyRate", Kind::number},
    {"idleCompaction", Kind::boolean},
    {"language", Kind::word},
    {"maxProseWidth", Kind::number},
    {"model", Kind::word},
    {"precomputeCompactionEnabled", Kind::boolean},
    {"preferredNotifChannel", Kind::word},
    {"prefersReducedMotion", Kind::boolean},
    {"promptSuggestionEnabled", Kind::boolean},
    {"respectGitignore", Kind::boolean},
    {"showClearContextOnPlanAccept", Kind::boolean},
    {"showMessageTimestamps", Kind::boolean},
    {"showThinkingSummaries", Kind::boolean},
    {"showTurnDuration", Kind::boolean},
    {"spinnerTipsEnabled", Kind::boolean},
    {"switchModelsOnFlag", Kind::boolean},
    {"syntaxHighlightingDisabled", Kind::boolean},
    {"terminalProgressBarEnabled", Kind::boolean},
    {"terminalTitleFromRename", Kind::boolean},
    {"theme", Kind::word},
    {"timeFormat", Kind::word},
    {"timeZone", Kind::word},
    {"todoFeatureEnabled", Kind::boolean},
    {"tui", Kind::word},
    {"verbose", Kind::boolean},
    {"viewMode", Kind::word},
    {"voiceEnabled", Kind::boolean},
    {"wheelScrollAccelerationEnabled", Kind::boolean},
    {"workflowKeywordTriggerEnabled", Kind::boolean},
    {"workflowSizeGuideline", Kind::word},
};
static_assert(std::is_sorted(std::begin(settings), std::end(settings),
                             [](const Setting& a, const Setting& b) { return a.key < b.key; }));

bool allows(Kind kind, std::string_view raw) {
  switch (kind) {
  case Kind::boolean:
    return raw == "true" || raw == "false";
  case Kind::number:
    return raw.front() == '-' || (raw.front() >= '0' && raw.front() <= '9');
  case Kind::word:
    return raw == "null" || (raw.front() == '"' && is_name(json_unquote(raw)));
  case Kind::text:
    return raw.front() == '"';
  }
  return false;
}

// The same JSON in one spelling: no white space, strings quoted anew. `raw` is valid.
std::string squeezed(std::string_view raw) {
  std::string out;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '"') {
      std::size_t end = i + 1;
      while (raw[end] != '"') end += raw[end] == '\\' ? 2U : 1U;
      out += json_quote(json_unquote(raw.substr(i, end + 1 - i)));
      i = end;
    } else if (!is_blank(raw.substr(i, 1))) {
      out += raw[i];
    }
  }
  return out;
}

// modelSettings: {"MODEL": {"effortLevel": "high"}}, where /effort and /autocompact write. The rest
// of it, such as a cap on the effort, stays.
std::optional<Judgement> judge_models(std::string_view before, std::string_view after) {
  const auto object = [](std::string_view raw) {
    return raw.data() == nullptr ? Result<JsonObject>(JsonObject{}) : scan_json_object(raw);
  };
  const bool both = before.data() != nullptr && after.data() != nullptr;
  if (both && squeezed(before) == squeezed(after)) return {};
  const Result<JsonObject> was = object(before), is = object(after);
  if (!was || !is) return refuse_claude("modelSettings", "is no object");
  std::vector<std::string> models;
  for (const JsonObject* side : {&*was, &*is})
    for (const JsonObject::Member& model : side->members()) models.push_back(model.key);
  for (const std::string& model : models) {
    const Result<JsonObject> old_one = object(was->find(model)), one = object(is->find(model));
    const std::string name = "modelSettings." + model;
    if (!is_name(model) || !old_one || !one)
      return refuse_claude(name, "is no settings of a model");
    for (const JsonObject* side : {&*old_one, &*one}) {
      for (const JsonObject::Member& member : side->members()) {
        const std::string_view old_value = old_one->find(member.key), value = one->find(member.key);
        const bool own = member.key == "effortLevel" || member.key == "autoCompactWindow";
        const bool harmless = own && (value.data() == nullptr || allows(Kind::word, value) ||
                                      allows(Kind::number, value));
        const bool same = old_value.data() != nullptr && value.data() != nullptr &&
                          squeezed(old_value) == squeezed(value);
        if (!harmless && !same) return refuse_claude(name + "." + member.key, decides);
      }
    }
  }
  return {};
}

} // namespace

Judgement judge_codex_config(std::string_view old_text, std::string_view new_text,
                             std::string_view project) {
  const Result<toml::table> before = parse_toml(old_text);
  if (!before)
    return {false, "codex config cannot be judged: the present file, " + before.error().text};
  const Result<toml::table> after = parse_toml(new_text);
  if (!after) return {false, "codex config cannot be judged: " + after.error().text};
  for (const std::string& key : keys_of(&*before, &*after)) {
    const toml::node* was = before->get(key);
    const toml::node* is = after->get(key);
    if (equal(was, is)) continue;
    const bool tables = (was == nullptr || was->is_table()) && (is == nullptr || is->is_table());
    std::optional<Judgement> refused;
    if (key == "projects" && tables) {
      refused = judge_projects(table_at(&*before, key), table_at(&*after, key), project);
    } else if (key == "notice" && tables) {
      refused = judge_notice(table_at(&*before, key), table_at(&*after, key));
    } else if (key == "tui" && tables) {
      refused = judge_tui(table_at(&*before, key), table_at(&*after, key));
    } else if (is_of_model(key) && is_name_or_gone(is)) {
      continue;
    } else {
      refused = refuse_codex(key, decides);
    }
    if (refused) return *refused;
  }
  return {true, {}};
}

Judgement judge_claude_settings(std::string_view old_text, std::string_view new_text) {
  const JsonLimits limits{.size_bytes_max = agent_settings_bytes_max, .depth_max = 64};
  const Result<JsonObject> before = scan_json_object(is_blank(old_text) ? "{}" : old_text, limits);
  if (!before)
    return {false, "claude settings cannot be judged: the present file, " +
                       printable_key(before.error().text)};
  const Result<JsonObject> after = scan_json_object(is_blank(new_text) ? "{}" : new_text, limits);
  if (!after)
    return {false, "claude settings cannot be judged: " + printable_key(after.error().text)};
  const auto setting_of = [](std::string_view key) -> const Setting* {
    const auto* found = std::find_if(std::begin(settings), std::end(settings),
                                     [key](const Setting& setting) { return setting.key == key; });
    return found == std::end(settings) ? nullptr : found;
  };
  constexpr std::string_view models = "modelSettings";
  if (const auto refused = judge_models(before->find(models), after->find(models))) return *refused;
  for (const JsonObject::Member& member : after->members()) {
    if (member.key == models) continue;
    const std::string_view old_value = before->find(member.key);
    if (old_value.data() != nullptr && squeezed(old_value) == squeezed(member.value)) continue;
    const Setting* setting = setting_of(member.key);
    if (setting == nullptr) return refuse_claude(member.key, decides);
    if (!allows(setting->kind, member.value))
      return refuse_claude(member.key, "has a value that is not plain");
  }
  for (const JsonObject::Member& member : before->members())
    if (!after->has(member.key) && setting_of(member.key) == nullptr && member.key != models)
      return refuse_claude(member.key, decides);
  return {true, {}};
}

} // namespace nd7
