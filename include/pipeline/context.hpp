/// @file
/// What a step's function may ask of its surroundings: a parameter `pl::StepContext&`, anywhere
/// among the others.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include <pipeline/json.hpp>

namespace pipeline {

enum class Level { debug, info, warning, error };
std::string_view to_string(Level);

/// The attempt that a function runs in.
///
/// ```cpp
/// Model train(const Dataset& data, int epochs, pl::StepContext& context) {
///   Model model;
///   for (int epoch = 0; epoch < epochs && !context.stopping(); ++epoch) {
///     const double loss = step(model, data);
///     context.log("epoch done", {{"epoch", epoch}, {"loss", loss}});
///     context.progress(double(epoch + 1) / epochs);
///   }
///   return model;
/// }
/// ```
/// Calls may come from any thread.
class StepContext {
 public:
  const std::string& pipeline() const { return pipeline_; }
  const std::string& step() const { return step_; }
  const std::string& run_id() const { return run_id_; }
  unsigned attempt() const { return attempt_; }  ///< From 1.

  /// A line of the step's log, with fields that programs can read (`logs --output json`); by hand
  /// `info: epoch done loss=0.25 epoch=3`.
  /// @param fields a map, as `{{"epoch", 3}, {"loss", 0.25}}`
  void log(Level level, std::string_view message, const Json& fields = {}) const;
  void log(std::string_view message, const Json& fields = {}) const {
    log(Level::info, message, fields);
  }
  void warn(std::string_view message, const Json& fields = {}) const {
    log(Level::warning, message, fields);
  }

  /// How far the step is. @param fraction from 0 to 1
  void progress(double fraction, std::string_view message = {}) const;
  /// A figure worth following, such as a loss; into the log, as progress is.
  void metric(std::string_view name, double value) const;

  /// Asked to stop when the run is: Ctrl-C, `cancel`, a timeout, another step's failure under
  /// fail_fast. A step that has not returned some seconds later is killed. What it returns after
  /// that is dropped.
  std::stop_token stop_token() const { return stop_; }
  bool stopping() const { return stop_.stop_requested(); }

  /// The step's code (see StepOptions::code), read-only; also the working folder.
  const std::string& code() const { return code_; }
  /// A folder of this attempt's own, gone with it.
  const std::string& scratch() const { return scratch_; }

  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

 protected:
  StepContext() = default;
  std::string pipeline_, step_, run_id_;
  unsigned attempt_ = 1;
  std::string code_, scratch_;
  std::stop_token stop_;
};

}  // namespace pipeline
