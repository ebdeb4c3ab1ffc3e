#include "orchestrators/slurm/wait_forecast.hpp"

#include <map>

#include "core/quantity.hpp"
#include "orchestrators/slurm/job_script.hpp"
#include "orchestrators/slurm/preflight.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_questions = 8;
constexpr auto shortest_wait = 1min;  // Shorter waits are not reported.

std::vector<std::string> options_of(const StepSpec& step, const StringMap& connection,
                                    const std::vector<std::string>& gres_types) {
  const AttemptSpec attempt{.step = step, .number = 1};
  auto options = resource_options(attempt, connection, gres_types);
  options.push_back("--nodes=" + std::to_string(step.nodes ? step.nodes.count : 1));
  return options;
}

std::string text_of(std::chrono::seconds wait) {
  if (wait < shortest_wait) return {};
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(wait);
  return "Slurm expects it to wait " + core::format_duration(minutes);
}

}  // namespace

async::Task<std::vector<std::string>> forecast_waits(Client& client, const StringMap& connection,
                                                     std::vector<const StepSpec*> steps) {
  std::vector<std::string> texts(steps.size()), gres_types;
  std::map<std::vector<std::string>, std::string> known;
  try {
    for (const auto* step : steps) {
      if (!gres_types.empty() || !settings::gpu_request(step->settings->resources).model) continue;
      std::vector<std::string> command{"sinfo", "--noheader", "--all",
                                       std::string("--format=") + partition_format};
      const auto output = co_await client.output_of(std::move(command), Client::short_timeout);
      gres_types = gres_types_of(parse_partitions(output));
      break;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      auto options = options_of(*steps[i], connection, gres_types);
      const auto found = known.find(options);
      if (found != known.end()) {
        texts[i] = found->second;
      } else if (known.size() < max_questions) {
        const auto wait = co_await client.expected_wait(options);
        texts[i] = wait ? text_of(*wait) : std::string();
        known.emplace(std::move(options), texts[i]);
      }
    }
  } catch (const core::EnvironmentError&) {  // The plan is printed without the forecast.
  }
  co_return texts;
}

}  // namespace pipeline::orchestrators::slurm
