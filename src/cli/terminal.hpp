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

}  // namespace pipeline::cli
