/// @file
/// A file that another process writes, such as a log.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/file.hpp"

namespace pipeline::driver {

/// Reads a file while it grows. The file may be created later.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Calls `use` with everything that is available.
  template <class Use>
  void read(Use&& use) {
    std::string buffer(64 * 1024, '\0');
    while (const auto count = read_some(buffer)) use(std::string_view(buffer).substr(0, count));
  }
  /// Skips the current content except its last lines.
  void skip_to_last(std::size_t lines);

  /// Returns when there may be more to read, or after a while, because the end of the writer does
  /// not change the file.
  void wait();

 private:
  bool open();
  std::size_t read_some(std::string& buffer);

  std::filesystem::path path_;
  core::Descriptor file_, changes_;
  bool is_watched_ = false;
};

}  // namespace pipeline::driver
