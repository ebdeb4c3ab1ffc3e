/// @file
/// Files of an attempt's folder that its step can write, too: their content is not trusted.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "store/artifact_store.hpp"

namespace pipeline::engine {

/// Reads the step's own description of its failure, which has more information than the exit code.
/// Without such a file, nothing changes.
/// @param secrets values that are masked in the description
void read_failure(const std::filesystem::path& file, const std::vector<std::string>& secrets,
                  Failure& failure);

/// Records outputs that are already in the store. Storing removes them from the attempt's folders
/// before the run has recorded them; if this driver is killed in between, the next driver, which
/// joins the attempt, finds them here. The record itself lies where no container of the step sees
/// it: otherwise a step could name any artifact of the store as its output. An empty mark in the
/// scratch folder, which is emptied when the attempt is restarted, shows that the record was made
/// since the last start.
class TakenOutputs {
 public:
  /// @param folder the attempt's own
  TakenOutputs(const std::filesystem::path& folder, store::ArtifactStore& artifacts)
      : folder_(folder), artifacts_(artifacts) {}

  void note(const std::string& output, const store::StoredArtifact& artifact) const;
  /// Returns the artifact that note() has recorded; nothing if there is none in the store.
  std::optional<store::StoredArtifact> find(const std::string& output) const;

 private:
  std::filesystem::path record(const std::string& output) const {
    return folder_ / ("taken-" + output);
  }
  std::filesystem::path mark(const std::string& output) const {
    return folder_ / "scratch" / (".taken-" + output);
  }

  const std::filesystem::path folder_;
  store::ArtifactStore& artifacts_;
};

}  // namespace pipeline::engine
