#include "serve/feed.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "report/run_data.hpp"

namespace pipeline::serve {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

class RunsFeed final : public Feed {
 public:
  explicit RunsFeed(store::RunStore& store) : store_(store), version_(store.data_version()) {}
  std::string next() override {
    const auto version = store_.data_version();
    if (std::exchange(version_, version) == version) return {};
    return event_text("runs", json::object());
  }

 private:
  store::RunStore& store_;
  std::int64_t version_;
};

class RunFeed final : public Feed {
 public:
  RunFeed(store::RunStore& store, const store::ArtifactStore& artifacts,
          const store::RunRecord& run)
      : store_(store), data_(store, artifacts, run, page_limits()) {}

  std::string next() override {
    const auto version = store_.data_version();
    const auto now = Clock::now();
    if (!has_begun_) {
      has_begun_ = true;
      version_ = version;
      read_at_ = now;
      return event_text("run", data_.all());
    }
    // A killed driver commits nothing, so the run is read again from time to time.
    constexpr std::chrono::seconds max_pause{2};
    if (version == version_ && now - read_at_ < max_pause) return {};
    version_ = version;
    read_at_ = now;
    const auto changes = data_.changes();
    return changes.is_null() ? std::string() : event_text("changes", changes);
  }

 private:
  store::RunStore& store_;
  report::RunData data_;
  bool has_begun_ = false;
  std::int64_t version_ = 0;
  Clock::time_point read_at_;
};

}  // namespace

std::unique_ptr<Feed> runs_feed(store::RunStore& store) {
  return std::make_unique<RunsFeed>(store);
}

std::unique_ptr<Feed> run_feed(store::RunStore& store, const store::ArtifactStore& artifacts,
                               const store::RunRecord& run) {
  return std::make_unique<RunFeed>(store, artifacts, run);
}

report::ReportLimits page_limits() {
  constexpr std::size_t all_digits = 64;
  return {.logs = 0, .pictures = 0, .digits = all_digits, .checks_driver = true, .details = false};
}

}  // namespace pipeline::serve
