/// @file
/// Gathers outputs of several steps in one input folder, and identifies the content of inputs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "orchestrators/orchestrator.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// An existing output, and the step that made it.
struct MadeOutput {
  const StepSpec* step;
  const store::OutputRecord* output;
};
/// Returns the output of a source; MadeOutput::output is null if it does not exist.
using OutputsOf = std::function<MadeOutput(const SourceSpec&)>;

/// Returns the content of an input for the step's key: the digest and file name of an output, or
/// for a gathered input a digest over all of its outputs, in order.
std::string content_of(const InputSpec& input, const OutputsOf& outputs);

/// The folder of a gathered input, created by make().
class GatheredFolder {
 public:
  /// @param outputs the steps and records that it refers to must outlive this object
  GatheredFolder(const InputSpec& input, const OutputsOf& outputs);
  /// Returns the digest over the names of the entries, the index, and the contents.
  core::Digest digest() const;
  /// Creates `folder` with links to the artifacts; copies only where the file system cannot link.
  /// Artifacts that only a remote store has are left out.
  void make(const store::ArtifactStore& artifacts, const std::filesystem::path& folder) const;
  /// Returns the gathered artifacts with the steps that made them, in order.
  std::vector<store::GatheredPiece> artifacts() const;
  /// Returns the gathered artifacts with their file names and paths, for the orchestrator.
  orchestrators::AttemptPieces pieces(const store::ArtifactStore& artifacts) const;

 private:
  /// Returns the name of an entry, whose output must exist. Names are not kept, because a folder
  /// may have 100,000 entries.
  std::string file_of(std::size_t i) const;
  /// Returns the content of `index.json`, a list of the entries.
  std::string index() const;
  std::vector<MadeOutput> made_;  ///< In order. Without an output where that is missing.
};

/// A gathered input: its digest in the step's key, and its artifacts as store::gathered_text().
using GatheredInput = std::pair<core::Digest, std::string>;

/// The artifacts behind a step's inputs which its key does not name one by one.
struct InputOrigins {
  std::vector<GatheredInput> gathered;
  store::MatrixInputs taken;  ///< The outputs that the values of its matrix come from.
};

/// Returns the artifacts behind the inputs of a step, whose outputs of other steps must exist.
InputOrigins origins_of(const StepSpec& step, const OutputsOf& outputs);

}  // namespace pipeline::engine
