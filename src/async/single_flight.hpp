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

/// Computes each value once for all callers. A BuildError is a permanent failure: all later callers
/// get it, too. Other failures are thrown to the callers that wait, and the next caller tries
/// again. If the caller that runs the work is cancelled, one of the waiting callers takes the work
/// over.
template <class Result>
class SingleFlight {
 public:
  explicit SingleFlight(asio::io_context& loop) : loop_(loop) {}

  /// Returns the value, which the first caller's `make` computes.
  /// @param make a function that returns a Task<Result>
  /// @param cancel stops the caller; null: the caller is never stopped
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
      bool is_final = true;
      try {
        job->result = co_await make();
      } catch (const core::BuildError&) {
        job->error = std::current_exception();
      } catch (...) {
        job->error = std::current_exception();
        is_final = false;
      }
      job->cancelled = !job->result && cancel && cancel->level() != core::StopLevel::none;
      if (const auto own = jobs_.find(key); own != jobs_.end() && own->second == job) {
        if (job->result) results_.insert_or_assign(key, *job->result);
        if (job->result || !is_final || job->cancelled) jobs_.erase(own);
      }
      job->done.open();
      if (job->error) std::rethrow_exception(job->error);
      co_return *job->result;
    }
  }
  /// Returns the value; null before its computation has succeeded.
  const Result* find(const std::string& key) const {
    const auto found = results_.find(key);
    return found == results_.end() ? nullptr : &found->second;
  }
  /// Sets the value that later callers get.
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
  std::map<std::string, std::shared_ptr<Job>> jobs_;  ///< In progress, or failed permanently.
  std::map<std::string, Result> results_;  ///< Not in jobs_, because a Job takes some 300 bytes.
};

}  // namespace pipeline::async
