/// @file
/// A small table for data of other rooms: bytes by kind and key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::store {

class Database;

/// Kind of a value that is removed with the run whose identifier is its key: the run's invocation.
inline constexpr const char* invocation_kind = "invocation";
/// The same, for a detached run: its DetachedRecord.
inline constexpr const char* detached_kind = "detached";
/// The same, for a detached run whose driver shares no files with this machine: how much of the
/// driver's store (saved) and logs (brought) has been downloaded.
inline constexpr const char *saved_kind = "saved", *brought_kind = "brought";
/// The same: the pipeline's declarations of the run's steps, see declared.hpp of the engine.
inline constexpr const char* declared_kind = "declared";
/// The same: the run's questions to persons, see questions.hpp.
inline constexpr const char* questions_kind = "questions";

/// Kind of a value whose key is the identifier of an environment: the requirements, a line each,
/// from which it was made.
inline constexpr const char* requirements_kind = "requirements";

class KeyValues {
 public:
  explicit KeyValues(Database& database) : database_(database) {}

  void put(const std::string& kind, const std::string& key, std::string_view value);
  std::optional<std::string> find(const std::string& kind, const std::string& key);
  void remove(const std::string& kind, const std::string& key);
  std::vector<std::string> keys(const std::string& kind);  ///< In alphabetical order.

 private:
  Database& database_;
};

}  // namespace pipeline::store
