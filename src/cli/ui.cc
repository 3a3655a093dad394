#include "cli/ui.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"

namespace nd7 {
namespace {

constexpr std::uint64_t progress_after_ns = 1'000'000'000;
constexpr std::uint64_t progress_every_ns = 100'000'000;

int output_error = 0;

} // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && output_error == 0) {
    output_error = errno;
  }
}

int finish_output(int status) {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  if (output_error == 0 || output_error == EPIPE) return status;
  say(os_error("write to stdout", output_error).error().text);
  return status == 0 ? 2 : status;
}

bool output_gone() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  return output_error != 0;
}

void talk(std::string_view line) {
  fmt::print(stderr, "{}\n", line);
}

void say(std::string_view sentence) {
  talk(fmt::format("nd7: {}", sentence));
}

int say_error(const Error& error) {
  say(error.text);
  if (!error.hint.empty()) say(fmt::format("try: {}", error.hint));
  return 2;
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

bool use_color(int fd) {
  const char* no = ::getenv("NO_COLOR");
  if (no != nullptr && *no != '\0') return false;
  const char* term = ::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return is_terminal(fd);
}

std::size_t terminal_columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

bool confirm(std::string_view question) {
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDERR_FILENO)) return false;
  fmt::print(stderr, "nd7: {} [y/N] ", question);
  const int first = std::getchar();
  for (int c = first; c != '\n' && c != EOF;) c = std::getchar();
  return first == 'y' || first == 'Y';
}

Progress::Progress(std::string what)
    : what_(std::move(what)), started_ns_(system_clock().boot_ns()),
      enabled_(is_terminal(STDERR_FILENO)) {}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (!enabled_) return;
  const std::uint64_t now = system_clock().boot_ns();
  if (now - started_ns_ < progress_after_ns || now - shown_ns_ < progress_every_ns) return;
  shown_ns_ = now;
  const std::uint64_t percent = total == 0 ? 0 : done * 100 / total;
  fmt::print(stderr, "\rnd7: {} {}%\x1b[K", what_, percent);
  std::fflush(stderr);
}

Progress::~Progress() {
  if (shown_ns_ == 0) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

} // namespace nd7
