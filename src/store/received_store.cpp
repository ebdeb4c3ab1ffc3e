#include "store/received_store.hpp"

#include <sqlite3.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "store/checked_vfs.hpp"
#include "store/run_schema.hpp"

namespace pipeline::store {
namespace {

using Clock = std::chrono::steady_clock;
using Row = std::vector<std::optional<std::string>>;

constexpr std::chrono::seconds max_check{60};
/// Instructions that SQLite executes between two looks at the clock.
constexpr int steps_between_looks = 1000;
/// From the smallest exit code to the milliseconds until the year 9999: the times, durations and
/// counts of a run are within.
constexpr const char* integer_range = " BETWEEN -2147483648 AND 253402300799999";

struct Limit {
  int id, value;
};
constexpr Limit limits[] = {{SQLITE_LIMIT_LENGTH, 64 << 20}, {SQLITE_LIMIT_SQL_LENGTH, 64 << 10},
                            {SQLITE_LIMIT_COLUMN, 100},      {SQLITE_LIMIT_EXPR_DEPTH, 200},
                            {SQLITE_LIMIT_ATTACHED, 0},      {SQLITE_LIMIT_TRIGGER_DEPTH, 1}};

/// Conditions on columns of a run besides their types.
constexpr struct {
  const char *table, *condition;
} contents[] = {{"runs", "status BETWEEN 0 AND 3 AND json_valid(tags) AND json_valid(parameters)"},
                {"steps",
                 "status BETWEEN 0 AND 6 AND json_valid(parameters) AND json_valid(outputs) AND "
                 "(failure = '' OR json_valid(failure))"},
                {"attempts",
                 "(usage = '' OR json_valid(usage)) AND (gpus = '' OR json_valid(gpus)) "
                 "AND (failure = '' OR json_valid(failure))"},
                {"tasks", "usage = '' OR json_valid(usage)"},
                {"metrics", "length(last) = 24 AND length(points) = 24 * \"count\""}};

[[noreturn]] void refuse(const std::string& why) {
  throw core::EnvironmentError("the run store is not one that pipe wrote: " + core::printable(why));
}

class Reader {
 public:
  Reader(const std::string& name, int flags, const char* layer) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(name.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, layer);
    database_.reset(opened);
    if (code != SQLITE_OK) refuse(sqlite3_errstr(code));
    for (const auto& [id, value] : limits) sqlite3_limit(opened, id, value);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    int (*is_late)(void*) = [](void* end) {
      return Clock::now() > *static_cast<Clock::time_point*>(end) ? 1 : 0;
    };
    sqlite3_progress_handler(opened, steps_between_looks, is_late, &end_);
  }

  std::vector<Row> rows(const std::string& sql, const std::string& argument = {}) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
      refuse(sqlite3_errmsg(database_.get()));
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(made,
                                                                               sqlite3_finalize);
    if (!argument.empty())
      sqlite3_bind_text(made, 1, argument.data(), static_cast<int>(argument.size()), SQLITE_STATIC);
    std::vector<Row> found;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(made)) == SQLITE_ROW) {
      auto& row = found.emplace_back();
      for (int column = 0; column < sqlite3_column_count(made); ++column) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(made, column));
        row.push_back(text ? std::optional<std::string>(text) : std::nullopt);
      }
    }
    if (code != SQLITE_DONE) refuse(sqlite3_errmsg(database_.get()));
    return found;
  }

  void run(const char* sql) {
    if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      refuse(sqlite3_errmsg(database_.get()));
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  Clock::time_point end_ = Clock::now() + max_check;
  std::unique_ptr<sqlite3, Close> database_;
};

/// Returns the file as a URI for SQLite. `%`, `?` and `#` have a meaning in URIs and are escaped.
std::string uri_of(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr auto hex_digits = "0123456789abcdef";
      uri += {'%', hex_digits[(c >> 4) & 15], hex_digits[c & 15]};
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";  // Neither a log nor a journal beside it counts.
}

/// Returns the condition that a column's values have its type.
std::string type_of(const Row& column) {
  const auto name = "\"" + *column.at(1) + "\"";
  std::string types = *column.at(2) == "INTEGER" ? "'integer'" : "'text'";
  if (*column.at(2) == "BLOB") types = "'blob', 'text'";
  if (*column.at(3) == "0" && *column.at(4) == "0") types += ", 'null'";
  auto condition = "typeof(" + name + ") IN (" + types + ")";
  if (*column.at(2) == "INTEGER")
    condition += " AND (" + name + " IS NULL OR " + name + integer_range + ")";
  return condition;
}

}  // namespace

void require_received_store(const std::filesystem::path& file, const std::string& run) {
  Reader ours(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  ours.run(run_schema::tables);
  Reader received(uri_of(file), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, checked_vfs());
  received.run("PRAGMA cell_size_check=ON; PRAGMA query_only=ON; PRAGMA mmap_size=0");
  const auto version = received.rows("PRAGMA user_version");
  if (version.empty() || version[0][0] != std::to_string(run_schema::version))
    throw core::EnvironmentError("the run store has the format of another version of pipe",
                                 {"use that version here, too"});
  const std::string schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name";
  if (received.rows(schema) != ours.rows(schema)) refuse("it has other tables");
  if (const auto found = received.rows("PRAGMA quick_check(1)"); found != std::vector<Row>{{"ok"}})
    refuse("it is damaged");
  for (const auto& [table, condition] : contents) {
    std::string wanted = "(" + std::string(condition) + ")";
    for (const auto& column :
         ours.rows("SELECT cid, name, type, \"notnull\", pk FROM pragma_table_info(?1)", table))
      wanted += " AND " + type_of(column);
    const std::string key = table == std::string("runs") ? "id" : "run";
    if (!received
             .rows("SELECT 1 FROM " + std::string(table) + " WHERE " + key + " = ?1 AND NOT (" +
                       wanted + ") LIMIT 1",
                   run)
             .empty())
      refuse(std::string("a value in its table ") + table + " does not fit its column");
  }
}

}  // namespace pipeline::store
