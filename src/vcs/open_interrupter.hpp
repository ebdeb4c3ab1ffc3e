/// @file
/// Ends waits for the other end of a named pipe, in a library that opens files without O_NONBLOCK.
#pragma once

#include <chrono>
#include <thread>

namespace pipeline::vcs {

/// While the object lives, open() of a named pipe in the thread that made the object fails with
/// EINTR, but not before the object is a quarter of a second old. libgit2 then treats a file of a
/// repository that is a named pipe as a file that cannot be read. Reading and writing of plain
/// files is not interrupted. Uses the signal SIGURG; does nothing if the program handles SIGURG.
class OpenInterrupter {
 public:
  OpenInterrupter();

 private:
  std::jthread thread_;
};

}  // namespace pipeline::vcs
