/// @file
/// What an engine says while it builds, from either builder: lines for people, the image's id, and
/// if it failed why.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/events.hpp>
#include "core/cancel.hpp"
#include "core/error.hpp"

#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Takes the JSON messages of one POST /build.
class BuildLog {
 public:
  /// @param on_line gets the title of each step as it starts, and each line that it prints
  explicit BuildLog(std::function<void(const std::string&)> on_line)
      : on_line_(std::move(on_line)) {}

  void message(const nlohmann::json& message);

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  const std::string& image_id() const { return image_id_; }
  /// The instruction that failed, as the builder names it; empty if it is not known.
  const std::string& failed_instruction() const { return failed_instruction_; }
  /// The last lines that the failing instruction printed; without one, the last of all.
  std::vector<std::string> last_lines(std::size_t count) const;
  /// `pipe: error: ...` and `pipe: hint: ...` that one of our own scripts printed.
  const std::string& reason() const { return reason_; }
  const std::vector<std::string>& hints() const { return hints_; }

 private:
  struct Output {
    std::string name, partial;
    std::deque<std::string> lines;
    bool announced = false;
  };
  void trace(std::string_view bytes);
  void print(Output& output, std::string_view text);
  void line(Output& output, std::string text);

  std::function<void(const std::string&)> on_line_;
  std::map<std::string, Output>
      outputs_;  ///< By the vertex's digest; the classic builder's only one is "".
  std::string error_, image_id_, failed_instruction_, failed_vertex_, reason_;
  std::vector<std::string> hints_;
};

/// A vertex's or step's name as people want it: `RUN` without its mounts, blanks collapsed.
std::string readable_title(std::string_view name);

/// The error for a build that failed: the failing line of the Dockerfile, the last lines printed,
/// what to try.
/// @param rejected the engine's answer when it refused the Dockerfile as a whole (status 400), else
/// empty
core::BuildError build_failure(const ImagePlan& plan, const std::string& dockerfile,
                               const BuildLog& log, const std::string& rejected);

/// What an event says of an error.
/// @param cancel with which it was made: a build that was stopped has not failed
Failure failure_of(const core::EnvironmentError& error, const core::CancelSource& cancel);

/// What to try, by what a build printed.
std::vector<std::string> build_advice(const std::vector<std::string>& lines,
                                      const std::string& error);

}  // namespace pipeline::docker
