/// @file
/// Threads that transfer at the same time, as many as the server bears.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "blobs/transfer_plan.hpp"

namespace pipeline::stager {

/// The number of threads that may transfer to or from a server at the same time, and the number
/// that do. All Workers share a budget, which grows and shrinks with what the server bears.
class ThreadBudget {
 public:
  explicit ThreadBudget(std::size_t max = blobs::max_connections) : limit_(max) {}
  /// Counts one thread more and returns true, if the budget allows it. The caller starts the
  /// thread, whose last call is end(), or a try_retire() that returns true.
  bool try_start();
  void end();
  /// Counts the calling thread as ended and returns true, if more threads run than the budget
  /// allows: that thread has to end.
  bool try_retire();
  void note_failure();
  void note_success(std::uint64_t bytes, blobs::ConnectionLimit::Seconds duration);

 private:
  std::mutex mutex_;
  blobs::ConnectionLimit limit_;
  std::size_t running_ = 1;  ///< The process's own thread always works.
};

/// Threads that take one number after the other. The calling thread is one of them; others start
/// whenever `budget` allows it, and if the system has none, the calling thread does all work.
class Workers {
 public:
  using Work = std::function<void(std::size_t)>;

  Workers(std::size_t count, ThreadBudget& budget) : count_(count), budget_(budget) {}
  /// Returns true once a thread has failed: the others need not finish their work.
  bool is_over() const { return is_over_; }
  /// Calls `work(0)`, ..., `work(count - 1)` and returns when all have ended. Rethrows the first
  /// exception.
  void run(const Work& work);

 private:
  void take_all(const Work& work, bool is_caller);
  void start_another(const Work& work);

  const std::size_t count_;
  ThreadBudget& budget_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  std::vector<std::jthread> threads_;  ///< Without the calling thread.
  std::exception_ptr error_;
};

/// Handles numbered pieces in order, although they become ready in any order: a thread whose piece
/// is due handles it, and those that have become ready meanwhile.
class InOrder {
 public:
  /// @param handle called by one thread at a time
  explicit InOrder(std::function<void(std::size_t)> handle) : handle_(std::move(handle)) {}
  /// Records that a piece is ready. Throws what handling has thrown.
  void ready(std::size_t piece);
  /// Waits until fewer than `window` pieces separate this one from the one that is due. Returns
  /// false after abandon().
  bool wait(std::size_t piece, std::size_t window);
  /// Ends all waiting, because a piece will never be ready.
  void abandon();

 private:
  std::function<void(std::size_t)> handle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::size_t> ready_;
  std::size_t due_ = 0;
  bool is_busy_ = false, is_abandoned_ = false;
};

}  // namespace pipeline::stager
