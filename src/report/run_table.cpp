#include "report/run_table.hpp"

#include <algorithm>
#include <set>

#include "report/run_filter.hpp"

namespace pipeline::report {

RunValues& RunTable::values_of(const store::RunRecord& run) {
  const auto known = values_.find(run.id);
  if (known != values_.end()) {
    const auto& before = known->second.run();
    const bool has_ended = run.status != RunStatus::running && before.status != RunStatus::running;
    if (has_ended && before.ended == run.ended) {
      known->second.replace_record(run);
      return known->second;
    }
    values_.erase(known);
  }
  return values_.emplace(run.id, RunValues(store_, run)).first->second;
}

std::vector<ListedRun> RunTable::find(const RunQuery& query, std::size_t limit) {
  std::vector<ListedRun> list;
  RunFilter filter(query.where);
  // All runs are read if a value selects or sorts them.
  const bool reads_all = !query.sort.empty() || !filter.accepts_all();
  const bool needs_values = reads_all || !query.columns.empty();
  for (auto& record : store_.runs().list(reads_all ? 0 : limit, query.pipeline, query.tag)) {
    ListedRun run;
    if (needs_values) {
      auto& values = values_of(record);
      if (!filter.accepts(values)) continue;
      for (const auto& column : query.columns) run.values.push_back(values.value(column));
      if (!query.sort.empty()) run.sort_by = comparable_value(values, query.sort);
    }
    run.record = std::move(record);
    list.push_back(std::move(run));
  }
  filter.check();
  if (!query.sort.empty())
    std::ranges::stable_sort(list, [&](const ListedRun& a, const ListedRun& b) {
      if (a.sort_by.is_null() || b.sort_by.is_null())
        return !a.sort_by.is_null() && b.sort_by.is_null();
      return query.is_ascending ? is_before(a.sort_by, b.sort_by) : is_before(b.sort_by, a.sort_by);
    });
  if (limit > 0 && list.size() > limit) list.resize(limit);
  return list;
}

std::vector<std::string> RunTable::columns() {
  constexpr std::size_t newest = 50;
  std::set<std::string> names;
  for (const auto& record : store_.runs().list(newest)) {
    auto& values = values_of(record);
    for (const auto& [name, value] : values.parameters()) names.insert("params." + name);
    for (const auto& [name, value] : values.metrics()) names.insert("metrics." + name);
    for (const auto& [name, value] : values.usage()) names.insert("usage." + name);
  }
  names.insert("run.seconds");
  names.insert("run.commit");
  names.insert("run.orchestrator");
  return {names.begin(), names.end()};
}

}  // namespace pipeline::report
