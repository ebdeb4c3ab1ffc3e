/// @file
/// The time in which a process uses the remote store of its session.
#pragma once

#include "driver/session.hpp"

namespace pipeline::driver {

/// While it lives, no cleaning on any machine removes what the run uses in the remote store.
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
