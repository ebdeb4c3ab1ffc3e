/// @file
/// Objects that the commands share; each is created on first use.
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

  /// Writes to standard output. Throws EnvironmentError on failure (a full disk).
  void print(std::string_view text) const;
  /// Writes the content of a file to standard output.
  void print_file(const std::filesystem::path& file) const;
  /// Writes one JSON document to standard output.
  void print_json(const nlohmann::json& document) const;
  /// Writes to standard error.
  void note(std::string_view text) const;

  /// Returns the pipeline of `options().file` with the parameters and execution mode of the command
  /// line. Throws InputError.
  /// @param is_task if not null, receives whether the file is an ECS task definition
  PipelineSpec load_pipeline(bool* is_task = nullptr) const;
  /// Returns the absolute path of the pipeline file; throws InputError if it does not exist. For a
  /// program: its name, in the pipeline's root.
  std::filesystem::path pipeline_file() const;

  /// Returns the state folder: --state, $PIPE_HOME, else `.pipe` beside the pipeline file.
  std::filesystem::path state_beside(const std::filesystem::path& pipeline_file) const;
  /// The same for commands without a file: --state, $PIPE_HOME, else the nearest `.pipe` of the
  /// working folder and its parents; nothing if there is none.
  /// @param without_option as a command without --state finds it
  std::optional<std::filesystem::path> existing_state(bool without_option = false) const;
  /// The same; throws InputError if there is none.
  std::filesystem::path required_state() const;
  /// Returns ` --state FOLDER` for a command that the user is advised to enter, if that command
  /// would not find this folder by itself; else empty.
  std::string state_option(const std::filesystem::path& folder) const;

  /// Opens the store in this folder, creating it if needed; once in a process.
  store::RunStore& store(const std::filesystem::path& state);
  store::ArtifactStore& artifacts();  ///< Of the folder that runs() has opened; stats(), too.
  store::StatIndex& stats();
  store::RunStore& existing_store() { return store(required_state()); }
  /// Returns the run that `options().run` names. Throws InputError if there is none.
  store::RunRecord find_run(store::RunStore& store) const;

  asio::io_context& loop();
  /// Runs the loop until the task has ended; returns its result or throws its exception.
  template <class T>
  T await(async::Task<T> task) {
    return async::await(loop(), std::move(task));
  }

  /// Returns the context for code that drives runs; this object must outlive it.
  detached::DriverContext driver_context();

 private:
  Options options_;
  Terminal out_;
  Paint paint_;
  std::unique_ptr<asio::io_context> loop_;
  std::unique_ptr<store::RunStore> store_;
  std::unique_ptr<store::ArtifactStore> artifacts_;
  std::unique_ptr<store::StatIndex> stats_;
};

/// Returns the path for messages: relative if it is below the working directory.
std::string shown_path(const std::filesystem::path& path);

}  // namespace pipeline::cli
