/// @file
/// Inputs that gather the outputs of many steps in one folder, and what an input is made of.
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

/// An output that there is, and the step that made it.
struct MadeOutput {
  const StepSpec* step;
  const store::OutputRecord* output;
};
using OutputsOf = std::function<MadeOutput(const SourceSpec&)>;

/// What the input is made of, for the step's key: the digest and file name of an output; of a
/// gathered input a digest over all, in their order.
std::string content_of(const InputSpec& input, const OutputsOf& outputs);

/// The folder that a gathered input is; the texts are made at once, the folder by make().
class GatheredFolder {
 public:
  /// @param outputs what they lead to must live as long as this
  GatheredFolder(const InputSpec& input, const OutputsOf& outputs);
  /// Over the names of the entries, what the index says of them, and their contents.
  core::Digest digest() const;
  /// Puts links to the artifacts into `folder`, which is made; nothing is copied where the file
  /// system can link.
  void make(const store::ArtifactStore& artifacts, const std::filesystem::path& folder) const;
  /// The artifacts that it has links to.
  std::vector<orchestrators::AttemptPiece> pieces(const store::ArtifactStore& artifacts) const;

 private:
  struct Entry {
    std::string file;
    MadeOutput made;
  };
  std::string index() const;
  std::vector<Entry> entries_;
};

}  // namespace pipeline::engine
