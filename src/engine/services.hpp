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

/// Provides the files of the root that a step sees, for example from spec::CodeResolver. Keeps this
/// room independent of the file's syntax.
struct CodeProvider {
  /// Returns the step's files, sorted. Equal sets of files are the same object, which lives as long
  /// as the provider. Throws InputError.
  std::function<const std::vector<store::TreeEntry>&(const StepSpec&)> files;
  /// Returns advice for a step that failed because of a file that is in the root but not in its
  /// code.
  std::function<std::optional<std::string>(const StepSpec&, std::string_view output)> missing_file;
};

/// References to objects that must outlive the run.
struct Services {
  const PipelineSpec& pipeline;
  orchestrators::Routes& routes;
  store::RunStore& store;
  store::ArtifactStore& artifacts;
  store::StatIndex& stats;
  const CodeProvider& code;
  lockfile::LockFile* lock = nullptr;  ///< Has data without a digest; null: there can be none.
  /// Settings for reaching buckets with data; null: those of the environment.
  const settings::RemoteStoreSettings* remote_store = nullptr;
};

}  // namespace pipeline::engine
