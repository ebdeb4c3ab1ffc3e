/// @file
/// Runs the corpora through the targets without a fuzzer: `fuzz_inputs TARGET FILE-OR-FOLDER...`.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

// FUZZ_TARGETS is T(yaml) T(task) ...: CMakeLists.txt gives each target's function its name.
#define T(name) extern "C" int fuzz_##name(const std::uint8_t*, std::size_t);
FUZZ_TARGETS
#undef T

/// Takes the place of libFuzzer's function, and changes nothing.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t size, std::size_t) {
  return size;
}

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

Target target_of(std::string_view name) {
#define T(each) \
  if (name == #each) return fuzz_##each;
  FUZZ_TARGETS
#undef T
  return nullptr;
}

void run(Target target, const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  // The vector has the exact size, so that a sanitizer sees each byte that is read beyond its end.
  std::fprintf(stderr, "%s\n", file.c_str());
  target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto target = argc > 2 ? target_of(argv[1]) : nullptr;
  if (!target) {
    std::fprintf(stderr, "usage: fuzz_inputs TARGET FILE-OR-FOLDER...\n");
    return 2;
  }
  std::size_t count = 0;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      run(target, argv[i]);
      ++count;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      run(target, entry.path());
      ++count;
    }
  }
  std::printf("%s: %zu inputs\n", argv[1], count);
  return count > 0 ? 0 : 1;
}
