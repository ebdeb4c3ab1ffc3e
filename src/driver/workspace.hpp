/// @file
/// The pipeline file, its state folder and the event loop; each is opened on first use.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <pipeline/spec.hpp>

#include "async/await.hpp"
#include "core/cancel.hpp"
#include "driver/workspace_options.hpp"
#include "remote_driver/driver_context.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

class Workspace {
 public:
  /// Shows the user a text of one or more lines, without the last line end.
  using Note = std::function<void(std::string_view)>;

  Workspace(WorkspaceOptions options, Note note);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const WorkspaceOptions& options() const { return options_; }
  void note(std::string_view text) const { note_(text); }
  const Note& notes() const { return note_; }

  /// Returns the pipeline of `options().file` with the parameters and execution mode of the
  /// options. Throws InputError.
  PipelineSpec load_pipeline() const;
  /// Returns the absolute path of the pipeline file, or a path in the pipeline's root that has a
  /// program's name. Throws InputError if the file does not exist.
  std::filesystem::path pipeline_file() const;

  /// Returns the state folder: --state, $PIPE_HOME, else `.pipe` beside the pipeline file.
  std::filesystem::path state_beside(const std::filesystem::path& pipeline_file) const;
  /// Returns the state folder for commands without a pipeline file: --state, $PIPE_HOME, else the
  /// nearest `.pipe` of the working folder and its parents; nothing if there is none.
  std::optional<std::filesystem::path> existing_state() const;
  /// Returns existing_state(); throws InputError if there is none.
  std::filesystem::path required_state() const;
  /// Returns ` --state FOLDER` for a command that the user is advised to enter, if that command
  /// would not find this folder by itself; else empty.
  std::string state_option(const std::filesystem::path& folder) const;

  /// Opens the store in this folder, creating it if needed; once in a process.
  store::RunStore& store(const std::filesystem::path& state);
  /// Returns the artifacts in the folder that store() has opened.
  store::ArtifactStore& artifacts();
  /// Returns the index of file digests in the folder that store() has opened.
  store::StatIndex& stats();
  store::RunStore& existing_store() { return store(required_state()); }
  /// Returns the run of this name: an identifier, a unique prefix or `latest`. Throws InputError if
  /// there is none.
  store::RunRecord find_run(store::RunStore& store, const std::string& name) const;

  asio::io_context& loop();
  /// Returns the source that ends requests to servers when the run of this process is stopped; see
  /// run_stopped_by().
  core::CancelSource& run_stop() { return run_stop_; }
  /// Forwards the stops of `source` to run_stop() while the result lives.
  core::CancelSource::Listener run_stopped_by(core::CancelSource& source) {
    return {source, [this](core::StopLevel level) { run_stop_.stop(level); }};
  }
  /// Runs the loop until the task has ended; returns its result or throws its exception.
  template <class T>
  T await(async::Task<T> task) {
    return async::await(loop(), std::move(task));
  }

  /// Returns the context for code that queries the drivers of runs; this object must outlive it.
  remote_driver::DriverContext driver_context();

 private:
  /// Returns the state folder of existing_state().
  /// @param chosen the folder that --state or $PIPE_HOME names; nothing: neither does
  std::optional<std::filesystem::path> find_state(
      std::optional<std::filesystem::path> chosen) const;

  WorkspaceOptions options_;
  Note note_;
  core::CancelSource run_stop_;
  std::unique_ptr<asio::io_context> loop_;
  std::unique_ptr<store::RunStore> store_;
  std::unique_ptr<store::ArtifactStore> artifacts_;
  std::unique_ptr<store::StatIndex> stats_;
};

/// Returns the path for messages: relative if it is below the working directory.
std::string shown_path(const std::filesystem::path& path);

}  // namespace pipeline::driver
