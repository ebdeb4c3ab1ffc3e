/// @file
/// The folder that a driver has made for an attempt and removes when it gives the attempt up.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace pipeline::agent {

/// Observes whether the attempt's folder is removed. A node that Slurm has given up may continue to
/// run: another attempt of the step then begins elsewhere, and this attempt must have no more
/// effects.
class JobFolder {
 public:
  /// @param file path of a file in the folder; null: there is no folder to observe
  explicit JobFolder(const char* file) {
    const char* end = file ? strrchr(file, '/') : nullptr;
    if (end && end != file)
      snprintf(folder_, sizeof folder_, "%.*s", static_cast<int>(end - file), file);
    struct stat status {};
    counts_links_ = stat(folder_, &status) == 0 && status.st_nlink > 0;
  }
  /// Returns the shorter of `pause` and the time between two looks, in milliseconds. A `pause` of
  /// -1 is an endless one, and so is the result -1.
  int limited_pause(int pause) const {
    return !folder_[0] || (pause >= 0 && pause < look_pause) ? pause : look_pause;
  }
  /// Looks if the last look is long enough ago. Returns true once the folder was missing in two
  /// looks in a row, so that a short failure of the file system does not end the step.
  bool is_removed() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!folder_[0] || missing_ == enough_looks || (now.tv_sec - looked_) * 1000 < look_pause)
      return missing_ == enough_looks;
    looked_ = now.tv_sec;
    struct stat status {};
    // A removed folder that is mounted in a container can still be found there, with 0 links.
    const bool is_there = stat(folder_, &status) == 0 ? !counts_links_ || status.st_nlink > 0
                                                      : errno != ENOENT && errno != ESTALE;
    missing_ = is_there ? 0 : missing_ + 1;
    return missing_ == enough_looks;
  }

 private:
  static constexpr int look_pause = 5'000;  ///< Milliseconds between two looks.
  static constexpr int enough_looks = 2;
  char folder_[4096] = {};
  bool counts_links_ = false;  ///< False on file systems that report 0 links for every folder.
  time_t looked_ = 0;          ///< Time of the last look: seconds of the monotonic clock.
  int missing_ = 0;            ///< The number of looks in a row that did not find the folder.
};

}  // namespace pipeline::agent
