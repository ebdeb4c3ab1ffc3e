/// @file
/// Advice on the resources that steps ask for, from what earlier runs have used, and the patch of
/// the pipeline file that follows it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "report/resource_advice.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

struct AdvisedStep {
  std::string name;
  ResourceSettings asked;
  report::StepUse used;
  std::vector<report::ResourceAdvice> advice;
};

/// Returns the measured steps of the pipeline in the file's order, one for all instances.
std::vector<AdvisedStep> advised_steps(const PipelineSpec& pipeline, store::RunStore& store);

/// The patch of the pipeline file, and the advice that cannot be followed by a change of its lines.
class FilePatch {
 public:
  FilePatch(const std::filesystem::path& file, const std::vector<AdvisedStep>& steps);

  /// Returns the patch as a unified diff; empty if there are no changes.
  std::string diff() const;
  /// Returns advice that is not in the patch, because the steps take these values from elsewhere.
  const std::vector<std::string>& unpatched() const { return unpatched_; }

 private:
  struct Change {
    unsigned length;    ///< Number of replaced characters.
    std::string value;  ///< Replaces them.
  };
  std::string name_, text_;
  std::map<unsigned, std::map<unsigned, Change>> changes_;  ///< Keyed by line and column.
  std::vector<std::string> unpatched_;
};

}  // namespace pipeline::driver
