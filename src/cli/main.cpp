#include <unistd.h>

#include <cstring>

#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  // What scripts ask most must cost least: answered before anything is made.
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    constexpr char text[] = "pipe " PIPELINE_VERSION "\n";
    return ::write(STDOUT_FILENO, text, sizeof text - 1) == sizeof text - 1 ? 0 : 3;
  }
  return pipeline::cli::run_command_line({argv + 1, argv + argc});
}
