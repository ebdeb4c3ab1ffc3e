/// @file
/// Reports changes of the objects that a label selector selects: a list, then a watch from the
/// list's version on, resumed after each interruption.
#pragma once

#include <functional>
#include <string>

#include "core/lines.hpp"
#include "kubernetes_api/changes.hpp"
#include "kubernetes_api/client.hpp"

namespace pipeline::kubernetes_api {

/// A stream of changes for the objects of one kind with one label selector. Changes during an
/// interruption are reported once the connection is restored.
class Watch {
 public:
  /// @param path of the collection, such as `/apis/batch/v1/namespaces/x/jobs`
  /// @param on_change must not throw; called on the loop
  Watch(Client& client, std::string path, std::string label_selector,
        std::function<void(const Change&)> on_change);

  /// Runs until cancelled. Throws when the server refuses permanently (ApiError 401, 403, 404), or
  /// has not answered for long.
  /// @param on_listed called once, when all existing objects have been reported
  async::Task<> run(core::CancelSource& cancel, std::function<void()> on_listed = {});

 private:
  async::Task<> list(core::CancelSource& cancel);
  /// Reads the stream until the server ends it, which happens every few minutes.
  async::Task<> follow(core::CancelSource& cancel);

  Client& client_;
  std::string path_, selector_;
  Changes changes_;
  core::Lines lines_;
  bool has_received_ = false;  ///< The present stream has had an event, or has lasted for long.
};

}  // namespace pipeline::kubernetes_api
