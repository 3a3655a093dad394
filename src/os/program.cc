#include "os/program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.h"

namespace nd7::os {
namespace {

constexpr int steps_max = 16;

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// The path with its parent resolved, itself not: the name of a link.
std::string link_name(const std::string& path) {
  const std::string directory = real_path(parent(path));
  const std::string leaf = path.substr(path.rfind('/') + 1);
  return directory.empty() ? path : (directory == "/" ? "" : directory) + "/" + leaf;
}

// "#!/usr/bin/env node" -> "/usr/bin/env"; the ELF PT_INTERP; empty for neither.
std::string interpreter(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  char head[4096];
  const ssize_t n = pread(fd.get(), head, sizeof head, 0);
  if (n >= 2 && head[0] == '#' && head[1] == '!') {
    const std::string_view line(head + 2, static_cast<std::size_t>(n) - 2);
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string_view::npos) return {};
    return std::string(line.substr(at, line.find_first_of(" \t\n\r", at) - at));
  }
  Elf64_Ehdr header{};
  if (n < static_cast<ssize_t>(sizeof header)) return {};
  std::memcpy(&header, head, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  for (unsigned i = 0; i < header.e_phnum && i < 64; ++i) {
    Elf64_Phdr part{};
    if (pread(fd.get(), &part, sizeof part, static_cast<off_t>(header.e_phoff + i * sizeof part)) !=
        sizeof part)
      return {};
    if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > PATH_MAX) continue;
    std::string out(part.p_filesz, 0);
    if (pread(fd.get(), out.data(), out.size(), static_cast<off_t>(part.p_offset)) !=
        static_cast<ssize_t>(out.size()))
      return {};
    return out.c_str();
  }
  return {};
}

// ".../node_modules/@scope/name" or ".../node_modules/name" around a file; empty if none.
std::string npm_package(const std::string& file) {
  constexpr std::string_view mark = "/node_modules/";
  const std::size_t at = file.rfind(mark);
  if (at == std::string::npos) return {};
  std::size_t end = file.find('/', at + mark.size());
  if (file[at + mark.size()] == '@' && end != std::string::npos) end = file.find('/', end + 1);
  if (end == std::string::npos || file.compare(at + mark.size(), 5, ".bin/") == 0) return {};
  return file.substr(0, end);
}

} // namespace

std::string real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return {};
  std::string out(real);
  std::free(real);
  return out;
}

Result<std::string> find_program(std::string_view name, std::string_view path,
                                 const std::string& cwd) {
  const auto absolute = [&](std::string_view p) {
    return p.starts_with('/') ? std::string(p) : cwd + "/" + std::string(p);
  };
  const auto check = [](const std::string& file) {
    struct stat st {};
    if (stat(file.c_str(), &st) != 0) return errno;
    if (S_ISDIR(st.st_mode)) return EACCES;
    return access(file.c_str(), X_OK) == 0 ? 0 : errno;
  };
  if (name.empty()) return os_error("PROGRAM", ENOENT);
  if (name.contains('/')) {
    std::string file = absolute(name);
    if (const int error = check(file)) return os_error(std::string(name), error);
    return file;
  }
  int error = ENOENT;
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string_view directory = path.substr(at, end - at);
    std::string file = absolute(directory.empty() ? "." : directory) + "/" + std::string(name);
    const int found = check(file);
    if (found == 0) return file;
    if (found == EACCES) error = EACCES;
    at = end + 1;
  }
  return os_error(std::string(name), error);
}

Result<ProgramChain> program_chain(const std::string& found) {
  ProgramChain out;
  out.found = found;
  const auto add = [&](std::string file) {
    if (std::find(out.files.begin(), out.files.end(), file) == out.files.end())
      out.files.push_back(std::move(file));
  };
  std::string now = found;
  for (int step = 0; step < steps_max && !now.empty(); ++step) {
    if (now.starts_with("/snap/") || real_path(now).starts_with("/snap/"))
      return fail(fmt::format("{} is a snap, and snaps need set-uid programs, which do not work in "
                              "a session",
                              found),
                  "install it in another way, for instance with npm");
    // The links on the way, one by one.
    std::string link = now;
    for (int i = 0; i < steps_max; ++i) {
      add(link_name(link));
      char target[PATH_MAX];
      const ssize_t n = readlink(link.c_str(), target, sizeof target);
      if (n <= 0) break;
      const std::string text(target, static_cast<std::size_t>(n));
      link = text.starts_with('/') ? text : parent(link) + "/" + text;
    }
    const std::string file = real_path(now);
    if (file.empty()) break;
    add(file);
    if (const std::string package = npm_package(file); !package.empty())
      if (std::find(out.packages.begin(), out.packages.end(), package) == out.packages.end())
        out.packages.push_back(package);
    now = interpreter(file);
    if (!now.empty() && now[0] != '/') now.clear();
  }
  return out;
}

} // namespace nd7::os
