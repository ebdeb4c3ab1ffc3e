#include "stager/workers.hpp"

#include <cstdint>
#include <system_error>
#include <utility>

namespace pipeline::stager {

bool ThreadBudget::try_start() {
  const std::lock_guard lock(mutex_);
  if (running_ >= limit_.value()) return false;
  ++running_;
  return true;
}

void ThreadBudget::end() {
  const std::lock_guard lock(mutex_);
  --running_;
}

bool ThreadBudget::try_retire() {
  const std::lock_guard lock(mutex_);
  if (running_ <= limit_.value()) return false;
  --running_;
  return true;
}

void ThreadBudget::note_failure() {
  const std::lock_guard lock(mutex_);
  limit_.note_failure();
}

void ThreadBudget::note_success(std::uint64_t bytes, blobs::ConnectionLimit::Seconds duration) {
  const std::lock_guard lock(mutex_);
  limit_.note_success(bytes, duration);
}

void Workers::run(const Work& work) {
  take_all(work, true);
  // A thread that is joined may have started others, so `threads_` is read again after each.
  for (;;) {
    std::jthread last;  // Outlives `lock`: its destructor joins, and the thread may need the mutex.
    const std::lock_guard lock(mutex_);
    if (threads_.empty()) break;
    last = std::move(threads_.back());
    threads_.pop_back();
  }
  if (error_) std::rethrow_exception(error_);
}

void Workers::take_all(const Work& work, bool is_caller) {
  try {
    for (auto i = next_++; i < count_ && !is_over_; i = next_++) {
      start_another(work);
      work(i);
      if (!is_caller && budget_.try_retire()) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!is_over_.exchange(true)) error_ = std::current_exception();
  }
  if (!is_caller) budget_.end();
}

void Workers::start_another(const Work& work) {
  if (next_ >= count_ || is_over_ || !budget_.try_start()) return;
  try {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, &work] { take_all(work, false); });
  } catch (const std::system_error&) {
    budget_.end();  // The system allows no further thread; those that run do the work.
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
