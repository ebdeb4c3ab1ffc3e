/// @file
/// The runs that `pipe serve` shows: of a state folder, or of a bucket.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "cli/context.hpp"
#include "core/file.hpp"
#include "remote_driver/bucket_mirror.hpp"

namespace pipeline::cli {

/// While this lives, a temporary folder follows the runs of a bucket.
class BucketRuns {
 public:
  /// Fetches all runs. Throws InputError for a profile without a bucket, and EnvironmentError if
  /// the bucket cannot be read.
  BucketRuns(const Context& context, const std::string& profile);
  ~BucketRuns();
  BucketRuns(const BucketRuns&) = delete;
  BucketRuns& operator=(const BucketRuns&) = delete;

  std::filesystem::path state() const { return folder_.path() / "state"; }

 private:
  core::TemporaryFolder folder_;
  asio::io_context loop_{1};  ///< Of the mirror alone: the server has its own.
  std::optional<remote_driver::BucketMirror> mirror_;
  std::thread thread_;
};

}  // namespace pipeline::cli
