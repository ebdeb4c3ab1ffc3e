/// @file
/// The paths, the command line and the variables that an attempt has, which differ between
/// orchestrators only by where its files are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

/// File in AttemptSpec::scratch in which a step may leave the reason of its failure (`{"type": ...,
/// "message": ..., "where": ..., "causes": [...]}`); the step finds its path in PIPE_FAILURE_FILE.
inline constexpr std::string_view failure_file_name = "failure.json";

/// The folder of the outputs in containers and pods.
inline constexpr std::string_view container_outputs = "/pipe/outputs";

/// The paths at which a step sees its files.
struct Layout {
  std::string code, inputs, outputs;  ///< Folders.
  std::string scratch;  ///< A folder that the step may write to; removed with the attempt.
  /// For a step with StepSpec::program: the command that starts the program.
  std::vector<std::string> program;
  std::string checkpoint = {};  ///< The folder of AttemptSpec::checkpoint.
  /// Whether a text without `shell:` is read by bash or by `sh`; unset: where the step runs, a `sh`
  /// looks for bash.
  std::optional<bool> has_bash = {};
};

/// Returns `.csv` for `data.csv`, `.tar.gz` for `data.tar.gz`, and an empty text for `data`.
std::string extension_of(const std::string& file_name);

/// Returns `INPUTS/NAME.EXT`, with the extension of the file that the earlier step wrote.
std::string path_of(const AttemptInput& input, const Layout& layout);
/// Returns `OUTPUTS/FILE_NAME`.
std::string path_of(const AttemptOutput& output, const Layout& layout);

/// Returns the argument vector of an attempt with this layout: placeholders filled in, and a
/// shell's words before its line.
std::vector<std::string> command_of(const AttemptSpec& attempt, const Layout& layout);
/// Returns true for a shell line that contains a pipe.
bool has_pipe(const Command& command);
/// Returns the variables that describe the attempt (such as PIPE_RUN_ID, PIPE_INPUT_X,
/// PIPE_OUTPUT_X, and PIPE_PARAM_X and PIPE_PARAM_x), the declared environment, the settings'
/// runtime_environment and the secrets; later ones take precedence in this order. For a shell,
/// PIPE_COMMAND has the step's command.
StringMap variables_of(const AttemptSpec& attempt, const Layout& layout);
/// Returns true if the step's environment or its settings set the variable.
bool sets_variable(const StepSpec& step, const std::string& name);

}  // namespace pipeline::orchestrators
