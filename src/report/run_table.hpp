/// @file
/// Runs chosen and sorted by their values, as `pipe runs` and the live page list them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/run_values.hpp"
#include "store/run_store.hpp"

namespace pipeline::report {

struct RunQuery {
  std::string pipeline, tag;         ///< Only runs with this pipeline or tag; empty: all.
  std::string where;                 ///< An expression; empty: all.
  std::string sort;                  ///< A value; empty: the newest first.
  bool is_ascending = false;         ///< Order of `sort`; false: the largest first.
  std::vector<std::string> columns;  ///< Values to return.
};

struct ListedRun {
  store::RunRecord record;
  std::vector<nlohmann::json> values = {};  ///< Values of the columns.
  nlohmann::json sort_by = {};              ///< The value of RunQuery::sort.
};

/// Finds runs in the store, which must outlive this object; caches the values of ended runs.
class RunTable {
 public:
  explicit RunTable(store::RunStore& store) : store_(store) {}

  /// Throws InputError for an expression or a value that no run can have.
  /// @param limit 0: all
  std::vector<ListedRun> find(const RunQuery& query, std::size_t limit);

  /// Returns the names of the values that the newest runs have: `params.c`, `metrics.accuracy`.
  std::vector<std::string> columns();

 private:
  RunValues& values_of(const store::RunRecord& run);

  store::RunStore& store_;
  std::map<std::string, RunValues> values_;  ///< Keyed by run.
};

}  // namespace pipeline::report
