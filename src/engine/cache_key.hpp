/// @file
/// What a step's result depends on, as named parts: the cache key is the digest over all of them,
/// and a change can be told by its name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "orchestrators/orchestrator.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// The digests of a step's code files, as key parts. Large sets are grouped by their first folder.
/// Memoised by the set's identity.
class CodeParts {
 public:
  explicit CodeParts(store::StatIndex& stats) : stats_(stats) {}
  const std::vector<store::KeyPart>& of(const std::vector<store::TreeEntry>& files);

 private:
  store::StatIndex& stats_;
  std::map<const void*, std::vector<store::KeyPart>> fingerprint_;
};

/// The content of programs whose functions are steps. Memoised by the program's identity.
class ProgramParts {
 public:
  explicit ProgramParts(store::StatIndex& stats) : stats_(stats) {}
  /// `version X` where the step has one of its own, else the digest over the executable and its
  /// shared libraries.
  store::KeyPart of(const ProgramStep& step);

 private:
  store::StatIndex& stats_;
  std::map<const Program*, std::string> fingerprint_;
};

/// The values of the step's declared environment; the caller's own where it says so. Throws
/// EnvironmentError for a variable that the caller lacks.
StringMap resolve_environment(const StepSpec& step);
/// The secrets' values, from the caller's environment or their files. Throws EnvironmentError for
/// one that is missing.
StringMap resolve_secrets(const StepSpec& step);

/// All parts but the inputs. Of a secret only the name is in it, of a variable the digest of its
/// value.
std::vector<store::KeyPart> key_parts(const std::string& pipeline, const StepSpec& step,
                                      const StringMap& environment,
                                      const std::vector<store::KeyPart>& code,
                                      const std::string& environment_id);
/// @param content see content_of()
store::KeyPart input_part(const InputSpec& input, const std::string& content);

/// Hex digest over the parts, in their order.
std::string key_of(const std::vector<store::KeyPart>& parts);

/// What changed between two keys, a line each: `code train.py changed`, `parameter c: 1.0 -> 0.5`,
/// `new input data`.
std::vector<std::string> differences(const std::vector<store::KeyPart>& before,
                                     const std::vector<store::KeyPart>& now);

/// A template as the user wrote it.
std::string text_of(const Template& text);

}  // namespace pipeline::engine
