/// @file
/// Everything that a step's result depends on, as named parts: the cache key is the digest over all
/// parts, and a change is reported by the part's name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "orchestrators/orchestrator.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// If the file is a notebook, replaces its digest by that of its code cells, because the outputs
/// and metadata in a notebook change each time that it is run.
/// @param path where the file's content is
void digest_notebook(store::TreeFile& file, const std::filesystem::path& path);
/// Returns the digests of code files as key parts. Large sets are grouped by their first folder.
std::vector<store::KeyPart> code_parts(std::vector<store::TreeFile> files);
/// Replaces the code parts of a key. Returns false if the key has none, or has these already.
bool replace_code(std::vector<store::KeyPart>& parts, const std::vector<store::KeyPart>& code);

/// The code_parts() of a step's files, memoised by the address of the vector of files.
class CodeParts {
 public:
  explicit CodeParts(store::StatIndex& stats) : stats_(stats) {}
  const std::vector<store::KeyPart>& of(const std::vector<store::TreeEntry>& files);

 private:
  store::StatIndex& stats_;
  std::map<const void*, std::vector<store::KeyPart>> parts_;
};

/// The content of programs whose functions are steps. Memoised by the program's address.
class ProgramParts {
 public:
  explicit ProgramParts(store::StatIndex& stats) : stats_(stats) {}
  /// Returns `version X` if the step has its own version, else the digest over the executable and
  /// its shared libraries.
  store::KeyPart of(const ProgramStep& step);

 private:
  store::StatIndex& stats_;
  std::map<const Program*, std::string> digests_;
};

/// Returns the values of the step's declared environment, some of them from the user's environment.
/// Throws EnvironmentError for a variable that the user has not set.
StringMap resolve_environment(const StepSpec& step);
/// Returns the secrets' values, from the user's environment or their files. Throws EnvironmentError
/// for a missing secret.
StringMap resolve_secrets(const StepSpec& step);

/// Returns all parts of the key except the inputs. The parts contain only the names of secrets, and
/// only digests of the values of variables.
std::vector<store::KeyPart> key_parts(const std::string& pipeline, const StepSpec& step,
                                      const StringMap& environment,
                                      const std::vector<store::KeyPart>& code,
                                      const std::string& environment_id);
/// @param content see content_of()
store::KeyPart input_part(const InputSpec& input, const std::string& content);

/// Returns a hex digest over the parts, in order.
std::string key_of(const std::vector<store::KeyPart>& parts);

/// Returns the differences between two keys, one line each: `code train.py changed`, `parameter c:
/// 1.0 -> 0.5`, `new input data`.
std::vector<std::string> differences(const std::vector<store::KeyPart>& before,
                                     const std::vector<store::KeyPart>& now);

/// Returns the template as the user wrote it.
std::string text_of(const Template& text);

}  // namespace pipeline::engine
