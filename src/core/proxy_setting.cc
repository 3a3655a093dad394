#include "core/proxy_setting.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace nd7 {
namespace {

constexpr std::string_view variables[] = {"HTTPS_PROXY", "https_proxy", "ALL_PROXY",
                                          "all_proxy",   "HTTP_PROXY",  "http_proxy"};

struct Place {
  std::string host; // lower case, without brackets
  std::uint16_t port = 0;
};

// "http://user:secret@host:3128/", "socks5h://host", "host:3128". What curl takes for granted where
// the port is missing: 443 for https, else 1080. Nothing for what is no host.
std::optional<Place> parse_proxy(std::string_view text) {
  Place out;
  out.port = text.starts_with("https://") ? 443 : 1080;
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos)
    text.remove_prefix(scheme + 3);
  text = text.substr(0, text.find_first_of("/?#"));
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos)
    text.remove_prefix(at + 1);
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (port.starts_with(':')) {
    port.remove_prefix(1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  }
  for (const char c : host)
    out.host += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  while (out.host.ends_with('.')) out.host.pop_back();
  if (out.host.empty() || out.port == 0) return std::nullopt;
  return out;
}

// The option that opens it, or "" when nothing is needed.
std::string needed(const Place& place, const Policy& policy) {
  const bool localhost = place.host == "localhost" || place.host.ends_with(".localhost");
  ConnectAction action;
  const auto address = parse_address(localhost ? "127.0.0.1" : place.host, place.port);
  if (address) {
    action.address = unmapped(*address);
  } else {
    // Taken for a public host; a private one is told by the refusal itself.
    action.address = *parse_address("1.1.1.1", place.port);
    action.name = place.host;
  }
  const Verdict verdict = decide_connect(policy, action);
  constexpr std::string_view command = "nd7 allow ";
  if (verdict.allowed() || !verdict.open_with.starts_with(command)) return {};
  return verdict.open_with.substr(command.size());
}

} // namespace

std::vector<std::string> proxy_notes(const std::vector<std::string>& environment,
                                     const Policy& policy) {
  std::vector<std::string> out;
  std::vector<std::string> options;
  for (const std::string_view name : variables)
    for (const std::string& entry : environment) {
      if (!entry.starts_with(name) || entry.size() <= name.size() || entry[name.size()] != '=')
        continue;
      const auto place = parse_proxy(std::string_view(entry).substr(name.size() + 1));
      const std::string option = place ? needed(*place, policy) : std::string();
      if (option.empty() || std::find(options.begin(), options.end(), option) != options.end())
        continue;
      options.push_back(option);
      out.push_back(fmt::format("{} leads to {}:{}, which this session may not reach; to let it: "
                                "nd7 run {} ...",
                                name, place->host, place->port, option));
    }
  return out;
}

} // namespace nd7
