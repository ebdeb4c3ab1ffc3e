#include "engine/attempt/metric_log.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "model/structured_line.hpp"

namespace pipeline::engine {
namespace {
/// Points are stored once this many wait, or after this time, to keep transactions few.
constexpr std::size_t max_waiting = 8192;
constexpr std::chrono::seconds max_wait{5};
}  // namespace

void MetricLog::add_line(std::string_view line) {
  if (!line.starts_with(model::structured_prefix)) return;
  const auto metric = model::parse_metric(line);
  if (!metric) return warn_of(line);
  add(metric->name, {metric->value, metric->step, wall_now()});
  if (waiting_ >= max_waiting || Clock::now() - flushed_ >= max_wait)
    flush();
  else if (waiting_ == 1 && delayed_flush_)
    delayed_flush_->start(max_wait);
}

void MetricLog::try_flush() {
  try {
    flush();
  } catch (const core::EnvironmentError& error) {
    core::log::debug(error.what());  // The next call of flush() tries again, and throws.
  }
}

void MetricLog::add(const std::string& name, const store::MetricPoint& point) {
  auto found = series_.find(name);
  if (taken_ >= max_points || (found == series_.end() && series_.size() >= max_names))
    return drop();
  if (found == series_.end()) found = series_.emplace(name, Series{}).first;
  found->second.points.push_back(point);
  ++waiting_;
  ++taken_;
}

void MetricLog::warn_of(std::string_view line) {
  if (has_warned_) return;
  const auto problem = model::problem_of_report(line);
  if (problem.empty()) return;
  has_warned_ = true;
  core::log::warn("step '" + step_ + "' printed a line that reports nothing: " + problem);
}

void MetricLog::drop() {
  if (std::exchange(has_dropped_, true)) return;
  core::log::warn("step '" + step_ + "' reports more than " + std::to_string(max_names) +
                  " metrics or " + std::to_string(max_points) +
                  " values: the others are not stored");
}

void MetricLog::flush() {
  flushed_ = Clock::now();
  if (delayed_flush_) delayed_flush_->cancel();
  if (waiting_ == 0) return;
  store_.transaction([&] {
    for (const auto& [name, series] : series_) {
      store::MetricRecord metric{.run = run_, .step = step_, .name = name, .attempt = attempt_};
      store_.metrics().add_points(metric, series.stored, series.points);
    }
  });
  for (auto& [name, series] : series_) {
    series.stored += series.points.size();
    series.points.clear();
  }
  waiting_ = 0;
}

}  // namespace pipeline::engine
