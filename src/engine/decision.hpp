/// @file
/// Whether a step has to run: its key from all that it depends on, and the earlier success that has
/// the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cache_key.hpp"
#include "engine/gather.hpp"
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
        program_parts_(services.stats) {}

  /// All parts but the inputs; `environment_id` is not empty.
  std::vector<store::KeyPart> own_parts(const StepSpec& step, const std::string& environment_id);
  StepKey key(const StepSpec& step, const std::string& environment_id, const OutputsOf& outputs);
  /// The earlier success with this key, if its artifacts are there and whole. Whether the step may
  /// use it is another question.
  std::optional<store::CacheEntry> success_of(const std::string& key);

 private:
  const PipelineSpec& pipeline_;
  store::RunStore& runs_;
  store::ArtifactStore& artifacts_;
  const CodeProvider& code_;
  CodeParts code_parts_;
  ProgramParts program_parts_;
};

/// The steps that a user calls `name`: `train` (all of its instances, where it has a matrix),
/// `train[c=1]`, `train[0]`, `train.c-1`; as indices. Throws InputError, with the likely name, if
/// there is none.
std::vector<std::size_t> steps_called(const PipelineSpec& pipeline, const std::string& name);

/// The steps that `only_step` needs, itself included, as indices in the file's order; all of them
/// if it is empty. Named as for steps_called().
std::vector<std::size_t> select_steps(const PipelineSpec& pipeline, const std::string& only_step);

/// For each of `selected` the positions in `selected` of the steps that it needs.
std::vector<std::vector<std::uint32_t>> needs_of(const PipelineSpec& pipeline,
                                                 const std::vector<std::size_t>& selected);

}  // namespace pipeline::engine
