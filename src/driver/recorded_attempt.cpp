#include "driver/recorded_attempt.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "driver/origin.hpp"
#include "driver/recorded_steps.hpp"

namespace pipeline::driver {

RecordedAttempt recorded_attempt(store::RunStore& store, store::RunRecord run,
                                 const std::string& name, unsigned number) {
  auto step = recorded_step(store, run, name);
  if (step.status == StepStatus::cached) {
    if (is_from_remote_cache(step.reused_from))
      throw core::InputError("'" + step.name + "' was reused from " + step.reused_from +
                             ": its attempt is known on the machine that ran it");
    auto origin = store.runs().find(step.reused_from);
    if (!origin || origin->id != step.reused_from)
      throw core::InputError("'" + step.name + "' was reused from run " + step.reused_from +
                             ", which has been removed");
    run = std::move(*origin);
    step = recorded_step(store, run, step.name);
  }
  const auto attempts = store.attempts().list(run.id, step.name);
  if (attempts.empty())
    throw core::InputError("'" + step.name + "' has not been started in run " + run.id +
                           (step.message.empty() ? "" : ": " + step.message));
  auto wanted = attempt_numbered(attempts, number);
  return {std::move(run), std::move(step), std::move(wanted)};
}

store::AttemptRecord attempt_numbered(const std::vector<store::AttemptRecord>& attempts,
                                      unsigned number) {
  if (number == 0) return attempts.back();
  const auto wanted = std::ranges::find(attempts, number, &store::AttemptRecord::number);
  if (wanted != attempts.end()) return *wanted;
  const auto& any = attempts.front();
  throw core::InputError("'" + any.step + "' has no attempt " + std::to_string(number) +
                         " in run " + any.run + ", only " +
                         core::counted(attempts.size(), "attempt"));
}

core::Digest code_of(Workspace& workspace, const RecordedAttempt& found) {
  const auto& commit = found.run.git_commit;
  const std::string source =
      commit.empty() ? "run the step again: its code is stored then"
                     : "run " + found.run.id + " began at git commit " + commit +
                           (found.run.git_dirty ? ", with changes that were not committed" : "");
  const std::string name = "the code of attempt " + std::to_string(found.attempt.number) + " of '" +
                           found.step.name + "' ";
  if (found.attempt.code.empty())
    throw core::InputError(name + "is not known: its driver was killed, or had an earlier version",
                           source);
  const auto digest = core::Digest::from_hex(found.attempt.code);
  if (!workspace.artifacts().has(digest))
    throw core::InputError(name + "is not stored on this machine", source);
  if (!workspace.artifacts().is_intact(digest))
    throw core::EnvironmentError(name + "is damaged in the artifact store", {source});
  return digest;
}

std::vector<store::TreeEntry> code_files(const std::filesystem::path& stored) {
  std::vector<store::TreeEntry> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(stored))
    if (entry.is_regular_file())
      files.push_back({entry.path().lexically_relative(stored).generic_string(), entry.path()});
  std::ranges::sort(files, {}, &store::TreeEntry::relative_path);
  return files;
}

}  // namespace pipeline::driver
