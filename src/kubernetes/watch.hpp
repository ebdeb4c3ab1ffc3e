/// @file
/// Reports changes of the objects that a label selector picks: a list, then a watch from that
/// version on, resumed after each interruption.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/lines.hpp"
#include "kubernetes/client.hpp"

namespace pipeline::kubernetes {

struct Change {
  enum class Kind { added, modified, deleted };
  Kind kind;
  /// The object as the server sent it without managedFields (half of its size); may be moved from.
  /// If a deletion was detected by the object's absence from a list, it has only `metadata` with
  /// name and uid.
  nlohmann::json& object;
};

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
  /// The last known version of an object, to detect changes.
  struct Known {
    std::string uid, version;
  };
  async::Task<> list(core::CancelSource& cancel);
  /// Returns when the server ends the stream, as it does every few minutes.
  async::Task<> follow(core::CancelSource& cancel);
  void take_line(std::string_view line);
  void tell(Change::Kind kind, nlohmann::json& object);

  Client& client_;
  std::string path_, selector_;
  std::function<void(const Change&)> on_change_;
  std::map<std::string, Known> known_;  ///< Keyed by name.
  std::string version_;  ///< The version to resume from; if empty, begin with a list.
  core::Lines lines_;
  bool heard_ = false;             ///< Something was received on this connection.
  std::optional<ApiError> error_;  ///< An error that the server sent within the stream.
};

}  // namespace pipeline::kubernetes
