/// @file
/// SQLite's C interface with C++ lifetimes and error messages.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace pipeline::store {

/// A prepared statement in use; at the end of its scope it is reset and kept for later.
class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement, const std::filesystem::path& file)
      : database_(database), statement_(statement), file_(file) {}
  ~Statement() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds the arguments to ?1, ?2, ...; texts must live until the statement has run.
  template <class... Arguments>
  Statement& bind(const Arguments&... arguments) {
    int index = 0;
    (bind_one(++index, arguments), ...);
    return *this;
  }
  /// Returns true if there is a row to read. Throws EnvironmentError.
  bool step();
  void run() {
    while (step()) {
    }
  }

  std::string text(int column) const;
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  void bind_one(int index, std::string_view value) {
    sqlite3_bind_text64(statement_, index, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void bind_one(int index, const std::string& value) { bind_one(index, std::string_view(value)); }
  void bind_one(int index, const char* value) { bind_one(index, std::string_view(value)); }
  template <class Integer>
  requires std::is_integral_v<Integer>
  void bind_one(int index, Integer value) {
    sqlite3_bind_int64(statement_, index, static_cast<std::int64_t>(value));
  }
  void bind_one(int index, std::optional<int> value) {
    value ? bind_one(index, *value) : void(sqlite3_bind_null(statement_, index));
  }

  sqlite3* database_;
  sqlite3_stmt* statement_;
  const std::filesystem::path& file_;
};

/// A connection, in WAL mode on a local file system. Waits up to half a minute for another
/// process's commit. A file that this process may only read is opened for reading.
class Database {
 public:
  /// Opens or creates the file; `schema` is run once, in the transaction that sets its version. A
  /// file of an older version of this program is upgraded: `migrations[i]` leads from version i + 1
  /// to the next. Throws EnvironmentError: no permission, disk full, not a database, damaged, or
  /// made by a newer version of this program.
  Database(std::filesystem::path file, int application_id, int version, const char* schema,
           std::span<const char* const> migrations = {});
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  /// `sql` must stay where it is, as a literal does: statements are cached by its address.
  Statement prepare(const char* sql);
  void execute(const char* sql);
  /// Commits all writes of `work` together, or none if it throws. Within another transaction,
  /// `work` is a part of that one.
  void transaction(const std::function<void()>& work);
  bool is_read_only() const;
  void require_writable() const;  ///< Throws EnvironmentError if the file may only be read.
  /// Sets a function to be called before each commit; an empty one disables it.
  void before_commit(std::function<void()> check);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  void open();
  int pragma(const char* sql);  ///< Returns the number that the pragma reports.
  void create(int application_id, const char* schema, bool may_have_log);
  void check_format(int application_id);
  void migrate(std::span<const char* const> migrations);

  std::filesystem::path file_;
  int version_;
  std::unique_ptr<sqlite3, Close> database_;
  std::unordered_map<const char*, std::unique_ptr<sqlite3_stmt, Finalize>> statements_;
  std::function<void()> before_commit_;
  bool in_transaction_ = false;
};

}  // namespace pipeline::store
