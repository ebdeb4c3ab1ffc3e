/// @file
/// Data at addresses whose content the lock file pins: fetched and locked by the first run, used
/// unchanged by all later runs, and updated only by `pipe lock --upgrade`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "core/cancel.hpp"
#include "core/diagnostic.hpp"
#include "engine/services.hpp"
#include "lockfile/locked_data.hpp"

namespace pipeline::engine {

class Downloads;

/// Returns true for an address whose digest the lock file has to hold: the pipeline gives none.
bool is_locked_data(const DataSpec& data);

class PinnedData {
 public:
  /// Keeps references to the pipeline and to the lock file, if there is one.
  explicit PinnedData(const Services& services);

  /// Returns the content of the address, from the pipeline or else the lock file; nothing if it
  /// was never fetched.
  std::optional<lockfile::LockedData> of(const DataSpec& data) const;
  /// Returns a diagnostic for each address of the steps that the lock file lacks.
  std::vector<core::Diagnostic> missing(const std::vector<const StepSpec*>& steps) const;
  /// Fetches the data that the lock file lacks, or that is to be upgraded and has changed at its
  /// source, and writes the file. A dry run only asks the servers. Throws InputError if the file is
  /// frozen and lacks something.
  async::Task<> lock(const std::vector<const StepSpec*>& steps, Downloads& downloads,
                     EventSink& events, core::CancelSource& stop);
  /// Asks the servers for changes since the data was locked, many at a time. Skips data whose
  /// digest or version is in the pipeline, and all data if the lock file is frozen.
  async::Task<> find_changes(const std::vector<const StepSpec*>& steps, Downloads& downloads,
                             core::CancelSource& stop);
  /// Returns the findings of find_changes() about an input, for the user.
  std::vector<std::string> changes_at_source(const InputSpec& input) const;

 private:
  struct LockedInput {
    const DataSpec* data;
    std::string address;
  };
  std::vector<LockedInput> inputs_of(const std::vector<const StepSpec*>& steps) const;

  const PipelineSpec& pipeline_;
  lockfile::LockFile* lock_;
  std::map<std::string, std::vector<std::string>> findings_;  ///< Keyed by address.
};

}  // namespace pipeline::engine
