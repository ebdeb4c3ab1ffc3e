#include "report/uses.hpp"

#include <algorithm>
#include <set>

#include "core/quantity.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

/// Follows an artifact to the steps that took it, and to what was made of their outputs.
class Uses {
 public:
  explicit Uses(store::RunStore& store) : store_(store) {}

  /// Returns the list of the artifact's users, as uses_of() does.
  /// @param since time at which the artifact was made; a step that began earlier took an equal one
  json users_of(const core::Digest& artifact, WallTime since = {}) {
    auto users = json::array();
    for (const auto& step : store_.lineage().consumers(artifact))
      if (step.started >= since) users.push_back(entry_of(step, artifact));
    return users;
  }

 private:
  json entry_of(const store::StepRecord& step, const core::Digest& artifact) {
    json entry{{"run", step.run},
               {"step", step.name},
               {"inputs", inputs_of(step, artifact)},
               {"started", core::format_time(step.started)},
               {"outputs", json::array()}};
    if (const auto run = store_.runs().find(step.run)) entry["pipeline"] = run->pipeline;
    for (const auto& output : step.outputs) {
      json made{{"output", output.name}, {"digest", output.digest.hex()}, {"bytes", output.bytes}};
      if (seen_.insert(output.digest.hex() + step.run + "." + step.name).second)
        made["used"] = users_of(output.digest, step.ended);
      else
        made["shown_before"] = true;
      entry["outputs"].push_back(std::move(made));
    }
    return entry;
  }

  /// Returns the names under which the step took the artifact.
  json inputs_of(const store::StepRecord& step, const core::Digest& artifact) {
    auto names = json::array();
    // A folder's files are parts of the key too, `data NAME/PATH`; all count as the input NAME.
    std::set<std::string> data;
    for (const auto& part : store_.cache().key_parts(step.key)) {
      if (part.name.starts_with("data ") && names_content(part, artifact)) {
        const auto name = part.name.substr(5, part.name.find('/') - 5);
        if (data.insert(name).second) names.push_back(name);
      }
      if (!part.name.starts_with("input ")) continue;
      const auto input = store::artifact_of(part);
      if (!input) continue;
      const auto pieces = store_.lineage().gathered(*input);
      if (*input == artifact ||
          std::ranges::find(pieces, artifact, &store::GatheredPiece::artifact) != pieces.end())
        names.push_back(part.name.substr(6));
    }
    for (const auto& [axis, taken] : store_.lineage().matrix_inputs(step.key))
      if (taken == artifact) names.push_back(axis);
    return names;
  }

  /// Returns true if the part's value or, for data, its origin (KeyPart::producer) has the digest.
  /// The digest of a folder as a whole is only in the origin.
  static bool names_content(const store::KeyPart& part, const core::Digest& content) {
    const auto digest = content.hex();
    return part.value.find(digest) != part.value.npos ||
           part.producer.find(digest) != part.producer.npos;
  }

  store::RunStore& store_;
  std::set<std::string> seen_;
};

}  // namespace

json uses_of(store::RunStore& store, const core::Digest& artifact) {
  return Uses(store).users_of(artifact);
}

}  // namespace pipeline::report
