#include <unistd.h>

#include <cstring>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/built_from.hpp"
#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  // Scripts query the version most often, so it is answered before anything else is initialised.
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    const std::string_view text = pipeline::cli::built_from;
    if (::write(STDOUT_FILENO, text.data(), text.size()) == ssize_t(text.size())) return 0;
  }
#ifdef __GLIBC__
  // A large pipeline makes millions of small allocations. Without fast bins (M_MXFAST), glibc does
  // not consolidate them again and again; the higher trim threshold keeps freed memory. Plans of
  // 100,000 steps take a fifth less time. Blocks of 1 MiB and more are mapped separately, and
  // returned: small allocations between them would leave gaps of some 15 MB in such a run.
  mallopt(M_MXFAST, 0);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
  return pipeline::cli::run_command_line({argv + 1, argv + argc});
}
