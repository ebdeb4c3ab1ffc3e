#include <unistd.h>

#include <cstring>

#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  // Scripts query the version most often, so it is answered before anything else is initialised.
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    constexpr char text[] = "pipe " PIPELINE_VERSION "\n";
    return ::write(STDOUT_FILENO, text, sizeof text - 1) == sizeof text - 1 ? 0 : 3;
  }
  return pipeline::cli::run_command_line({argv + 1, argv + argc});
}
