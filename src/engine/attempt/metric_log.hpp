/// @file
/// Collects the metrics that an attempt reports, and stores them in blocks.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/timeout.hpp"
#include "engine/clock.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

class MetricLog {
 public:
  /// Bounds of one attempt; further metrics and points are dropped, with one warning.
  static constexpr std::size_t max_names = 1000, max_points = 10'000'000;

  /// Keeps a reference to the store.
  /// @param executor stores the points of a step that falls silent; null: the caller calls flush()
  MetricLog(store::RunStore& store, std::string run, std::string step, unsigned attempt,
            const asio::any_io_executor* executor = nullptr)
      : store_(store), run_(std::move(run)), step_(std::move(step)), attempt_(attempt) {
    if (executor) delayed_flush_.emplace(*executor, [this] { try_flush(); });
  }

  /// Adds the metric that the line of output reports, if it reports one. Stores the points when
  /// there are many, or when they have waited for some seconds, also if no line follows. Throws
  /// EnvironmentError if the store cannot be written.
  void add_line(std::string_view line);
  /// Adds a point, which flush() stores.
  void add(const std::string& name, const store::MetricPoint& point);
  /// Stores all points.
  void flush();

 private:
  struct Series {
    std::uint64_t stored = 0;
    std::vector<store::MetricPoint> points;
  };
  void try_flush();
  void drop();
  void warn_of(std::string_view line);

  store::RunStore& store_;
  const std::string run_, step_;
  const unsigned attempt_;
  std::map<std::string, Series, std::less<>> series_;
  std::size_t waiting_ = 0;  ///< Number of points that are not stored yet.
  std::size_t taken_ = 0;    ///< Number of all points of the attempt.
  bool has_dropped_ = false, has_warned_ = false;
  Clock::time_point flushed_ = Clock::now();
  std::optional<async::Timeout> delayed_flush_;
};

}  // namespace pipeline::engine
