/// @file
/// A run as a Workflow Run RO-Crate: a folder with the pipeline file, the outputs and their
/// description (https://w3id.org/ro/wfrun/workflow/0.5).
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "exports/run_facts.hpp"

namespace pipeline::exports {

/// Contents of the crate besides the run's facts.
struct CrateOptions {
  std::string workflow;  ///< Name of the pipeline file in the crate.
  std::string license;   ///< An SPDX identifier; empty: not stated.
  /// Returns true for an artifact whose content is in the crate.
  std::function<bool(const core::Digest&)> has_content;
};

/// Returns the path in the crate of a step's output; a folder's ends with `/`.
std::string crate_path(const store::StepRecord& step, const store::OutputRecord& output);

/// Returns the content of ro-crate-metadata.json.
nlohmann::json ro_crate(const RunFacts& facts, const CrateOptions& options);

}  // namespace pipeline::exports
