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

  /// Returns the entry of an artifact, as lineage_of() does; null if no step made the artifact.
  /// @param used_at time of use: another step may have made the same artifact later
  /// @param made_by,run the step that is meant, if several made the artifact, and its run
  json entry_of(const core::Digest& artifact, std::optional<WallTime> used_at = std::nullopt,
                const std::string& made_by = {}, const std::string& run = {}) {
    const auto step = store_.lineage().producer(artifact, used_at, made_by, run);
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
    if (auto names = published_as(artifact); !names.empty()) entry["published"] = std::move(names);
    return entry;
  }

 private:
  /// Returns the names and versions under which the artifact is published, such as `model@3`.
  json published_as(const core::Digest& artifact) {
    if (!names_) {
      names_.emplace();
      for (const auto& name : store_.published().names())
        names_->push_back(store_.published().find(name));
    }
    auto list = json::array();
    for (const auto& name : *names_)
      if (const auto* version = name.find_content(artifact))
        list.push_back(name.name + "@" + std::to_string(version->version));
    return list;
  }

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
      if (const auto data = store::data_input(part))
        entry["inputs"][data->first] = data_of(data->second, step.started);
      if (!part.name.starts_with("input ")) continue;
      const auto source = store::artifact_of(part);
      entry["inputs"][part.name.substr(6)] =
          source ? source_of(*source, step.started, part.producer) : json();
    }
    // The artifact that an axis takes its values from: a value may be only an entry of a folder.
    for (const auto& [axis, artifact] : store_.lineage().matrix_inputs(step.key))
      entry["inputs"][axis] = entry_of(artifact, step.started);
  }

  /// Returns data from outside; of a published artifact also the step that made it.
  json data_of(const store::DataOrigin& data, WallTime used_at) {
    auto entry = json::object();
    if (data.kind == "artifact" && data.digest)
      if (auto made = entry_of(*data.digest, used_at); !made.is_null()) entry = std::move(made);
    entry["data"] = {{"kind", data.kind}, {"source", data.source}};
    if (data.digest) entry["digest"] = data.digest->hex();
    return entry;
  }

  /// Returns the source of an input; a list of sources for a gathered input.
  json source_of(const core::Digest& input, WallTime used_at, const std::string& made_by) {
    const auto pieces = store_.lineage().gathered(input);
    if (pieces.empty()) return entry_of(input, used_at, made_by);
    auto list = json::array();
    for (const auto& piece : pieces) list.push_back(entry_of(piece.artifact, used_at, piece.step));
    return list;
  }

  store::RunStore& store_;
  std::set<std::string> seen_;
  std::optional<std::vector<store::PublishedName>> names_;  ///< Read once.
};

}  // namespace

json lineage_of(store::RunStore& store, const core::Digest& artifact, const std::string& step,
                const std::string& run) {
  return Lineage(store).entry_of(artifact, std::nullopt, step, run);
}

}  // namespace pipeline::report
