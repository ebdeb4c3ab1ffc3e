#include "report/lineage.hpp"

#include <set>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/quantity.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

/// Follows an artifact back to the step that made it, and through the step's inputs to the sources.
class Lineage {
 public:
  explicit Lineage(store::RunStore& store) : store_(store) {}

  /// Returns null if no step made the artifact. @param by time of use: another step may have made
  /// the same artifact later @param made_by the step that is meant, if several made the artifact
  json of(const core::Digest& artifact, std::optional<WallTime> by = std::nullopt,
          const std::string& made_by = {}) {
    const auto step = store_.lineage().producer(artifact, by, made_by);
    if (!step) return nullptr;
    json entry{{"digest", artifact.hex()}, {"run", step->run}, {"step", step->name}};
    for (const auto& output : step->outputs)
      if (output.digest == artifact) {
        entry["output"] = output.name;
        entry["bytes"] = output.bytes;
        if (output.temp) entry["temporary"] = true;
      }
    if (!seen_.insert(artifact.hex() + step->run + "." + step->name).second) {
      entry["shown_before"] = true;
      return entry;
    }
    add_run(*step, entry);
    add_key(*step, entry);
    return entry;
  }

 private:
  void add_run(const store::StepRecord& step, json& entry) {
    entry["attempt"] = step.attempts;
    entry["image"] = step.image;
    entry["started"] = core::format_time(step.started);
    entry["parameters"] = core::parse_json(step.parameters);
    const auto run = store_.runs().find(step.run);
    if (!run) return;
    entry["pipeline"] = run->pipeline;
    entry["file"] = run->file;
    if (!run->git_commit.empty())
      entry["git"] = {{"commit", run->git_commit}, {"dirty", run->git_dirty}};
  }

  void add_key(const store::StepRecord& step, json& entry) {
    entry["code"] = json::object();
    entry["inputs"] = json::object();
    for (const auto& part : store_.cache().key_parts(step.key)) {
      if (part.name == "command") entry["command"] = part.value;
      if (part.name.starts_with("code ")) entry["code"][part.name.substr(5)] = part.value;
      if (!part.name.starts_with("input ")) continue;
      const auto source = store::artifact_of(part);
      entry["inputs"][part.name.substr(6)] =
          source ? source_of(*source, step.started, part.producer) : json();
    }
    // An entry of a folder is not an artifact itself.
    for (const auto& [axis, artifact] : store_.lineage().matrix_inputs(step.key))
      entry["inputs"][axis] = of(artifact, step.started);
  }

  /// Returns the source of an input; a list of sources for a gathered input.
  json source_of(const core::Digest& input, WallTime by, const std::string& made_by) {
    const auto pieces = store_.lineage().gathered(input);
    if (pieces.empty()) return of(input, by, made_by);
    auto list = json::array();
    for (const auto& piece : pieces) list.push_back(of(piece.artifact, by, piece.step));
    return list;
  }

  store::RunStore& store_;
  std::set<std::string> seen_;
};

}  // namespace

json lineage_of(store::RunStore& store, const core::Digest& artifact) {
  return Lineage(store).of(artifact);
}

}  // namespace pipeline::report
