/// @file
/// The objects of a list, with the changes that the lines of a watch make.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"

namespace pipeline::kubernetes_api {

struct Change {
  enum class Kind { added, modified, deleted };
  Kind kind;
  /// The object as the server sent it, but an event's without managedFields (half of its size). May
  /// be moved from. After a deletion that was detected by the object's absence from a list, the
  /// object has only `metadata` with name and uid.
  nlohmann::json& object;
};

/// Keeps the known objects of a collection, and reports how lists and events change them.
class Changes {
 public:
  /// @param path the path of the collection, for messages
  /// @param on_change must not throw
  Changes(std::string path, std::function<void(const Change&)> on_change)
      : path_(std::move(path)), on_change_(std::move(on_change)) {}

  /// begin_list(), take_page() and end_list() take a whole list, page by page. end_list() reports
  /// the known objects that are on no page as deleted.
  void begin_list() { listed_.clear(); }
  void take_page(nlohmann::json& page);
  void end_list();

  /// Takes a line of the stream. After an error of the server, further lines are ignored.
  /// @return false if the line is not a complete event
  bool take_line(std::string_view line);
  /// Returns the error that the server sent within the stream.
  const std::optional<ApiError>& error() const { return error_; }
  void forget_error() { error_.reset(); }

  /// Returns the resource version to resume a watch from; if empty, begin with a list.
  const std::string& version() const { return version_; }
  void forget_version() { version_.clear(); }

 private:
  /// The last known version of an object, to detect changes.
  struct Known {
    std::string uid, version;
  };
  void report(Change::Kind kind, nlohmann::json& object);

  const std::string path_;
  const std::function<void(const Change&)> on_change_;
  std::map<std::string, Known> known_;  ///< Keyed by name.
  std::set<std::string> listed_;        ///< Names on the list's pages so far.
  std::string version_;
  std::string listed_version_;  ///< Version of the list; valid after end_list().
  std::optional<ApiError> error_;
};

}  // namespace pipeline::kubernetes_api
