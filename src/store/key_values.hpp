/// @file
/// A small table for data of other rooms: bytes by kind and key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::store {

class Database;

// Kinds of values whose key is the identifier of a run; they are removed with the run.

/// Arguments and settings of the run, see invocation.hpp of the driver.
inline constexpr const char* invocation_kind = "invocation";
/// DetachedRecord of a detached run.
inline constexpr const char* detached_kind = "detached";
/// Number of the latest save of a remote driver's store that this store has, see run_replica.hpp.
inline constexpr const char* saved_kind = "saved";
/// Bytes of each log that have been downloaded from a remote driver, see run_replica.hpp.
inline constexpr const char* downloaded_logs_kind = "brought";
/// Declarations of the run's steps in its pipeline, see declarations.hpp of the engine.
inline constexpr const char* declared_kind = "declared";
/// Questions of the run that people answer, see questions.hpp of the engine.
inline constexpr const char* questions_kind = "questions";
/// Versions of published artifacts that were current when the run began, see data_input.hpp of the
/// engine.
inline constexpr const char* versions_kind = "versions";

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
