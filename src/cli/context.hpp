/// @file
/// A command's options, the workspace that they name, and the command's output.
#pragma once

#include <filesystem>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "cli/text.hpp"
#include "driver/workspace.hpp"

namespace pipeline::cli {

using driver::shown_path;

/// A command's options, workspace and output. Notes of the workspace go to standard error.
class Context : public driver::Workspace {
 public:
  explicit Context(Options options);

  const Options& options() const { return options_; }
  const Terminal& out() const { return out_; }
  const Paint& paint() const { return paint_; }  ///< For standard output.

  /// Writes text to standard output, without the characters that would control a terminal
  /// (lines_for_terminal()). Throws EnvironmentError on failure, for example for a full disk.
  void print(std::string_view text) const;
  /// Writes bytes to standard output as they are.
  void write(std::string_view bytes) const;
  /// Writes the content of a file to standard output.
  void print_file(const std::filesystem::path& file) const;
  /// Writes one JSON document to standard output.
  void print_json(const nlohmann::json& document) const;

  /// Returns the run that `options().run` names. Throws InputError if there is none.
  store::RunRecord find_run(store::RunStore& store) const {
    return Workspace::find_run(store, options_.run);
  }

 private:
  Options options_;
  Terminal out_;
  Paint paint_;
};

}  // namespace pipeline::cli
