/// @file
/// Removes a run from all tables, but keeps its results that other runs have reused.
#pragma once

#include <string>

namespace pipeline::store {

class Database;
class KeyValues;
class Runs;

class RunRemoval {
 public:
  /// Keeps references to all arguments.
  RunRemoval(Database& database, Runs& runs, KeyValues& key_values)
      : database_(database), runs_(runs), key_values_(key_values) {}

  /// Removes the run. Call it in a transaction.
  /// @param keep_cache whether the cache entries that the run made stay
  void remove(const std::string& run, bool keep_cache);

 private:
  void move_rows_to_heir(const std::string& run);
  void reassign_results(const std::string& run, bool keep_cache);

  Database& database_;
  Runs& runs_;
  KeyValues& key_values_;
};

}  // namespace pipeline::store
