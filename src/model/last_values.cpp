#include "model/last_values.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "model/structured_line.hpp"

namespace pipeline::model {

bool LastValues::take(std::string_view line) {
  constexpr std::size_t max_names = 100;
  if (!line.starts_with(structured_prefix)) return false;
  if (const auto metric = parse_metric(line)) {
    const auto known =
        std::ranges::find(values_, metric->name, &std::pair<std::string, double>::first);
    if (known != values_.end())
      known->second = metric->value;
    else if (values_.size() < max_names)
      values_.emplace_back(metric->name, metric->value);
    if (metric->step) step_ = metric->step;
    return !metric->has_more;
  }
  const auto object = parse_structured(line);
  if (!object || object->size() != 1 || !object->contains("progress")) return false;
  progress_ = shown_line(line);
  return true;
}

std::string LastValues::text() const {
  constexpr std::size_t max_shown = 6;
  std::string text = progress_;
  for (std::size_t i = 0; i < std::min(values_.size(), max_shown); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%.6g", values_[i].second);
    text += (text.empty() ? "" : ", ") + values_[i].first + " " + number;
  }
  if (values_.size() > max_shown)
    text += " and " + std::to_string(values_.size() - max_shown) + " more";
  if (step_) text += " (step " + std::to_string(*step_) + ")";
  return text;
}

}  // namespace pipeline::model
