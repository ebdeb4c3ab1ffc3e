/// @file
/// A pool of two threads for blocking work.
#pragma once

#include <thread>

#include <boost/asio/thread_pool.hpp>

#include "async/task.hpp"

namespace pipeline::async {

/// Where the machine has only one thread left, the constructor throws; asio::thread_pool(2) would
/// wait for its first thread for ever.
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
