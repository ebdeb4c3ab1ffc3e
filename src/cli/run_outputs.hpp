/// @file
/// What a run has made: here, or in the bucket that it shares with us.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/context.hpp"
#include "engine/remote_cache.hpp"
#include "s3/artifacts.hpp"

namespace pipeline::cli {

class RunOutputs {
 public:
  RunOutputs(Context& context, store::RunStore& runs, const store::RunRecord& run);

  /// False where it is known to be in the bucket only.
  bool is_here(const store::OutputRecord& output) const;
  /// Its file or folder, or the URL of what the bucket has of it.
  std::string place(const store::OutputRecord& output) const;
  /// Makes it one of this machine's, where it is not. Throws EnvironmentError if the bucket does
  /// not have it any more.
  void bring(const store::StepRecord& step, const store::OutputRecord& output);

 private:
  Context& context_;
  const std::filesystem::path state_;
  std::optional<s3::Artifacts> bucket_;
  std::unique_ptr<engine::RemoteCache> shared_;
};

}  // namespace pipeline::cli
