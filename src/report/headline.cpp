#include "report/headline.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "model/headlines.hpp"
#include "model/instance.hpp"
#include "report/run_values.hpp"

namespace pipeline::report {
namespace {

constexpr std::size_t max_earlier_runs = 100, max_earlier_matrices = 30;

/// Adds the steps that a step needs, directly or not. A step that `needs` has already is not
/// followed again.
void add_needs(const nlohmann::json& declared, const std::string& step,
               std::set<std::string>& needs) {
  for (std::vector<std::string> open{step}; !open.empty();) {
    const auto entry = declared.find(open.back());
    open.pop_back();
    if (entry == declared.end() || !entry->is_object()) continue;
    for (auto& need : entry->value("needs", std::vector<std::string>()))
      if (needs.insert(need).second) open.push_back(std::move(need));
  }
}

bool is_better(double a, double b, std::string_view metric) {
  return is_better_lower(metric) ? a < b : a > b;
}

/// Adds the value of another instance of a matrix to the metric's headline.
void add_instance(const store::MetricRecord& metric, Headline& headline) {
  const auto value = metric.last.value;
  const auto count = static_cast<double>(headline.instances);
  headline.mean = (headline.mean * count + value) / (count + 1);
  ++headline.instances;
  if (!is_better(value, headline.value, metric.name)) return;
  headline.value = value;
  headline.instance = metric.step;
}

/// The step, without its instance, and the name of the metric.
using MetricName = std::pair<std::string, std::string>;

/// Returns the headlines of those metrics that are wanted.
std::vector<Headline> headlines_in(const std::vector<store::MetricRecord>& metrics,
                                   const std::function<bool(const MetricName&)>& is_wanted) {
  std::vector<Headline> headlines;
  std::map<MetricName, std::size_t> positions;
  for (const auto& metric : metrics) {
    const MetricName name(model::base_name(metric.step), metric.name);
    if (!std::isfinite(metric.last.value) || !is_wanted(name)) continue;
    const auto [position, is_new] = positions.try_emplace(name, headlines.size());
    if (is_new)
      headlines.push_back({.step = name.first,
                           .name = metric.name,
                           .value = metric.last.value,
                           .instance = metric.step,
                           .instances = 1,
                           .mean = metric.last.value});
    else
      add_instance(metric, headlines[position->second]);
  }
  return headlines;
}

/// Returns the metrics that the pipeline names in `headline`, with their positions there.
std::map<MetricName, std::size_t> named_headlines(const nlohmann::json& declared) {
  std::map<MetricName, std::size_t> named;
  for (const auto& [step, entry] : declared.items()) {
    if (!entry.is_object() || !entry.contains("headline") || !entry["headline"].is_object())
      continue;
    for (const auto& [metric, position] : entry["headline"].items())
      if (position.is_number_unsigned())
        named.try_emplace({step, metric}, position.get<std::size_t>());
  }
  return named;
}

/// Returns the steps, without their instances, after which no other step with metrics follows.
std::vector<std::string> last_steps(const nlohmann::json& declared,
                                    const std::vector<store::MetricRecord>& metrics) {
  std::vector<std::string> steps;
  std::set<std::string> followed;
  for (const auto& metric : metrics) {
    const std::string base(model::base_name(metric.step));
    if (std::ranges::find(steps, base) != steps.end()) continue;
    steps.push_back(base);
    add_needs(declared, base, followed);
  }
  auto last = steps;
  std::erase_if(last, [&](const std::string& step) { return followed.contains(step); });
  return last.empty() ? steps : last;  // Steps that run in rounds together follow one another.
}

}  // namespace

bool is_better_lower(std::string_view metric) {
  static const std::set<std::string, std::less<>> words{
      "loss",    "error",   "err",  "rmse", "mse",    "mae",  "mape",     "perplexity",
      "ppl",     "wer",     "cer",  "fid",  "nll",    "bpc",  "distance", "cost",
      "latency", "seconds", "time", "gap",  "regret", "bias", "rmsle"};
  const auto name = core::lower(metric);
  std::string word;
  for (const char c : name + " ") {
    if (core::is_lower(c)) {
      word += c;
      continue;
    }
    if (words.contains(word)) return true;
    word.clear();
  }
  return false;
}

std::vector<std::string> headline_steps(store::RunStore& store, const store::RunRecord& run,
                                        const std::vector<store::MetricRecord>& metrics) {
  return last_steps(declared_steps(store, run), metrics);
}

std::vector<store::MetricRecord> results_of(store::RunStore& store, const store::RunRecord& run,
                                            const std::string& step) {
  auto metrics = store.metrics().list(run.id, step);
  if (run.failed == 0) return metrics;
  std::set<std::string> failed;
  for (const auto& each : store.runs().steps(run.id, step))
    if (each.status == StepStatus::failed) failed.insert(each.name);
  std::set<MetricName> ended;
  for (const auto& metric : metrics)
    if (!failed.contains(metric.step)) ended.emplace(model::base_name(metric.step), metric.name);
  std::erase_if(metrics, [&](const auto& metric) {
    return failed.contains(metric.step) &&
           ended.contains({std::string(model::base_name(metric.step)), metric.name});
  });
  return metrics;
}

std::vector<Headline> headlines_of(store::RunStore& store, const store::RunRecord& run) {
  const auto metrics = results_of(store, run);
  const auto declared = declared_steps(store, run);
  if (const auto named = named_headlines(declared); !named.empty()) {
    auto all = headlines_in(metrics, [&](const auto& name) { return named.contains(name); });
    std::ranges::sort(all, {}, [&](const auto& each) { return named.at({each.step, each.name}); });
    return all;
  }
  const auto steps = last_steps(declared, metrics);
  auto all = headlines_in(metrics, [&](const auto& name) {
    return std::ranges::find(steps, name.first) != steps.end();
  });
  if (all.size() > model::max_headlines) all.resize(model::max_headlines);
  return all;
}

std::vector<HeadlineHistory> headline_history(store::RunStore& store, const store::RunRecord& run) {
  std::vector<HeadlineHistory> all;
  for (auto& headline : headlines_of(store, run)) all.push_back({std::move(headline), {}, {}});
  if (all.empty()) return all;
  const bool has_matrix =
      std::ranges::any_of(all, [](const auto& each) { return each.now.instances > 1; });
  const auto& step = all.front().now.step;
  const bool has_one_step = std::ranges::all_of(
      all, [&](const auto& each) { return each.now.step == step && each.now.instance == step; });
  const auto only_step = has_one_step ? step : std::string();
  bool is_earlier = false;
  std::size_t seen = 0;
  for (const auto& other : store.runs().list(0, run.pipeline)) {  // The newest first.
    if (!std::exchange(is_earlier, is_earlier || other.id == run.id)) continue;
    if (++seen > (has_matrix ? max_earlier_matrices : max_earlier_runs)) break;
    const auto metrics = results_of(store, other, only_step);
    for (auto& [now, last, best] : all) {
      const MetricName wanted{now.step, now.name};
      for (const auto& earlier :
           headlines_in(metrics, [&](const auto& name) { return name == wanted; })) {
        if (!last) last = PastHeadline{other.id, earlier.value};
        if (!best || is_better(earlier.value, best->value, now.name))
          best = PastHeadline{other.id, earlier.value};
      }
    }
  }
  return all;
}

}  // namespace pipeline::report
