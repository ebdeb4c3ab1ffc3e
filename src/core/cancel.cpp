#include "core/cancel.hpp"

namespace pipeline::core {

void CancelSource::stop(StopLevel level) {
  if (level <= level_) return;
  level_ = level;
  // By identifier, not by iterator: whom a callback removed is not found any more.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto id = entry->first;
    if (entry->second.told < level) {
      entry->second.told = level;
      // A copy, for it may destroy its own listener while it runs.
      const auto callback = entry->second.callback;
      callback(level);
    }
    entry = entries_.upper_bound(id);
  }
}

CancelSource::Listener::Listener(CancelSource& source, std::function<void(StopLevel)> callback)
    : source_(source), id_(source.next_id_++) {
  const auto level = source.level();
  source.entries_.emplace(id_, Entry{callback, level});
  if (level != StopLevel::none) callback(level);
}

}  // namespace pipeline::core
