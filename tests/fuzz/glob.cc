// A pattern and a path, parted by the first line end: matching must agree with itself.
#include "core/glob.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 2048) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  const nd7::Result<nd7::Glob> glob = nd7::Glob::parse(text.substr(0, line));
  if (!glob) return 0;
  const std::string path(text.substr(line + 1));
  const bool as_file = glob->matches(path, false), as_directory = glob->matches(path, true);
  if (as_file && !as_directory) std::abort(); // a directory matches whatever a file would
  if (path.empty() || path.ends_with('/')) return 0;
  // What a match covers includes all below it, and a reach is never wrongly denied.
  if (as_directory && !glob->matches(path + "/x", false)) std::abort();
  const std::size_t slash = path.rfind('/');
  if (as_directory && slash != std::string::npos && slash > 0 && path[slash - 1] != '/' &&
      !glob->reaches_below(path.substr(0, slash)))
    std::abort();
  return 0;
}
