/// @file
/// Reports changes of the objects that a label selector picks: a list, then a watch from that
/// version on, resumed after each interruption.
#pragma once

#include <functional>
#include <string>

#include "core/lines.hpp"
#include "kubernetes_api/changes.hpp"
#include "kubernetes_api/client.hpp"

namespace pipeline::kubernetes_api {

/// One stream for all objects of one kind with one label selector. Changes that happened while the
/// connection was interrupted are reported once it is restored.
class Watch {
 public:
  /// @param path of the collection, such as `/apis/batch/v1/namespaces/x/jobs`
  /// @param on_change must not throw; called on the loop
  Watch(Client& client, std::string path, std::string label_selector,
        std::function<void(const Change&)> on_change);

  /// Runs until cancelled. Throws when the server refuses permanently (ApiError 401, 403, 404), or
  /// when no server has answered for long.
  /// @param on_listed called once, when all existing objects have been reported
  async::Task<> run(core::CancelSource& cancel, std::function<void()> on_listed = {});

 private:
  async::Task<> list(core::CancelSource& cancel);
  /// Returns when the server ends the stream, as it does every few minutes.
  async::Task<> follow(core::CancelSource& cancel);

  Client& client_;
  std::string path_, selector_;
  Changes changes_;
  core::Lines lines_;
  bool heard_ = false;  ///< Something was received on this connection.
};

}  // namespace pipeline::kubernetes_api
