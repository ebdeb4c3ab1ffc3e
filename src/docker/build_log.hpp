/// @file
/// Reads the output of a build from either builder: lines for the user, the image's id, and the
/// reason of a failure.
#pragma once

#include <cstdint>
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

/// The text that is shown for a layer of packages while it is made.
struct LayerTitle {
  std::string title;        ///< `layer 2 of 3: numpy 1.26.4, scipy 1.13.1 (54 MiB)`.
  std::string number;       ///< The beginning of the title: `layer 2 of 3:`.
  std::uint64_t bytes = 0;  ///< Size of the packages' files.
};

/// Reads the JSON messages of one POST /build.
class BuildLog {
 public:
  /// @param on_line receives the title of each step as it starts, and each line that it prints
  /// @param layers titles of the layers of packages
  explicit BuildLog(std::function<void(const std::string&)> on_line,
                    std::vector<LayerTitle> layers = {})
      : on_line_(std::move(on_line)), layers_(std::move(layers)) {}

  void read(const nlohmann::json& message);

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  const std::string& image_id() const { return image_id_; }
  /// Returns true if an instruction failed, but the messages do not say which. BuildKit ends its
  /// messages when a build fails, and may lose the last ones; a second build repeats them.
  bool is_cut() const;
  /// Returns the failed instruction in the builder's notation; empty if it is unknown.
  const std::string& failed_instruction() const { return failed_instruction_; }
  /// Returns the last lines of the failed instruction, or, with the classic builder, of the last
  /// instruction. Returns nothing if the failed instruction of a BuildKit build is unknown.
  std::vector<std::string> last_lines(std::size_t count) const;
  /// Returns the text of a line `pipe: error: ...`, which pipe's own scripts print.
  const std::string& reason() const { return reason_; }
  /// Returns the texts of lines `pipe: hint: ...`, which pipe's own scripts print.
  const std::vector<std::string>& hints() const { return hints_; }

 private:
  struct Output {
    std::string name, partial;
    std::deque<std::string> lines;
    bool announced = false;
    std::uint64_t received = 0;         ///< Downloaded bytes that were last reported.
    const LayerTitle* layer = nullptr;  ///< The layer, if the instruction itself does not name it.
  };
  const LayerTitle* layer_of(std::string_view name) const;
  std::string title_of(std::string_view name) const;
  void report_received(Output& output, std::string_view bytes_received);
  void forget_if_too_large();
  Output& output_of(const std::string& vertex);
  void read_trace(std::string_view bytes);
  void add_text(Output& output, std::string_view text);
  void add_line(Output& output, std::string text);

  std::function<void(const std::string&)> on_line_;
  std::vector<LayerTitle> layers_;
  /// Output by the digest of the vertex (BuildKit's step); output of the classic builder is under
  /// "".
  std::map<std::string, Output> outputs_;
  std::size_t kept_ = 0;  ///< Bytes of `outputs_`.
  std::string error_, image_id_, failed_instruction_, failed_vertex_, reason_;
  std::vector<std::string> hints_;
};

/// Returns the name of a vertex or step for messages, without the mounts of `RUN`, and with single
/// blanks.
std::string readable_title(std::string_view name);

/// Returns the error of a failed build: the Dockerfile's line, the last lines printed, and advice.
/// @param rejected the engine's message if it refused the whole Dockerfile (status 400), else empty
core::BuildError build_failure(const ImagePlan& plan, const std::string& dockerfile,
                               const BuildLog& log, const std::string& rejected);

/// Converts an error to the failure of an event.
/// @param cancel passed to the build; a cancelled build has not failed
Failure failure_of(const core::EnvironmentError& error, const core::CancelSource& cancel);

/// Returns advice derived from the lines that a build printed.
std::vector<std::string> build_advice(const std::vector<std::string>& lines,
                                      const std::string& error);

}  // namespace pipeline::docker
