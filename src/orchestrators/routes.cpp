#include "orchestrators/routes.hpp"

#include <set>
#include <string_view>

namespace pipeline::orchestrators {

async::Task<std::vector<core::Diagnostic>> Routes::check(
    const std::vector<const StepSpec*>& steps) {
  std::map<std::string, std::vector<const StepSpec*>> by_name;
  for (const auto* step : steps) by_name[name_of(*step)].push_back(step);
  std::vector<core::Diagnostic> found;
  for (const auto& [name, group] : by_name)
    for (auto& each : co_await named(name).check(group)) found.push_back(std::move(each));
  co_return found;
}

async::Task<std::vector<std::string>> Routes::expected_waits(
    const std::vector<const StepSpec*>& steps) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < steps.size(); ++i) by_name[name_of(*steps[i])].push_back(i);
  std::vector<std::string> texts;
  for (const auto& [name, indices] : by_name) {
    std::vector<const StepSpec*> group;
    for (const auto i : indices) group.push_back(steps[i]);
    auto found = co_await named(name).expected_waits(group);
    if (!found.empty()) texts.resize(steps.size());
    for (std::size_t k = 0; k < found.size(); ++k) texts[indices[k]] = std::move(found[k]);
  }
  co_return texts;
}

std::string Routes::names_of(const std::vector<const StepSpec*>& steps) {
  std::string names;
  std::set<std::string_view> seen;
  for (const auto* step : steps)
    if (const std::string& name = capabilities_of(*step).name; seen.insert(name).second)
      names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? main().capabilities().name : names;
}

std::string Routes::fingerprint_of(const StepSpec& step, const Environment& environment) const {
  return environment.fingerprint.empty() ? "" : name_of(step) + " " + environment.fingerprint;
}

async::Task<bool> Routes::matches(std::string fingerprint) {
  const auto end = fingerprint.find(' ');
  if (end == fingerprint.npos) co_return false;
  co_return co_await named(fingerprint.substr(0, end)).matches(fingerprint.substr(end + 1));
}

async::Task<std::vector<GpuHold>> Routes::gpus_in_use() {
  std::vector<GpuHold> holds;
  for (auto* orchestrator : all())
    for (auto& hold : co_await orchestrator->gpus_in_use()) holds.push_back(std::move(hold));
  co_return holds;
}

async::Task<> Routes::settle() {
  for (auto* orchestrator : all()) co_await orchestrator->settle();
}

async::Task<> Routes::discard_attempt(const std::string& run_id, const std::string& step,
                                      unsigned number) {
  for (auto* orchestrator : all()) co_await orchestrator->discard_attempt(run_id, step, number);
}

async::Task<> Routes::remove_orphans(const std::function<bool(const std::string&)>& is_alive) {
  for (auto* orchestrator : all()) co_await orchestrator->remove_orphans(is_alive);
}

Orchestrator& Routes::named(const std::string& name) {
  if (only_) return *only_;
  auto found = made_.find(name);
  if (found == made_.end()) found = made_.emplace(name, make_(name)).first;
  return *found->second;
}

std::vector<Orchestrator*> Routes::all() const {
  if (only_) return {only_};
  std::vector<Orchestrator*> all;
  for (const auto& [name, made] : made_) all.push_back(made.get());
  return all;
}

}  // namespace pipeline::orchestrators
