/// @file
/// Concurrent requests for the same value share one execution.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/gate.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"

namespace pipeline::async {

/// Computes each value once for all callers. A permanent failure (BuildError) is kept. Other
/// failures are forgotten, as is a failure caused by the cancellation of the caller that runs the
/// work: the next caller tries again.
template <class Result>
class SingleFlight {
 public:
  explicit SingleFlight(asio::io_context& loop) : loop_(loop) {}

  /// Calls `make`, which returns a Task<Result>, unless another caller has done so.
  template <class Make>
  Task<Result> get(const std::string& key, Make&& make, core::CancelSource* cancel) {
    static_assert(is_safe_in_await<Make>);
    while (true) {
      if (const auto done = results_.find(key); done != results_.end()) co_return done->second;
      if (auto found = jobs_.find(key); found != jobs_.end()) {
        auto job = found->second;  // Holds the job, because the map may drop it during the wait.
        co_await job->done.wait();
        if (job->result) co_return *job->result;
        if (job->cancelled && !(cancel && cancel->level() != core::StopLevel::none)) continue;
        std::rethrow_exception(job->error);
      }
      auto job = std::make_shared<Job>(loop_.get_executor());
      jobs_[key] = job;
      bool keep = true;
      try {
        job->result = co_await make();
      } catch (const core::BuildError&) {
        job->error = std::current_exception();
      } catch (...) {
        job->error = std::current_exception();
        keep = false;
      }
      job->cancelled = !job->result && cancel && cancel->level() != core::StopLevel::none;
      if (const auto own = jobs_.find(key); own != jobs_.end() && own->second == job) {
        if (job->result) results_.insert_or_assign(key, *job->result);
        if (job->result || !keep || job->cancelled) jobs_.erase(own);
      }
      job->done.open();
      if (job->error) std::rethrow_exception(job->error);
      co_return *job->result;
    }
  }
  /// Returns the finished value; null while it is being computed, or before.
  const Result* find(const std::string& key) const {
    const auto found = results_.find(key);
    return found == results_.end() ? nullptr : &found->second;
  }
  void set(const std::string& key, Result result) {
    jobs_.erase(key);
    results_.insert_or_assign(key, std::move(result));
  }
  /// Forgets the value; the next caller computes it again.
  void forget(const std::string& key) {
    jobs_.erase(key);
    results_.erase(key);
  }

 private:
  struct Job {
    explicit Job(const asio::any_io_executor& executor) : done(executor) {}
    Gate done;
    std::optional<Result> result;
    std::exception_ptr error;
    bool cancelled = false;
  };
  asio::io_context& loop_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  ///< In progress, or failed for good.
  std::map<std::string, Result> results_;  ///< Apart, because a job has a timer: some 300 bytes.
};

}  // namespace pipeline::async
