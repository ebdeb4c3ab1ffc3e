/// @file
/// The outputs of a step's last failed attempt, which are kept for the user to look at.
#pragma once

#include <filesystem>
#include <string>

namespace pipeline::engine {

/// Kept outputs are a convenience: a failure to keep or to remove them is only logged.
class FailedOutputs {
 public:
  /// @param folder where the run keeps the outputs of failed attempts of all its steps
  /// @param number number of the attempt, from 1
  FailedOutputs(std::filesystem::path folder, std::string step, unsigned number)
      : folder_(std::move(folder)), step_(std::move(step)), number_(number) {}

  /// Keeps the files in `outputs` instead of those of an earlier attempt.
  void keep(const std::filesystem::path& outputs) const;
  /// Removes the kept outputs of earlier attempts; files of another owner stay until the run is
  /// removed.
  void remove_earlier() const;

 private:
  std::filesystem::path folder_of(unsigned number) const {
    return folder_ / (step_ + "." + std::to_string(number));
  }
  void remove_all_earlier() const;

  const std::filesystem::path folder_;
  const std::string step_;
  const unsigned number_;
};

}  // namespace pipeline::engine
