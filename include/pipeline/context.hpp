/// @file
/// The attempt that a step's function runs in, and its log, progress and cancellation.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/json.hpp>

namespace pipeline {

/// Severity of a log line.
enum class Level { debug, info, warning, error };
std::string_view to_string(Level);

/// The attempt that a function runs in. A function receives its context through a parameter of type
/// `pl::StepContext&`, at any position.
///
/// ```cpp
/// Model train(const Dataset& data, int epochs, pl::StepContext& context) {
///   Model model;
///   for (int epoch = 0; epoch < epochs && !context.stopping(); ++epoch) {
///     const double loss = improve(model, data);
///     context.log("epoch done", {{"epoch", epoch}, {"loss", loss}});
///     context.progress(double(epoch + 1) / epochs);
///   }
///   return model;
/// }
/// ```
/// All functions may be called from any thread.
class StepContext {
 public:
  const std::string& pipeline() const { return pipeline_; }
  const std::string& step() const { return step_; }
  const std::string& run_id() const { return run_id_; }
  unsigned attempt() const { return attempt_; }  ///< Counted from 1.

  /// Writes a line to the step's log, with fields that `logs --output json` returns as data.
  /// @param fields an object, such as `{{"epoch", 3}, {"loss", 0.25}}`
  void log(Level level, std::string_view message, const Json& fields = {}) const;
  void log(std::string_view message, const Json& fields = {}) const {
    log(Level::info, message, fields);
  }
  void warn(std::string_view message, const Json& fields = {}) const {
    log(Level::warning, message, fields);
  }

  /// Reports how much of the step is done. @param fraction from 0 to 1
  void progress(double fraction, std::string_view message = {}) const;
  /// Writes a value to track over time, such as a loss, to the log.
  void metric(std::string_view name, double value) const;
  /// Writes one value of a series, such as a loss by epoch.
  /// @param step the step or epoch of the training
  void metric(std::string_view name, double value, std::int64_t step) const;

  /// Stop is requested when the run stops: after Ctrl-C, `cancel`, a timeout, or another step's
  /// failure under fail_fast. A step that has not returned 10 seconds later is killed. Results
  /// returned after the request are discarded.
  std::stop_token stop_token() const { return stop_; }
  bool stopping() const { return stop_.stop_requested(); }

  /// Absolute path of the step's code (StepOptions::code): read-only, and the working folder.
  const std::string& code() const { return code_; }
  /// Absolute path of a folder that belongs to this attempt and is removed with it.
  const std::string& scratch() const { return scratch_; }

  /// Absolute path of the folder of a step with StepOptions::checkpoint; empty for others. The
  /// folder keeps the files of earlier attempts and runs with the same key until the step succeeds.
  /// An attempt may be killed while it writes: write to another name, then rename.
  const std::string& checkpoint() const { return checkpoint_; }

  /// Number of this process, from 0, among all processes of a step with StepOptions::nodes. The
  /// results of a node are those of its first process; those of its other processes are discarded.
  unsigned rank() const { return rank_; }
  unsigned world_size() const { return world_size_; }  ///< Number of all these processes.
  unsigned local_rank() const { return local_rank_; }  ///< Number of this process on its node.
  unsigned node_rank() const { return node_rank_; }    ///< Number of this process's node.
  /// Addresses of all nodes, in the order of node_rank(); empty for a step without nodes.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// A port that is free at the first address, for rank 0 to listen on.
  unsigned port() const { return port_; }
  /// Returns once all processes of the step have called barrier() equally often. Throws
  /// std::runtime_error when the step is asked to end meanwhile.
  void barrier() const;

  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

 protected:
  StepContext() = default;
  std::string pipeline_, step_, run_id_;
  unsigned attempt_ = 1;
  std::string code_, scratch_, checkpoint_;
  unsigned rank_ = 0, world_size_ = 1, local_rank_ = 0, node_rank_ = 0, port_ = 0;
  std::vector<std::string> addresses_;
  std::stop_token stop_;
};

}  // namespace pipeline
