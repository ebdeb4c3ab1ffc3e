/// @file
/// Copies the outputs of steps to the folders of their `publish_to`, when they succeed or are
/// reused.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/run_context.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

class ResultFolders {
 public:
  explicit ResultFolders(const RunContext& context) : context_(context) {}

  /// Copies the outputs in a task of the run. A failure is a notice, and has_failed() returns true.
  void put(const StepSpec& step, const std::vector<store::OutputRecord>& outputs);
  bool has_failed() const { return has_failed_; }
  /// The copies: if one of them changes, the run has something to do.
  const std::vector<std::filesystem::path>& copies() const { return copies_; }

 private:
  async::Task<> copy(std::string step, store::OutputRecord output, std::filesystem::path target);
  bool is_there(const store::OutputRecord& output, const std::filesystem::path& target);

  const RunContext& context_;
  std::vector<std::filesystem::path> copies_;
  bool has_failed_ = false;
};

}  // namespace pipeline::engine
