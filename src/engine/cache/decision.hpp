/// @file
/// Decides whether a step has to run: computes its key from all dependencies, and looks up an
/// earlier success with the same key.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/cache_key.hpp"
#include "engine/data/data_input.hpp"
#include "engine/graph/gather.hpp"
#include "engine/services.hpp"

namespace pipeline::engine {

struct StepKey {
  std::string key;
  std::vector<store::KeyPart> parts;
};

class Decisions {
 public:
  explicit Decisions(const Services& services)
      : pipeline_(services.pipeline),
        runs_(services.runs),
        artifacts_(services.artifacts),
        code_(services.code),
        code_parts_(services.stats),
        program_parts_(services.stats),
        data_(services) {}

  /// Returns all parts except the inputs; `environment_id` must not be empty.
  std::vector<store::KeyPart> own_parts(const StepSpec& step, const std::string& environment_id);
  StepKey key(const StepSpec& step, const std::string& environment_id, const OutputsOf& outputs);
  /// Returns the key of what ran: the code may have changed since the step's key was made.
  /// @param tree the digest of the code that ran, hex @param files what that tree has
  StepKey as_it_ran(StepKey key, const std::string& tree,
                    const std::vector<store::TreeFile>& files);
  /// Reads the step's code, which takes as long as it is large; later keys need not.
  void read_code(const StepSpec& step) { code_parts_.of(code_.files(step)); }
  /// Returns the earlier success with this key if its artifacts exist and are intact. The caller
  /// decides whether the step may reuse it.
  std::optional<store::CacheEntry> success_of(const std::string& key);
  DataInputs& data() { return data_; }

 private:
  const PipelineSpec& pipeline_;
  store::RunStore& runs_;
  store::ArtifactStore& artifacts_;
  const CodeProvider& code_;
  CodeParts code_parts_;
  std::map<std::string, std::vector<store::KeyPart>> parts_of_trees_;
  ProgramParts program_parts_;
  DataInputs data_;
};

/// Returns the indices of the steps called `name`: `train` (all of its instances, if it has a
/// matrix), `train[c=1]`, `train[0]`, `train.c-1`. Throws InputError, with the likely name, if
/// there is none.
std::vector<std::size_t> steps_called(const PipelineSpec& pipeline, const std::string& name);

/// Returns the indices of the steps that `only_step` depends on, and of itself, in the file's
/// order; all steps if it is empty. The name is interpreted as by steps_called().
std::vector<std::size_t> select_steps(const PipelineSpec& pipeline, const std::string& only_step);

/// Returns the names of the steps that run although they have a result: those called by one of
/// `force` or `from`, and the steps that depend on the latter. Throws InputError for an unknown
/// name.
std::set<std::string_view> forced_steps(const PipelineSpec& pipeline,
                                        const std::vector<std::string>& force,
                                        const std::vector<std::string>& from);

/// Returns true if the step, or the step that it is an instance of, is one of these.
inline bool is_forced(const std::set<std::string_view>& forced, const StepSpec& step) {
  return forced.contains(step.name) || (step.instance && forced.contains(step.instance->of));
}

/// Returns for each of `selected` the positions in `selected` of the steps that it depends on. A
/// step with a `run_on` also waits for those that it depends on indirectly: one of them may fail
/// when the step in between is skipped already.
std::vector<std::vector<std::uint32_t>> needs_of(const PipelineSpec& pipeline,
                                                 const std::vector<std::size_t>& selected);

}  // namespace pipeline::engine
