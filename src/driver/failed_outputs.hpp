/// @file
/// Outputs of failed attempts, which are kept with their run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/run_store.hpp"

namespace pipeline::driver {

/// A file or folder that a failed attempt left; it may be incomplete.
struct FailedOutput {
  std::string step;
  unsigned attempt;
  std::filesystem::path path;
  std::string name() const { return step + "." + path.filename().string(); }
};

/// Returns the files and folders that the last failed attempt of each of these steps left, in the
/// steps' order.
/// @param wanted `STEP`, `STEP.FILE` or `STEP.OUTPUT`, whose file may have an extension; empty: all
std::vector<FailedOutput> failed_outputs(const store::RunStore& store, const std::string& run,
                                         const std::vector<store::StepRecord>& steps,
                                         const std::string& wanted = {});

/// Copies the file or folder; the copies have the modes of new files, and links stay links. Leaves
/// out pipes, sockets and devices. Throws EnvironmentError also if `destination` exists.
/// @return the paths that are left out
std::vector<std::filesystem::path> copy_failed_output(const FailedOutput& output,
                                                      const std::filesystem::path& destination);

}  // namespace pipeline::driver
