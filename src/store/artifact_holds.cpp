#include "store/artifact_holds.hpp"

#include <mutex>
#include <set>

#include "core/scope_guard.hpp"

namespace pipeline::store {

struct ArtifactHolds::Held {
  std::mutex mutex;
  std::multiset<core::Digest> digests;
};

ArtifactHolds::ArtifactHolds() : held_(std::make_shared<Held>()) {}

ArtifactHold ArtifactHolds::hold(const core::Digest& digest) {
  {
    const std::lock_guard lock(held_->mutex);
    held_->digests.insert(digest);
  }
  const auto release = [held = held_, digest] {
    const std::lock_guard lock(held->mutex);
    held->digests.erase(held->digests.find(digest));
  };
  return std::make_shared<const core::ScopeGuard<decltype(release)>>(release);
}

void ArtifactHolds::for_each_free(std::span<const core::Digest> digests,
                                  const std::function<void(const core::Digest&)>& work) {
  const std::lock_guard lock(held_->mutex);
  for (const auto& digest : digests)
    if (!held_->digests.contains(digest)) work(digest);
}

}  // namespace pipeline::store
