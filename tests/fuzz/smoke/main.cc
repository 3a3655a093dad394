// Stands in for libFuzzer: runs the target on every file of the directories given, and on a fixed
// number of mutations of each, always the same ones.  fuzz_NAME DIRECTORY [MUTATIONS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes) {
  // A copy of its own size, so that a sanitizer sees a read beyond the end.
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

std::string mutated(std::string bytes, std::mt19937& random) {
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (random() % 5) {
    case 0:
      bytes.insert(at, 1, static_cast<char>(random()));
      break;
    case 1:
      bytes.erase(at, 1 + random() % 8);
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.insert(at, bytes.substr(random() % (at + 1), random() % 64));
      break;
    default:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
  }
  return bytes;
}

} // namespace

int main(int argc, char** argv) {
  const int mutations = argc > 2 ? std::atoi(argv[2]) : 2000;
  std::size_t seeds = 0;
  std::mt19937 random(1);
  run({});
  if (argc > 1) {
    for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      run(bytes);
      for (int i = 0; i < mutations; ++i) run(mutated(bytes, random));
      ++seeds;
    }
  }
  if (seeds == 0) {
    std::fprintf(stderr, "no seeds in %s\n", argc > 1 ? argv[1] : "(no directory named)");
    return 1;
  }
  std::printf("%zu seeds, %d mutations each\n", seeds, mutations);
  return 0;
}
