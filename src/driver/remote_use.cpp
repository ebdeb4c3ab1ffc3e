#include "driver/remote_use.hpp"

#include "core/log.hpp"

namespace pipeline::driver {

RemoteUse::RemoteUse(Session& session) : session_(session) {
  if (auto* remote = session.remote_store()) remote->hold_for(session.run_id);
}

RemoteUse::~RemoteUse() {
  auto* remote = session_.remote_store();
  if (!remote) return;
  try {
    session_.workspace.await(remote->release());
  } catch (const std::exception& error) {
    core::log::info(std::string("the lease in the remote store stays: ") + error.what());
  }
}

}  // namespace pipeline::driver
