#include "engine/cache/elsewhere.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "settings/remote_store.hpp"

namespace pipeline::engine {
namespace {

/// Returns true if the matrix takes its values from this output of the step.
bool takes_items(const MatrixSpec& matrix, const StepSpec& step, const std::string& output) {
  return std::ranges::any_of(matrix.axes, [&](const AxisSpec& axis) {
    if (!axis.items || axis.items->source.output != output) return false;
    const auto& maker = axis.items->source.step;
    // An instance or a round of `load` is called `load.` and more.
    return maker == step.name || step.name.starts_with(maker + ".");
  });
}

/// Adds to the outcome how the output was stored, for the attempt's record.
void note_storage(const std::string& output, const std::string& way, AttemptOutcome& outcome) {
  outcome.stored += (outcome.stored.empty() ? "" : "; ") + output + ": " + way;
}

}  // namespace

bool may_stay_elsewhere(const PipelineSpec& pipeline, const StepSpec& step,
                        const std::string& output) {
  // Without a result in the cache that names it, a clean-up of the remote store would remove it.
  if (!step.cache || step.nodes) return false;
  if (!step.publish_to.empty() || step.publish.contains(output)) return false;
  return std::ranges::none_of(
             step.outputs,
             [&](const OutputSpec& each) { return each.name == output && each.metrics; }) &&
         std::ranges::none_of(pipeline.steps, [&](const StepSpec& reader) {
           return reader.matrix && takes_items(*reader.matrix, step, output);
         });
}

std::vector<orchestrators::AttemptOutput> attempt_outputs(const PipelineSpec& pipeline,
                                                          const StepSpec& step) {
  std::vector<orchestrators::AttemptOutput> outputs;
  for (const auto& output : step.outputs)
    outputs.push_back({output.name, output.file_name, output.from_all_nodes,
                       may_stay_elsewhere(pipeline, step, output.name)});
  return outputs;
}

void add_stored(const OutputSpec& output, const store::StoredArtifact& stored,
                AttemptOutcome& outcome) {
  outcome.outputs.push_back({output.name, output.file_name, stored.digest, stored.is_directory,
                             stored.bytes, output.temp});
  outcome.holds.push_back(stored.hold);
  if (!stored.way.empty()) note_storage(output.name, stored.way, outcome);
}

bool take_elsewhere(store::ArtifactStore& artifacts, const OutputSpec& output,
                    AttemptOutcome& outcome) {
  const auto found = outcome.result.elsewhere.find(output.name);
  if (found == outcome.result.elsewhere.end()) return false;
  const auto& [hex, place] = found->second;
  const auto digest = core::Digest::from_hex(hex);
  outcome.holds.push_back(artifacts.hold(digest));
  artifacts.note_elsewhere(digest, place);
  outcome.outputs.push_back(
      {output.name, output.file_name, digest, place.is_directory, place.bytes, output.temp});
  note_storage(output.name, "stays in the remote store", outcome);
  return true;
}

bool is_at_hand(const Services& services, const StepSpec& step, const store::OutputRecord& output) {
  if (services.artifacts.looks_whole(output.digest)) return true;
  const auto place = services.artifacts.elsewhere(output.digest);
  if (!place || !services.remote_store) return false;
  const auto store = settings::remote_store_of(core::parse_json(place->store));
  return store.url == services.remote_store->url &&
         may_stay_elsewhere(services.pipeline, step, output.name);
}

}  // namespace pipeline::engine
