#include "engine/cache/publishing.hpp"

#include "engine/clock.hpp"

namespace pipeline::engine {

std::vector<std::pair<std::string, store::PublishedVersion>> versions_of(
    const StepSpec& step, const std::string& run, const std::vector<store::OutputRecord>& outputs) {
  std::vector<std::pair<std::string, store::PublishedVersion>> versions;
  for (const auto& [output_name, published_name] : step.publish)
    for (const auto& output : outputs) {
      if (output.name != output_name) continue;
      store::PublishedVersion version;
      version.run = run;
      version.step = step.name;
      version.output = output;
      version.time = wall_now();
      versions.emplace_back(published_name, std::move(version));
    }
  return versions;
}

}  // namespace pipeline::engine
