#include "spec/headline_reader.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "model/headlines.hpp"
#include "settings/formats.hpp"

namespace pipeline::spec {

std::vector<std::string> read_headline(const core::Value& value, const std::vector<ReadStep>& steps,
                                       settings::Diagnostics& diagnostics) {
  auto metrics = settings::read_texts("headline", value, settings::formats::text, diagnostics)
                     .value_or(std::vector<std::string>{});
  std::vector<std::string> names;
  for (const auto& step : steps) names.push_back(step.spec.name);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const auto& span = value.items.size() == metrics.size() ? value.items[i].span : value.span;
    const auto dot = metrics[i].find('.');
    const auto step = metrics[i].substr(0, dot);
    if (dot == std::string::npos || dot + 1 == metrics[i].size())
      settings::report(diagnostics, "wrong-type",
                       "'headline' must have metrics of steps, not '" + metrics[i] + "'", span,
                       {"as in `headline: [evaluate.accuracy]`"});
    else if (std::ranges::find(names, step) == names.end())
      settings::report(diagnostics, "unknown-reference", "there is no step '" + step + "'", span,
                       {}, core::did_you_mean(step, names));
  }
  if (metrics.size() > model::max_headlines)
    settings::report(diagnostics, "too-large",
                     "'headline' has " + std::to_string(metrics.size()) + " metrics, of at most " +
                         std::to_string(model::max_headlines),
                     value.span);
  return metrics;
}

}  // namespace pipeline::spec
