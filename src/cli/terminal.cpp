#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace pipeline::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

}  // namespace

Terminal Terminal::of(int descriptor) {
  const char* kind = std::getenv("TERM");
  Terminal terminal;
  terminal.live = ::isatty(descriptor) && kind && std::string_view(kind) != "dumb" && !is_set("CI");
  terminal.colours = terminal.live && !is_set("NO_COLOR");
  return terminal;
}

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

}  // namespace pipeline::cli
