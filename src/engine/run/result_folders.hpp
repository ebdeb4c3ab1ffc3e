/// @file
/// Copies the outputs of steps that succeed or are reused to the folders of their `publish_to`.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "engine/run_context.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

class ResultFolders {
 public:
  explicit ResultFolders(const RunContext& context) : context_(context) {}

  /// Starts a task of the run that copies the outputs. A failed copy is a notice, and has_failed()
  /// returns true from then on.
  void put(const StepSpec& step, const std::vector<store::OutputRecord>& outputs);
  bool has_failed() const { return has_failed_; }
  /// Returns the paths of the copies. If one of them changes, the next run copies it again.
  const std::vector<std::filesystem::path>& copies() const { return copies_; }

 private:
  async::Task<> copy(std::string step, store::OutputRecord output, std::filesystem::path target);
  bool is_copied(const store::OutputRecord& output, const std::filesystem::path& target);

  const RunContext& context_;
  std::vector<std::filesystem::path> copies_;
  std::set<std::filesystem::path> folders_;  ///< Those from which unfinished copies were removed.
  bool has_failed_ = false;
};

}  // namespace pipeline::engine
