#include "agents/settings_edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "agents/client.h"
#include "base/json.h"

namespace nd7 {
namespace {

// A value in the text: [begin, end).
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A member or element; `at` is where its key begins (for an element: where it begins).
struct Child {
  std::string key;
  std::size_t at = 0;
  Span value;
};

struct Container {
  Span span;
  std::vector<Child> children;
  const Child* find(std::string_view key) const {
    const auto found = std::ranges::find_if(children, [&](const Child& c) { return c.key == key; });
    return found == children.end() ? nullptr : &*found;
  }
};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

Span span_of(std::string_view text, std::string_view part) {
  const auto begin = static_cast<std::size_t>(part.data() - text.data());
  return {begin, begin + part.size()};
}

// Where the children begin, from where the values end: all between is white space and a comma.
void place_children(std::string_view text, Container& container) {
  std::size_t at = container.span.begin + 1;
  for (Child& child : container.children) {
    at = skip_space(text, at);
    if (at < text.size() && text[at] == ',') at = skip_space(text, at + 1);
    child.at = at;
    at = child.value.end;
  }
}

Result<Container> read_object(std::string_view text, Span span, std::string_view what) {
  const std::string_view part = text.substr(span.begin, span.end - span.begin);
  const Result<JsonObject> object = scan_json_object(part);
  if (!object) return fail(fmt::format("{} is not an object ({})", what, object.error().text));
  Container container{.span = span, .children = {}};
  for (const JsonObject::Member& member : object->members()) {
    container.children.push_back(
        {.key = member.key, .at = 0, .value = span_of(text, member.value)});
  }
  place_children(text, container);
  return container;
}

Result<Container> read_array(std::string_view text, Span span, std::string_view what) {
  const std::string_view part = text.substr(span.begin, span.end - span.begin);
  const auto elements = scan_json_array(part);
  if (!elements) return fail(fmt::format("{} is not a list ({})", what, elements.error().text));
  Container container{.span = span, .children = {}};
  for (const std::string_view element : *elements) {
    container.children.push_back({.key = {}, .at = 0, .value = span_of(text, element)});
  }
  place_children(text, container);
  return container;
}

Result<Container> read_root(std::string_view text) {
  const Result<JsonObject> whole = scan_json_object(text);
  if (!whole) return std::unexpected(whole.error());
  const std::size_t begin = skip_space(text, 0);
  return read_object(text, {begin, text.find_last_of('}') + 1}, "the file");
}

std::string_view newline_of(std::string_view text) {
  return text.find("\r\n") != std::string_view::npos ? "\r\n" : "\n";
}

// White space in front of the first child, if the child begins its line.
std::optional<std::string> indent_of(std::string_view text, const Container& container) {
  if (container.children.empty()) return std::nullopt;
  const std::size_t at = container.children.front().at;
  const std::size_t line = text.rfind('\n', at);
  if (line == std::string_view::npos || line < container.span.begin) return std::nullopt;
  return std::string(text.substr(line + 1, at - line - 1));
}

struct Layout {
  std::string newline;
  std::string unit; // of indentation
};

Layout layout_of(std::string_view text, const Container& root) {
  std::string unit = indent_of(text, root).value_or("");
  if (unit.empty()) unit = "  ";
  return {.newline = std::string(newline_of(text)), .unit = unit};
}

// Puts `item` behind the last child. `depth`: of the children of this container.
void append_child(std::string& text, const Container& container, std::string_view item,
                  const Layout& layout, unsigned depth) {
  std::string indent;
  for (unsigned i = 0; i < depth; ++i) indent += layout.unit;
  if (container.children.empty()) {
    // What stands in the empty container stays, behind an empty line.
    text.insert(container.span.begin + 1, fmt::format("{}{}{}{}{}", layout.newline, indent, item,
                                                      layout.newline, layout.newline));
    return;
  }
  const std::optional<std::string> own = indent_of(text, container);
  const std::string separator = own ? layout.newline + *own : " ";
  text.insert(container.children.back().value.end, fmt::format(",{}{}", separator, item));
}

// Takes child `index` out, with the comma that came with it. False when the container was made by
// us and is empty now: then it has to go itself.
bool take_child(std::string& text, const Container& container, std::size_t index) {
  const std::vector<Child>& children = container.children;
  const Child& child = children[index];
  if (children.size() > 1) {
    const bool last = index + 1 == children.size();
    const std::size_t from = last ? children[index - 1].value.end : child.at;
    const std::size_t to = last ? child.value.end : children[index + 1].at;
    text.erase(from, to - from);
    return true;
  }
  const std::string newline(newline_of(text));
  const std::string_view tail =
      std::string_view(text).substr(child.value.end, container.span.end - 1 - child.value.end);
  const std::string ours = newline + newline;
  if (!tail.starts_with(ours)) return false;
  const std::size_t from = container.span.begin + 1;
  text.erase(from, child.value.end + ours.size() - from);
  return true;
}

std::string member(std::string_view event, std::string_view group) {
  return fmt::format("{}: [{}]", json_quote(event), group);
}

// "hooks": {...} with all groups, as a member at depth 1.
std::string hooks_member(const std::vector<HookGroup>& groups, const Layout& layout) {
  std::string item = "\"hooks\": {";
  for (const HookGroup& group : groups) {
    item += fmt::format("{}{}{}{}{}", &group == &groups.front() ? "" : ",", layout.newline,
                        layout.unit, layout.unit, member(group.event, group.text));
  }
  return item + layout.newline + layout.unit + "}";
}

// Replaces, appends or leaves one group; `text` has a "hooks" object.
Result<> put_group(AgentKind kind, std::string& text, const HookGroup& group) {
  const auto root = read_root(text);
  if (!root) return std::unexpected(root.error());
  const auto hooks = read_object(text, root->find("hooks")->value, "\"hooks\"");
  if (!hooks) return std::unexpected(hooks.error());
  const Layout layout = layout_of(text, *root);
  const Child* list = hooks->find(group.event);
  if (list == nullptr) {
    append_child(text, *hooks, member(group.event, group.text), layout, 2);
    return {};
  }
  const auto groups = read_array(text, list->value, json_quote(group.event));
  if (!groups) return std::unexpected(groups.error());
  for (const Child& there : groups->children) {
    const std::string_view raw =
        std::string_view(text).substr(there.value.begin, there.value.end - there.value.begin);
    if (!is_nd7_group(kind, raw)) continue;
    if (raw != group.text) text.replace(there.value.begin, raw.size(), group.text);
    return {};
  }
  append_child(text, *groups, group.text, layout, 3);
  return {};
}

// Takes the first group of ours out. False: there is none.
enum class Taken { none, one, whole_file };

Result<Taken> take_group(AgentKind kind, std::string& text) {
  const auto root = read_root(text);
  if (!root) return std::unexpected(root.error());
  const Child* hooks_child = root->find("hooks");
  if (hooks_child == nullptr) return Taken::none;
  const auto hooks = read_object(text, hooks_child->value, "\"hooks\"");
  if (!hooks) return Taken::none; // not a shape of ours
  const auto index_in = [](const Container& container, const Child* child) {
    return static_cast<std::size_t>(child - container.children.data());
  };
  for (const Child& list : hooks->children) {
    const auto groups = read_array(text, list.value, json_quote(list.key));
    if (!groups) continue;
    for (const Child& there : groups->children) {
      const std::string_view raw =
          std::string_view(text).substr(there.value.begin, there.value.end - there.value.begin);
      if (!is_nd7_group(kind, raw)) continue;
      if (take_child(text, *groups, index_in(*groups, &there))) return Taken::one;
      if (take_child(text, *hooks, index_in(*hooks, &list))) return Taken::one;
      if (take_child(text, *root, index_in(*root, hooks_child))) return Taken::one;
      return Taken::whole_file;
    }
  }
  return Taken::none;
}

} // namespace

std::vector<HookGroup> nd7_hook_groups(AgentKind kind, std::string_view nd7) {
  std::vector<HookGroup> groups;
  for (const HookEvent& event : hook_events(kind)) {
    if (event.timeout_s == 0) continue;
    groups.push_back({.event = event.name,
                      .text = kind == AgentKind::claude ? claude_hook_group(nd7, event.timeout_s)
                                                        : codex_hook_group(nd7, event.timeout_s)});
  }
  return groups;
}

std::string nd7_program_of(AgentKind kind, std::string_view group) {
  const auto object = scan_json_object(group);
  if (!object) return {};
  const auto hooks = scan_json_array(object->find("hooks"));
  if (!hooks || hooks->size() != 1) return {};
  const auto hook = scan_json_object(hooks->front());
  if (!hook || hook->text("type") != "command") return {};
  std::string program = hook->text("command");
  if (kind == AgentKind::claude) {
    const auto args = scan_json_array(hook->find("args"));
    if (!args || args->size() != 2) return {};
    if (json_unquote((*args)[0]) != "hook" || json_unquote((*args)[1]) != "claude") return {};
  } else {
    constexpr std::string_view tail = " hook codex";
    if (!program.ends_with(tail)) return {};
    program.resize(program.size() - tail.size());
    if (program.size() > 2 && program.front() == '\'') {
      program = program.substr(1, program.size() - 2);
      for (const auto& [from, to] : {std::pair{R"('\'')", "'"}, std::pair{R"('\\')", "\\"}}) {
        for (std::size_t at = 0; (at = program.find(from, at)) != std::string::npos; ++at) {
          program.replace(at, 4, to);
        }
      }
    }
  }
  return program.substr(program.rfind('/') + 1) == "nd7" ? program : std::string();
}

bool is_nd7_group(AgentKind kind, std::string_view group) {
  return !nd7_program_of(kind, group).empty();
}

Result<std::vector<HookGroup>> find_hooks(AgentKind kind, std::string_view text) {
  const auto root = read_root(text);
  if (!root) return std::unexpected(root.error());
  std::vector<HookGroup> found;
  const Child* hooks_child = root->find("hooks");
  if (hooks_child == nullptr) return found;
  const auto hooks = read_object(text, hooks_child->value, "\"hooks\"");
  if (!hooks) return std::unexpected(hooks.error());
  for (const Child& list : hooks->children) {
    const auto groups = read_array(text, list.value, json_quote(list.key));
    if (!groups) continue;
    for (std::size_t i = 0; i < groups->children.size(); ++i) {
      const Span span = groups->children[i].value;
      const std::string_view raw = text.substr(span.begin, span.end - span.begin);
      if (is_nd7_group(kind, raw)) {
        found.push_back({.event = list.key, .text = std::string(raw), .index = i});
      }
    }
  }
  return found;
}

Result<std::string> add_hooks(AgentKind kind, std::optional<std::string_view> text,
                              const std::vector<HookGroup>& groups) {
  if (!text) {
    const Layout layout{.newline = "\n", .unit = "  "};
    return fmt::format("{{\n  {}\n}}\n", hooks_member(groups, layout));
  }
  std::string edited(*text);
  const auto root = read_root(edited);
  if (!root) return std::unexpected(root.error());
  if (root->find("hooks") == nullptr) {
    const Layout layout = layout_of(edited, *root);
    append_child(edited, *root, hooks_member(groups, layout), layout, 1);
  } else {
    for (const HookGroup& group : groups) {
      if (auto put = put_group(kind, edited, group); !put) return std::unexpected(put.error());
    }
  }
  if (auto check = scan_json_object(edited); !check) return std::unexpected(check.error());
  return edited;
}

Result<std::optional<std::string>> remove_hooks(AgentKind kind, std::string_view text) {
  std::string edited(text);
  for (;;) {
    const Result<Taken> taken = take_group(kind, edited);
    if (!taken) return std::unexpected(taken.error());
    if (*taken == Taken::whole_file) return std::nullopt;
    if (*taken == Taken::none) return edited;
  }
}

} // namespace nd7
