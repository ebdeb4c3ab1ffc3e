/// @file
/// Protects artifacts in the remote store while a run uses them.
#pragma once

#include "driver/session.hpp"

namespace pipeline::driver {

/// Holds a lease in the remote store for the session's run: during the life of this object, no
/// clean-up on any machine removes artifacts that the run uses. Does nothing without a remote
/// store.
class RemoteUse {
 public:
  explicit RemoteUse(Session& session);
  ~RemoteUse();
  RemoteUse(const RemoteUse&) = delete;
  RemoteUse& operator=(const RemoteUse&) = delete;

 private:
  Session& session_;
};

}  // namespace pipeline::driver
