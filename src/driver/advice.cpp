#include "driver/advice.hpp"

#include <set>

#include "core/file.hpp"
#include "core/text.hpp"
#include "driver/unified_diff.hpp"
#include "model/instance.hpp"
#include "spec/resource_places.hpp"

namespace pipeline::driver {

std::vector<AdvisedStep> advised_steps(const PipelineSpec& pipeline, store::RunStore& store) {
  const auto uses = report::step_uses(store, pipeline.name);
  std::vector<AdvisedStep> steps;
  std::set<std::string_view> seen;
  for (const auto& step : pipeline.steps) {
    const auto name = model::base_name(step.name);
    const auto used = uses.find(std::string(name));
    if (used == uses.end() || !seen.insert(name).second) continue;
    const auto& asked = step.settings->resources;
    steps.push_back({std::string(name), asked, used->second, report::advise(asked, used->second)});
  }
  return steps;
}

FilePatch::FilePatch(const std::filesystem::path& file, const std::vector<AdvisedStep>& steps)
    : name_(file.filename().string()), text_(core::read_file(file)) {
  const spec::ResourcePlaces places(text_);
  for (const auto& step : steps)
    for (const auto& advice : step.advice) {
      if (const auto place = places.find(step.name, advice.setting))
        changes_[place->line].emplace(place->column, Change{place->length, advice.value});
      else
        unpatched_.push_back(step.name + ": {settings: {resources: {" + advice.setting + ": " +
                             advice.value + "}}}");
    }
}

std::string FilePatch::diff() const {
  const auto lines = core::lines_of(text_);
  std::map<unsigned, std::string> changed;
  for (const auto& [number, changes] : changes_) {
    std::string line(lines.at(number - 1));
    // Begins at the right, so that the columns of the other changes stay true.
    for (auto change = changes.rbegin(); change != changes.rend(); ++change)
      line.replace(change->first - 1, change->second.length, change->second.value);
    changed.emplace(number, std::move(line));
  }
  return unified_diff(name_, text_, changed);
}

}  // namespace pipeline::driver
