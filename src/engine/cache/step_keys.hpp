/// @file
/// The keys of steps, and the earlier successes with the same keys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cache/cache_key.hpp"
#include "engine/data/data_input.hpp"
#include "engine/graph/gather.hpp"
#include "engine/services.hpp"
#include "engine/types.hpp"

namespace pipeline::engine {

/// Sets OutputRecord::temp of the outputs as the step's spec now declares it.
void mark_temporary(const StepSpec& step, std::vector<store::OutputRecord>& outputs);

class StepKeys {
 public:
  explicit StepKeys(const Services& services)
      : services_(services),
        pipeline_(services.pipeline),
        store_(services.store),
        artifacts_(services.artifacts),
        code_(services.code),
        code_parts_(services.stats),
        program_parts_(services.stats),
        data_(services) {}

  /// Returns all parts except the inputs.
  std::vector<store::KeyPart> own_parts(const StepSpec& step,
                                        const orchestrators::Environment& environment);
  /// Returns the step's key.
  /// @param environment its `id` must be known
  StepKey key(const StepSpec& step, const orchestrators::Environment& environment,
              const OutputsOf& outputs);
  /// Returns the key of the code that ran, which may have changed since the step's key was made.
  /// @param tree  the digest of that code, hex
  /// @param files the files in that tree
  StepKey as_it_ran(StepKey key, const std::string& tree,
                    const std::vector<store::TreeFile>& files);
  /// Reads the step's code now, so that later calls of key() need not.
  void read_code(const StepSpec& step) { code_parts_.of(code_.files(step)); }
  /// Returns the earlier success with this key if its artifacts are at hand, and removes its cache
  /// entry if they are gone. The caller decides whether the step may reuse the success.
  /// @param needs_all a temporary output that was removed counts as missing
  std::optional<store::CacheEntry> success_of(const StepSpec& step, const std::string& key,
                                              bool needs_all = false);
  DataInputs& data() { return data_; }

 private:
  const Services services_;
  const PipelineSpec& pipeline_;
  store::RunStore& store_;
  store::ArtifactStore& artifacts_;
  const CodeProvider& code_;
  CodeParts code_parts_;
  std::map<std::string, std::vector<store::KeyPart>> parts_of_trees_;  ///< Keyed by digest, hex.
  ProgramParts program_parts_;
  DataInputs data_;
};

}  // namespace pipeline::engine
