/// @file
/// What the commands share. Nothing is opened before it is asked for.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <pipeline/spec.hpp>

#include "async/await.hpp"
#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "cli/text.hpp"
#include "detached/driver_context.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::cli {

class Context {
 public:
  explicit Context(Options options);
  ~Context();

  const Options& options() const { return options_; }
  const Terminal& out() const { return out_; }
  const Paint& paint() const { return paint_; }  ///< For standard output.

  /// To standard output. Throws EnvironmentError when that cannot be written (a full disk).
  void print(std::string_view text) const;
  /// One JSON document, and nothing else of it, to standard output.
  void print_json(const nlohmann::json& document) const;
  /// To standard error.
  void note(std::string_view text) const;

  /// The pipeline of `options().file`, with the caller's parameters and execution mode. Throws
  /// InputError.
  /// @param is_task set if there is one: whether the file is an ECS task definition
  PipelineSpec load_pipeline(bool* is_task = nullptr) const;
  /// The absolute path of the pipeline file; InputError if it is not there. For a program: its
  /// name, in the pipeline's root.
  std::filesystem::path pipeline_file() const;

  /// Where runs are kept: --state, $PIPE_HOME, else `.pipe` beside the pipeline file.
  std::filesystem::path state_beside(const std::filesystem::path& pipeline_file) const;
  /// For commands without a file: --state, $PIPE_HOME, else the nearest `.pipe` of this folder and
  /// those above; nothing if there is none.
  std::optional<std::filesystem::path> existing_state() const;
  /// The same; throws InputError if there is none.
  std::filesystem::path required_state() const;
  /// ` --state FOLDER`, for a command that the user is advised to enter and that would not find
  /// this folder by itself; else empty.
  std::string state_option(const std::filesystem::path& folder) const;

  /// Opens (and makes, if need be) the store in this folder; once in a process.
  store::RunStore& runs(const std::filesystem::path& state);
  store::ArtifactStore& artifacts();  ///< Of the folder that runs() has opened; likewise stats().
  store::StatIndex& stats();
  store::RunStore& existing_runs() { return runs(required_state()); }
  /// The run that `options().run` names. Throws InputError if there is none.
  store::RunRecord find_run(store::RunStore& runs) const;

  asio::io_context& loop();
  /// Runs the loop until the task has ended; returns its result or throws what it threw.
  template <class T>
  T await(async::Task<T> task) {
    return async::await(loop(), std::move(task));
  }

  /// What code that drives runs needs of this object, which outlives it.
  detached::DriverContext driver_context();

 private:
  Options options_;
  Terminal out_;
  Paint paint_;
  std::unique_ptr<asio::io_context> loop_;
  std::unique_ptr<store::RunStore> runs_;
  std::unique_ptr<store::ArtifactStore> artifacts_;
  std::unique_ptr<store::StatIndex> stats_;
};

/// As the user would write it from here: relative where it lies below the working directory.
std::string shown_path(const std::filesystem::path& path);

}  // namespace pipeline::cli
