/// @file
/// The runs of a remote store, as `pipe serve --bucket` shows them.
#pragma once

#include <optional>
#include <thread>

#include "cli/context.hpp"
#include "core/file.hpp"
#include "remote_driver/run_mirror.hpp"

namespace pipeline::cli {

/// Copies the runs of a remote store into a temporary folder, and keeps the copies up to date.
class RemoteRuns {
 public:
  /// Fetches all runs. Throws InputError for a profile without a remote store, and EnvironmentError
  /// if the store cannot be read.
  RemoteRuns(const Context& context, const std::string& profile);
  ~RemoteRuns();
  RemoteRuns(const RemoteRuns&) = delete;
  RemoteRuns& operator=(const RemoteRuns&) = delete;

  std::filesystem::path state() const { return folder_.path() / "state"; }

 private:
  core::TemporaryFolder folder_;
  asio::io_context loop_{1};  ///< Runs only the mirror: the server has its own loop.
  std::optional<remote_driver::RunMirror> mirror_;
  std::thread thread_;
};

}  // namespace pipeline::cli
