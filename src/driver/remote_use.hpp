/// @file
/// The time in which a process uses the remote store of its session.
#pragma once

#include "driver/session.hpp"

namespace pipeline::driver {

/// Holds a lease in the remote store for the session's run: during the life of this object, no
/// cleaning on any machine removes artifacts that the run uses.
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
