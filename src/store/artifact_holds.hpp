/// @file
/// Artifacts that a process has stored, and that no record names yet.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/digest.hpp"

namespace pipeline::store {

/// Keeps an artifact from being removed until the last copy is destroyed.
using ArtifactHold = std::shared_ptr<const void>;

/// The holds of this process. Equal content of several outputs is one artifact: one output may be
/// removed while another, which is being stored, becomes the same artifact.
class ArtifactHolds {
 public:
  ArtifactHolds();
  ArtifactHold hold(const core::Digest& digest);
  /// Calls `work` for each artifact that nothing holds. No hold begins meanwhile.
  void for_each_free(std::span<const core::Digest> digests,
                     const std::function<void(const core::Digest&)>& work);

 private:
  struct Held;
  std::shared_ptr<Held> held_;
};

}  // namespace pipeline::store
