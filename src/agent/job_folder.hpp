/// @file
/// The folder that a driver has made for an attempt and removes when it gives the attempt up.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace pipeline::agent {

/// A node that Slurm has given up may go on: another attempt of the step then begins elsewhere, and
/// this one must have no more effects.
class JobFolder {
 public:
  /// @param file in the folder; null: nobody removes a folder
  explicit JobFolder(const char* file) {
    const char* end = file ? strrchr(file, '/') : nullptr;
    if (end && end != file)
      snprintf(folder_, sizeof folder_, "%.*s", static_cast<int>(end - file), file);
    struct stat status {};
    counts_links_ = stat(folder_, &status) == 0 && status.st_nlink > 0;
  }
  /// Returns the shorter of `pause` and the time until the next look, in milliseconds; -1: never.
  int at_most(int pause) const {
    return !folder_[0] || (pause >= 0 && pause < look_again) ? pause : look_again;
  }
  /// Looks, if it is time. Twice in a row, so that a file system's short trouble ends no step.
  bool is_removed() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!folder_[0] || missing_ == looks || (now.tv_sec - looked_) * 1000 < look_again)
      return missing_ == looks;
    looked_ = now.tv_sec;
    struct stat status {};
    // A folder that is mounted in a container keeps its name there, and has no link any more.
    const bool is_there = stat(folder_, &status) == 0 ? !counts_links_ || status.st_nlink > 0
                                                      : errno != ENOENT && errno != ESTALE;
    missing_ = is_there ? 0 : missing_ + 1;
    return missing_ == looks;
  }

 private:
  static constexpr int look_again = 5'000, looks = 2;
  char folder_[4096] = {};
  bool counts_links_ = false;  ///< Some file systems do not.
  time_t looked_ = 0;
  int missing_ = 0;
};

}  // namespace pipeline::agent
