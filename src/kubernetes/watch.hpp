/// @file
/// What happens to the objects that a selector picks, as it happens: a list, then a watch from
/// there on, and again from where it broke.
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
  /// As the server sent it, but for who manages which field (half of it); may be moved from. Of an
  /// object whose deletion was found by its absence only `metadata`, with name and uid.
  nlohmann::json& object;
};

/// One stream for all objects of one kind with one label selector. What is told is what is so: an
/// object that was changed, removed or made while the connection was gone is told of once it is
/// back.
class Watch {
 public:
  /// @param path of the collection, `/apis/batch/v1/namespaces/x/jobs`
  /// @param on_change must not throw; called on the loop
  Watch(Client& client, std::string path, std::string label_selector,
        std::function<void(const Change&)> on_change);

  /// Until cancelled. Throws when the server refuses for good: ApiError (401, 403, 404), or nothing
  /// has answered for long.
  /// @param on_listed called once, when all that is there has been told
  async::Task<> run(core::CancelSource& cancel, std::function<void()> on_listed = {});

 private:
  /// What is known of an object, to tell what has changed.
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
  std::map<std::string, Known> known_;  ///< By name.
  std::string version_;                 ///< Where to go on from; empty: with a list.
  core::Lines lines_;
  bool heard_ = false;             ///< Something came on this connection.
  std::optional<ApiError> error_;  ///< What the server said within the stream.
};

}  // namespace pipeline::kubernetes
