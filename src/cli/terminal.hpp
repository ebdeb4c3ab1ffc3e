/// @file
/// Where the command writes to: a terminal of some size, or a file or pipe.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::cli {

struct Terminal {
  bool live = false;     ///< A terminal that lines can be redrawn on; not in CI, not TERM=dumb.
  bool colours = false;  ///< And NO_COLOR is not set.
  static Terminal of(int descriptor);
};

struct TerminalSize {
  unsigned columns = 80, rows = 24;
};
/// As of now: a window may be resized at any time.
TerminalSize terminal_size(int descriptor);

/// Writes all of it; returns 0 or the error number. A reader that has gone away (`| head`) is no
/// error: what is written for it goes nowhere.
int write_all(int descriptor, std::string_view text);

}  // namespace pipeline::cli
