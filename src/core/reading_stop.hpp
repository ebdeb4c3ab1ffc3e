/// @file
/// The stop of reading and hashing files, which threads of the pool do and no coroutine ends.
#pragma once

#include <atomic>
#include <memory>

namespace pipeline::core {

/// Ends the reading of files by all threads that work for one run. Copies are the same stop.
class ReadingStop {
 public:
  ReadingStop() : is_stopped_(std::make_shared<std::atomic<bool>>(false)) {}
  /// Returns that of the run for which this thread works; without one, a stop of nothing.
  static ReadingStop of_this_thread();

  void stop() noexcept { *is_stopped_ = true; }

  /// Lets this thread work for the run of the stop until destroyed.
  class Scope {
   public:
    explicit Scope(ReadingStop stop);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<std::atomic<bool>> before_;
  };

 private:
  std::shared_ptr<std::atomic<bool>> is_stopped_;
};

/// Throws EnvironmentError if the reading of this thread's run is stopped; to be called between
/// pieces of a file.
void check_reading();

}  // namespace pipeline::core
