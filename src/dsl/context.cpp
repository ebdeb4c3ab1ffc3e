#include <pipeline/context.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "dsl/barrier.hpp"

namespace pipeline {
namespace {

/// Returns the number as JSON, which has texts for infinity and NaN.
nlohmann::json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// Writes with one call, so that lines of several threads do not mix.
void write_line(const nlohmann::json& object) {
  const auto line =
      "@pipe " + object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const auto written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;  // The step continues without a reader of its log.
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void StepContext::log(Level level, std::string_view message, const Json& fields) const {
  nlohmann::json object{{"level", to_string(level)}, {"message", message}};
  if (fields->is_object() && !fields->empty()) object["fields"] = *fields;
  write_line(object);
}

void StepContext::progress(double fraction, std::string_view message) const {
  nlohmann::json object{{"progress", std::clamp(fraction, 0.0, 1.0)}};
  if (!message.empty()) object["message"] = message;
  write_line(object);
}

void StepContext::metric(std::string_view name, double value) const {
  write_line({{"metric", name}, {"value", number(value)}});
}

void StepContext::metric(std::string_view name, double value, std::int64_t step) const {
  write_line({{"metric", name}, {"value", number(value)}, {"step", step}});
}

void StepContext::barrier() const {
  if (world_size_ == 1) return;
  // The first port, `port_`, and those after it are for the processes, one each; the next one is
  // for the agents, and the one after that for barriers.
  dsl::wait_for_all({addresses_.front(), port_ + world_size_ + 1, rank_, world_size_}, stop_);
}

}  // namespace pipeline
