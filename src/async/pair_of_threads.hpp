/// @file
/// A pool of two threads for blocking work.
#pragma once

#include <thread>

#include <boost/asio/thread_pool.hpp>

#include "async/task.hpp"

namespace pipeline::async {

/// A pool of two threads whose constructor throws if the second thread cannot be started.
/// asio::thread_pool(2) would instead wait for its first thread for ever. The destructor drops work
/// that has not begun.
class PairOfThreads {
 public:
  PairOfThreads() : second_([this] { pool_.attach(); }) {}
  ~PairOfThreads() {
    pool_.stop();
    second_.join();
  }
  PairOfThreads(const PairOfThreads&) = delete;
  PairOfThreads& operator=(const PairOfThreads&) = delete;
  operator asio::thread_pool&() { return pool_; }

 private:
  asio::thread_pool pool_{1};
  std::thread second_;
};

}  // namespace pipeline::async
