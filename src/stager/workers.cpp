#include "stager/workers.hpp"

#include <cstdint>
#include <system_error>
#include <utility>

namespace pipeline::stager {

bool Threads::try_start() {
  const std::lock_guard lock(mutex_);
  if (running_ >= limit_.value()) return false;
  ++running_;
  return true;
}

void Threads::end() {
  const std::lock_guard lock(mutex_);
  --running_;
}

bool Threads::retires() {
  const std::lock_guard lock(mutex_);
  if (running_ <= limit_.value()) return false;
  --running_;
  return true;
}

void Threads::note_failure() {
  const std::lock_guard lock(mutex_);
  limit_.note_failure();
}

void Threads::note_success(std::uint64_t bytes, blobs::ConnectionLimit::Seconds duration) {
  const std::lock_guard lock(mutex_);
  limit_.note_success(bytes, duration);
}

void Workers::run(const Work& work) {
  take_all(work, true);
  for (;;) {
    std::jthread last;  // Joined at the end of its scope. It may have started another one.
    const std::lock_guard lock(mutex_);
    if (running_.empty()) break;
    last = std::move(running_.back());
    running_.pop_back();
  }
  if (error_) std::rethrow_exception(error_);
}

void Workers::take_all(const Work& work, bool is_caller) {
  try {
    for (auto i = next_++; i < count_ && !is_over_; i = next_++) {
      start_another(work);
      work(i);
      if (!is_caller && threads_.retires()) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!is_over_.exchange(true)) error_ = std::current_exception();
  }
  if (!is_caller) threads_.end();
}

void Workers::start_another(const Work& work) {
  if (next_ >= count_ || is_over_ || !threads_.try_start()) return;
  try {
    const std::lock_guard lock(mutex_);
    running_.emplace_back([this, &work] { take_all(work, false); });
  } catch (const std::system_error&) {
    threads_.end();  // The pod has a limit of threads.
  }
}

void InOrder::ready(std::size_t piece) {
  std::unique_lock lock(mutex_);
  ready_.insert(piece);
  if (is_busy_) return;
  is_busy_ = true;
  try {
    while (!is_abandoned_ && ready_.erase(due_) > 0) {
      lock.unlock();
      handle_(due_);
      lock.lock();
      ++due_;
      changed_.notify_all();
    }
  } catch (...) {
    lock.lock();
    is_busy_ = false;
    is_abandoned_ = true;
    changed_.notify_all();
    throw;
  }
  is_busy_ = false;
}

bool InOrder::wait(std::size_t piece, std::size_t window) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_abandoned_ || piece < due_ + window; });
  return !is_abandoned_;
}

void InOrder::abandon() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

}  // namespace pipeline::stager
