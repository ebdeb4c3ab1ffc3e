/// @file
/// Data at addresses whose content the lock file says: fetched and locked by the first run, the
/// same for all later ones, and newer only by `pipe lock --upgrade`.
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

/// True for an address whose digest the pipeline does not say.
bool is_locked_data(const DataSpec& data);

class PinnedData {
 public:
  /// @param services keeps a reference to its lock file, if there is one
  explicit PinnedData(const Services& services);

  /// Returns the content of the address, from the pipeline or else the lock file; nothing if it
  /// was never fetched.
  std::optional<lockfile::LockedData> of(const DataSpec& data) const;
  /// Returns a diagnostic for each address of the steps that the lock file lacks.
  std::vector<core::Diagnostic> missing(const std::vector<const StepSpec*>& steps) const;
  /// Fetches what the lock file lacks, or is to be upgraded and has changed at its source, and
  /// writes the file. With a dry run asks the servers only. Throws InputError if the file is
  /// frozen and lacks something.
  async::Task<> lock(const std::vector<const StepSpec*>& steps, Downloads& downloads,
                     EventSink& events, core::CancelSource& stop);
  /// Asks the servers what has changed since it was locked, many at a time. What has its digest or
  /// version in the pipeline is not asked for, and nothing is with a frozen lock file.
  async::Task<> ask(const std::vector<const StepSpec*>& steps, Downloads& downloads,
                    core::CancelSource& stop);
  /// Returns what ask() has found out about an input, for the user.
  std::vector<std::string> said_of_source(const InputSpec& input) const;

 private:
  struct Asked {
    const DataSpec* data;
    std::string address;
  };
  std::vector<Asked> addresses_of(const std::vector<const StepSpec*>& steps) const;

  const PipelineSpec& pipeline_;
  lockfile::LockFile* lock_;
  std::map<std::string, std::vector<std::string>> said_;  ///< By address.
};

}  // namespace pipeline::engine
