#include "spec/keys.hpp"

#include <algorithm>
#include <iterator>

#include "core/diagnostic.hpp"

namespace pipeline::spec {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

const Strings pipeline_keys{
    "name",           "description", "tags",          "parameters", "environment", "secrets",
    "code",           "settings",    "retry",         "timeout",    "cache",       "shell",
    "execution_mode", "notify",      "stalled_after", "include",    "headline",    "steps"};
const Strings step_keys{"description",   "matrix",  "command",      "parameters", "inputs",
                        "outputs",       "after",   "when",         "run_on",     "code",
                        "environment",   "secrets", "settings",     "retry",      "timeout",
                        "stalled_after", "cache",   "orchestrator", "shell",      "version",
                        "checkpoint",    "publish", "repeat",       "publish_to", "allow_failure",
                        "max_parallel",  "uses",    "wait",         "services",   "notebook",
                        "nodes"};

void report_keys(const core::Value& map, const Strings& allowed, const std::string& place,
                 settings::Diagnostics& diagnostics) {
  static constexpr settings::OtherName others[]{
      {"enable_cache", "write `cache: true` or `cache: false`"},
      {"retries", "write `retry: {max_retries: 3}`"},
      {"schedule", "`pipe run` starts a run: let cron, a systemd timer or CI call it"},
      {"stages", "there are no stages: `after: [STEP]`, or an input, orders steps"},
      {"jobs", "write `steps:`"},
      {"tasks", "write `steps:`"},
      {"depends_on", "write `after: [STEP]`; a step whose output is an input needs none"},
      {"needs", "write `after: [STEP]`; a step whose output is an input needs none"},
      {"if", "write `when: EXPRESSION`"},
      {"rules", "write `when: EXPRESSION`"},
      {"loop", "write `repeat: {until: EXPRESSION, max: ROUNDS}`"},
      {"until", "write `repeat: {until: EXPRESSION, max: ROUNDS}`"},
      {"trigger_rule", "write `run_on: failure` or `run_on: always`"},
      {"env", "write `environment: {NAME: VALUE}`"},
      {"variables", "write `environment: {NAME: VALUE}`"},
      {"cmd", "write `command: ...`"},
      {"run", "write `command: ...`"},
      {"script", "write `command: |`, and the lines below it"},
      {"image", "write `settings: {docker: {parent_image: IMAGE}}`"},
      {"parent_image", "write `settings: {docker: {parent_image: IMAGE}}`"},
      {"requirements", "write `settings: {docker: {requirements: [...]}}`"},
      {"docker", "write `settings: {docker: {...}}`"},
      {"kubernetes", "write `settings: {kubernetes: {...}}`"},
      {"slurm", "write `settings: {slurm: {...}}`"},
      {"resources", "write `settings: {resources: {...}}`"},
      {"gpus", "write `settings: {resources: {gpus: ...}}`"},
      {"gpu", "write `settings: {resources: {gpus: ...}}`"},
      {"cpus", "write `settings: {resources: {cpu_count: 2}}`"},
      {"memory", "write `settings: {resources: {memory: 8GiB}}`"},
      {"artifacts", "write `outputs: [NAME]`, and ${outputs.NAME} in the command"},
      {"volumes", "write `settings: {docker: {volumes: [...]}}`"},
      {"num_nodes", "write `nodes: 2`"},
      {"replicas", "write `nodes: 2`"},
      {"num_parallel", "write `nodes: 2`"},
      {"nproc_per_node", "write `nodes: {processes: gpus}`, or a number of them"},
      {"sidecars", "write `services: {NAME: {image: IMAGE, ready: {port: PORT}}}`"}};
  if (&allowed != &pipeline_keys)
    return settings::report_unknown_keys(map, allowed, place, diagnostics, others);
  std::vector<settings::OtherName> with_steps(std::begin(others), std::end(others));
  for (const auto& [key, value] : map.members)
    if (value.find("command") || value.find("script"))
      with_steps.push_back({key.scalar, "a step belongs below `steps:`"});
  settings::report_unknown_keys(map, allowed, place, diagnostics, with_steps);
}

std::optional<std::string> read_word(const char* key, const core::Value& value,
                                     const Strings& words, settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar &&
      std::ranges::find(words, value.scalar) != words.end())
    return value.scalar;
  std::string expected;
  for (const auto& word : words)
    expected += (expected.empty() ? "" : word == words.back() ? " or " : ", ") + word;
  settings::report_type(diagnostics, key, expected.c_str(), value);
  diagnostics.back().suggestion = core::did_you_mean(value.scalar, words);
  return std::nullopt;
}

bool has_misspelt(const core::Value& map, const std::string& key) {
  return std::any_of(map.members.begin(), map.members.end(), [&](const auto& member) {
    return core::closest(member.first.scalar, std::span(&key, 1)).has_value();
  });
}

}  // namespace pipeline::spec
