/// @file
/// The end of a run: its counts and outputs, also as JSON for programs and `pipe attach`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "driver/session.hpp"
#include "engine/run.hpp"

namespace pipeline::driver {

/// An output and its path.
struct ShownResult {
  std::string name;            ///< `STEP.OUTPUT`.
  std::filesystem::path path;  ///< Path in the artifact store.
  std::uint64_t bytes = 0;
};

struct RunEnd {
  std::filesystem::path state;  ///< The state folder.
  engine::RunSummary outcome;
  std::vector<ShownResult> results;
  core::ExitCode exit_code = core::ExitCode::ok;
};

/// Returns the exit code of a command that has driven the run.
core::ExitCode exit_code_of(const engine::RunSummary& outcome);

/// Returns the run's outputs, made or reused: all of them or, in a large pipeline, those that no
/// step takes. A repeated step has the outputs of its last round.
std::vector<ShownResult> results_of(Session& session);

/// Returns the event `summary`.
nlohmann::json summary_json(const RunEnd& end);

/// Reads the event `summary`, with this machine's paths, and without outputs that this machine
/// lacks. Returns nothing if the object, which may come from a bucket, is not a summary.
std::optional<RunEnd> read_summary(const nlohmann::json& object, Workspace& workspace,
                                   store::RunStore& store);

}  // namespace pipeline::driver
