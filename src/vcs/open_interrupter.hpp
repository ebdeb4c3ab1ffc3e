/// @file
/// Ends waits for the other end of a named pipe, in a library that opens files without O_NONBLOCK.
#pragma once

#include <chrono>
#include <thread>

namespace pipeline::vcs {

/// While it lives, open() of a named pipe fails in the thread that has made it (EINTR), after a
/// quarter of a second: whatever file of a repository is one, libgit2 takes it for one that cannot
/// be read. Reading and writing of plain files is not interrupted.
class OpenInterrupter {
 public:
  OpenInterrupter();

 private:
  std::jthread thread_;
};

}  // namespace pipeline::vcs
