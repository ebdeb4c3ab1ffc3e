/// @file
/// The objects that a run and a plan work with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

#include "orchestrators/routes.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::lockfile {
class LockFile;
}
namespace pipeline::settings {
struct RemoteStoreSettings;
}

namespace pipeline::engine {

/// Provides the files of the pipeline's folder that a step sees, for example from
/// spec::CodeResolver. So the engine does not depend on the syntax of pipeline files.
struct CodeProvider {
  /// Returns the step's files, sorted. Equal sets of files are the same object, which lives as long
  /// as the provider. Throws InputError.
  std::function<const std::vector<store::TreeEntry>&(const StepSpec&)> files;
  /// Returns advice for a failed step, such as to add a file of the pipeline's folder to its code.
  /// Null: no advice. @param output the last lines that the step has printed
  std::function<std::optional<std::string>(const StepSpec&, std::string_view output)>
      failure_advice;
};

/// References to objects that must outlive the run.
struct Services {
  const PipelineSpec& pipeline;
  orchestrators::Routes& routes;
  store::RunStore& store;
  store::ArtifactStore& artifacts;
  store::StatIndex& stats;
  const CodeProvider& code;
  /// Pins data at addresses without a digest; null: the pipeline can have no such data.
  lockfile::LockFile* lock = nullptr;
  /// Settings for reaching buckets with data; null: those of the environment.
  const settings::RemoteStoreSettings* remote_store = nullptr;
};

}  // namespace pipeline::engine
