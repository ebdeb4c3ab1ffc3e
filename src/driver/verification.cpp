#include "driver/verification.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "driver/detached_record.hpp"
#include "driver/storage.hpp"

namespace pipeline::driver {
namespace {

/// A use of an artifact, as an output of a step.
struct Use {
  std::string run, step, output;
  std::uint64_t bytes = 0;
  bool may_be_elsewhere = false;  ///< A remote store has it, or only detached runs used it.
};

/// Returns each artifact that a run's record names, with one of its uses.
std::map<core::Digest, Use> uses_of(store::RunStore& store, const store::ArtifactStore& artifacts,
                                    const std::vector<store::RunRecord>& recorded) {
  std::map<core::Digest, Use> uses;
  for (const auto& run : recorded) {
    const bool may_be_elsewhere = run.driver.has_lease() || detached_of(store, run.id);
    for (const auto& step : store.runs().steps(run.id))
      for (const auto& output : step.outputs) {
        if (output.temp && !artifacts.is_known(output.digest)) continue;
        auto& use =
            uses.try_emplace(output.digest, Use{run.id, step.name, output.name, output.bytes, true})
                .first->second;
        use.may_be_elsewhere =
            use.may_be_elsewhere && (may_be_elsewhere || artifacts.elsewhere(output.digest));
      }
  }
  return uses;
}

/// Adds published artifacts, which stay when the runs that made them are removed.
void add_published(store::RunStore& store, const store::ArtifactStore& artifacts,
                   std::map<core::Digest, Use>& uses) {
  for (const auto& name : store.published().names())
    for (const auto& version : store.published().find(name).versions) {
      const auto& output = version.output;
      const bool is_elsewhere = artifacts.elsewhere(output.digest).has_value();
      uses.try_emplace(output.digest,
                       Use{version.run, version.step, output.name, output.bytes, is_elsewhere});
    }
}

/// Describes an artifact that is missing or damaged.
/// @param use null if no run uses the artifact
/// @param is_there the artifact exists, but is damaged
ArtifactFinding finding_of(const core::Digest& digest, const Use* use, bool is_there) {
  using State = ArtifactFinding::State;
  ArtifactFinding finding{is_there                       ? State::damaged
                          : use && use->may_be_elsewhere ? State::not_here
                                                         : State::missing,
                          digest,
                          {},
                          {}};
  if (use) {
    finding.run = use->run;
    finding.output = use->step + "." + use->output;
  }
  return finding;
}

}  // namespace

std::size_t Verification::problems() const {
  return database.size() +
         static_cast<std::size_t>(std::ranges::count_if(findings, [](const auto& finding) {
           return finding.state != ArtifactFinding::State::not_here;
         }));
}

Verification verify(Workspace& workspace, const std::string& run) {
  auto& store = workspace.existing_store();
  const auto kept = store::StateLock::keep_artifacts(store.folder());
  Verification result;
  result.database = store.check();
  if (!result.database.empty()) return result;
  auto& artifacts = workspace.artifacts();
  auto uses =
      uses_of(store, artifacts,
              run.empty() ? store.runs().list() : std::vector{workspace.find_run(store, run)});
  if (run.empty()) add_published(store, artifacts, uses);
  std::set<core::Digest> all;
  for (const auto& [digest, use] : uses) all.insert(digest);
  if (run.empty())
    for (const auto& digest : artifacts.all()) all.insert(digest);
  for (const auto& digest : all) {
    const auto found = uses.find(digest);
    const auto* use = found == uses.end() ? nullptr : &found->second;
    const bool is_there = artifacts.has(digest);
    if (is_there && artifacts.is_intact(digest)) {
      ++result.artifacts;
      result.bytes += use ? use->bytes : size_of(artifacts.path(digest));
    } else {
      result.findings.push_back(finding_of(digest, use, is_there));
    }
  }
  return result;
}

}  // namespace pipeline::driver
