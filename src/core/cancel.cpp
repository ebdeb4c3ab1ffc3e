#include "core/cancel.hpp"

namespace pipeline::core {

void CancelSource::stop(StopLevel level) {
  if (level <= level_) return;
  level_ = level;
  // Looks up the next entry by identifier, because a callback can remove any listener.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto id = entry->first;
    if (entry->second.notified < level) {
      entry->second.notified = level;
      // A copy, because a callback may destroy its own listener while it runs.
      const auto callback = entry->second.callback;
      callback(level);
    }
    entry = entries_.upper_bound(id);
  }
}

void CancelSource::rearm() {
  level_ = StopLevel::none;
  for (auto& [id, entry] : entries_) entry.notified = StopLevel::none;
}

CancelSource::Listener::Listener(CancelSource& source, std::function<void(StopLevel)> callback)
    : source_(source), id_(source.next_id_++) {
  const auto level = source.level();
  source.entries_.emplace(id_, Entry{callback, level});
  if (level != StopLevel::none) callback(level);
}

}  // namespace pipeline::core
