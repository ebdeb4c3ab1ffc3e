/// @file
/// Properties of the output: a terminal of some size, or a file or pipe.
#pragma once

#include <string_view>

namespace pipeline::cli {

struct Terminal {
  bool live = false;     ///< A terminal on which lines can be redrawn; not in CI, not TERM=dumb.
  bool colours = false;  ///< `live`, and NO_COLOR is not set.
  static Terminal of(int descriptor);
};

struct TerminalSize {
  unsigned columns = 80, rows = 24;
};
/// Returns the current size; a user can resize the window at any time.
TerminalSize terminal_size(int descriptor);

}  // namespace pipeline::cli
