#include <unistd.h>

#include <cstring>

#include "cli/built_from.hpp"
#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  // Scripts query the version most often, so it is answered before anything else is initialised.
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    const std::string_view text = pipeline::cli::built_from;
    return ::write(STDOUT_FILENO, text.data(), text.size()) == ssize_t(text.size()) ? 0 : 3;
  }
  return pipeline::cli::run_command_line({argv + 1, argv + argc});
}
