#include "exports/run_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/quantity.hpp"

namespace pipeline::exports {
namespace {

/// Finds the steps that made artifacts; prefers steps of the run itself.
class Makers {
 public:
  Makers(store::RunStore& store, const std::vector<store::StepRecord>& steps) : store_(store) {
    for (const auto& step : steps)
      for (const auto& output : step.outputs)
        for (const auto& name : {std::string(), step.name})
          known_.try_emplace({output.digest, name}, made(step, output));
  }

  /// Returns the artifact with its maker, if a step made it.
  /// @param made_by the step that is meant, if several made the artifact; empty: any
  TakenArtifact find(const core::Digest& digest, const std::string& made_by = {}) {
    const auto [known, is_new] =
        known_.try_emplace({digest, made_by}, TakenArtifact{.digest = digest});
    if (is_new)
      if (const auto step = store_.lineage().producer(digest, std::nullopt, made_by))
        for (const auto& output : step->outputs)
          if (output.digest == digest) known->second = made(*step, output);
    return known->second;
  }

 private:
  static TakenArtifact made(const store::StepRecord& step, const store::OutputRecord& output) {
    return {.digest = output.digest,
            .maker = step.name + "." + output.name,
            .run = step.run,
            .is_folder = output.is_directory};
  }

  store::RunStore& store_;
  /// Keyed by the arguments of find().
  std::map<std::pair<core::Digest, std::string>, TakenArtifact> known_;
};

/// Returns the name of the data for others: for a file, without its folder on this machine.
std::string public_name_of(const store::DataOrigin& data) {
  if (data.kind != "file" && data.kind != "folder") return data.source;
  return std::filesystem::path(data.source).filename().string();
}

/// Returns the facts of a step, from its record and the parts of its key.
StepFacts step_facts(store::RunStore& store, store::StepRecord record, Makers& makers) {
  constexpr std::string_view code_prefix = "code ",
                             input_prefix = "input ";  // Prefixes of key parts.
  StepFacts facts;
  if (!record.key.empty())
    for (const auto& part : store.cache().key_parts(record.key)) {
      const auto digest = store::artifact_of(part);
      if (part.name == "command") facts.command = part.value;
      if (part.name.starts_with(code_prefix) && digest)
        facts.code.emplace_back(part.name.substr(code_prefix.size()), *digest);
      if (const auto data = store::data_input(part)) {
        InputFact input{data->first, {}};
        if (data->second.digest) {
          auto& artifact = input.artifacts.emplace_back(makers.find(*data->second.digest));
          artifact.source = public_name_of(data->second);
          artifact.is_folder |= data->second.kind == "folder";
        }
        facts.inputs.push_back(std::move(input));
      }
      if (!part.name.starts_with(input_prefix)) continue;
      InputFact input{part.name.substr(input_prefix.size()), {}};
      if (digest) {
        for (const auto& [artifact, maker] : store.lineage().gathered(*digest))
          input.artifacts.push_back(makers.find(artifact, maker));
        if (input.artifacts.empty()) input.artifacts.push_back(makers.find(*digest, part.producer));
      }
      facts.inputs.push_back(std::move(input));
    }
  for (const auto& [axis, artifact] : store.lineage().matrix_inputs(record.key)) {
    const auto known = std::ranges::find(facts.inputs, axis, &InputFact::name);
    auto& input =
        known == facts.inputs.end() ? facts.inputs.emplace_back(InputFact{axis, {}}) : *known;
    input.artifacts = {makers.find(artifact)};
  }
  if (record.attempts > 0 && record.ended == WallTime{})
    record.ended = record.started;  // The driver was killed.
  facts.record = std::move(record);
  return facts;
}

}  // namespace

RunFacts facts_of(store::RunStore& store, const store::RunRecord& run, std::string version) {
  RunFacts facts{run, {}, std::move(version)};
  if (run.ended == WallTime{}) facts.run.ended = run.started;  // The driver was killed.
  auto steps = store.runs().steps(run.id);
  Makers makers(store, steps);
  for (auto& step : steps) facts.steps.push_back(step_facts(store, std::move(step), makers));
  return facts;
}

std::optional<RunFacts> facts_of_maker(store::RunStore& store, const core::Digest& artifact,
                                       const std::string& step, const std::string& run,
                                       std::string version) {
  auto maker = store.lineage().producer(artifact, std::nullopt, step, run);
  const auto making_run = maker ? store.runs().find(maker->run) : std::nullopt;
  if (!making_run) return std::nullopt;
  RunFacts facts{*making_run, {}, std::move(version)};
  Makers makers(store, store.runs().steps(making_run->id));
  facts.steps.push_back(step_facts(store, std::move(*maker), makers));
  return facts;
}

std::string rfc3339(WallTime time) {
  auto text = core::format_time(time);
  if (!text.empty()) text[10] = 'T';
  return text;
}

}  // namespace pipeline::exports
