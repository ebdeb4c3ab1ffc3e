/// @file
/// The port between the engine and the orchestrators, which run steps in one kind of environment:
/// processes, containers or cluster Jobs. It has three parts, each with a header of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/diagnostic.hpp"
#include "orchestrators/attempts.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "orchestrators/environments.hpp"
#include "orchestrators/gpus.hpp"
#include "orchestrators/layout.hpp"

namespace pipeline::orchestrators {

/// The features of an orchestrator. The engine rejects or reports settings that exceed them.
struct Capabilities {
  std::string name;  ///< `docker`, `local`.
  Traits traits = {};
  bool gpus = false;  ///< Steps may ask for GPUs.
  /// The GPUs are those that NVML shows on this machine, so the engine reserves them; otherwise the
  /// orchestrator itself chooses GPUs.
  bool gpus_of_this_machine = true;
  /// A step may name specific devices; a cluster chooses them itself.
  bool explicit_devices = false;
  bool shells = false;         ///< Attempt::shell is honoured.
  bool services = false;       ///< StepSpec::services are honoured.
  bool memory_limits = false;  ///< ResourceSettings::memory is enforced.
  bool cpu_limits = false;     ///< ResourceSettings::cpu_count is enforced.
  /// Attempts continue when the driver is killed, and another driver can join them.
  bool outlives_driver = false;
  bool reports_begin = false;      ///< AttemptIo::on_began is called; until then a step's timeout
                                   ///< does not count.
  bool protects_inputs = false;    ///< No step can write to its inputs, whatever user it runs as.
  bool fetches_addresses = false;  ///< AttemptInput::remote is honoured.
  bool takes_elsewhere = false;    ///< AttemptInput::elsewhere is honoured.
  unsigned open_files = 8;         ///< About how many files an attempt keeps open in this process.
  bool on_this_machine = true;     ///< Attempts use this machine's CPUs: by default, as many run
                                   ///< concurrently as there are CPUs.
  /// Names of the folders that the orchestrator creates in Attempt::scratch. When an attempt
  /// begins, they may exist without files, left from an earlier attempt.
  std::vector<std::string> scratch_folders = {};
  unsigned infrastructure_retries = 0;  ///< Default number of retries of attempts that ended
                                        ///< because of an infrastructure failure.
};

class Orchestrator : public EnvironmentProvider, public AttemptRunner, public GpuProvider {
 public:
  virtual const Capabilities& capabilities() const = 0;
  /// Capabilities of the orchestrator that runs this step, in a run with several orchestrators.
  virtual const Capabilities& capabilities_of(const StepSpec& step) const {
    (void)step;
    return capabilities();
  }

  /// Returns everything that prevents these steps from running here, as far as this can be found
  /// out without creating anything. The position of each diagnostic is its step's line. Throws
  /// EnvironmentError if the orchestrator itself is not available.
  virtual async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) {
    (void)steps;
    co_return std::vector<core::Diagnostic>{};
  }

  /// Returns for each of these steps a text that says how long the step would wait in the queue of
  /// a cluster, as far as the cluster answers within seconds. A text is empty if the step would not
  /// wait, or if nothing is known. There may be fewer texts than steps; nothing is known of the
  /// last steps then.
  virtual async::Task<std::vector<std::string>> expected_waits(
      const std::vector<const StepSpec*>& steps) {
    (void)steps;
    co_return std::vector<std::string>{};
  }

  /// Returns the name and version of the service that the connection fields of the profile lead to,
  /// for `pipe doctor`; empty if there is no such service. Throws EnvironmentError if the service
  /// does not answer.
  virtual async::Task<std::string> service() { co_return std::string(); }

  /// Removes files that were made from images. Files that a job uses are kept; of the others, those
  /// for which `is_unwanted` returns true for path and size are removed. Throws EnvironmentError if
  /// the files that jobs use cannot be found out.
  virtual async::Task<> remove_image_files(
      const std::function<bool(const std::filesystem::path&, Bytes)>& is_unwanted) {
    (void)is_unwanted;
    co_return;
  }
};

}  // namespace pipeline::orchestrators
