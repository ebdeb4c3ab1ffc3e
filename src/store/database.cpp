#include "store/database.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/checked_vfs.hpp"
#include "store/state_lock.hpp"

namespace pipeline::store {
namespace {

constexpr std::uintmax_t large_log = 1 << 20;  // Bytes of a write-ahead log.

[[noreturn]] void throw_damaged(const std::string& what, const std::string& how,
                                const std::filesystem::path& file) {
  throw core::EnvironmentError(
      what + " is damaged, or another program has changed it: " + how,
      {"move " + file.string() +
           " aside; the next run makes a new one (artifacts are kept, but every step runs again)",
       "`sqlite3 " + file.string() + " .recover` saves what can be read"});
}

/// Creates and removes a file in the folder. Returns the errno of a failure, 0 for success.
int errno_of_creating_in(const std::filesystem::path& folder) {
  const auto probe = folder / (".probe." + std::to_string(::getpid()));
  const core::Descriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return errno;
  ::unlink(probe.c_str());
  return 0;
}

/// @param known_errno the errno of the last failure, 0 if none is known; reported if this process
///                    has the permission to write the file
[[noreturn]] void throw_not_writable(const std::filesystem::path& file, int known_errno = 0) {
  if (::access(file.c_str(), W_OK) != 0) known_errno = errno;
  throw core::system_error("cannot write the run store " + file.string(),
                           known_errno ? known_errno : EACCES);
}

/// Throws the EnvironmentError of a failed call of SQLite.
/// @param code the result of the call
[[noreturn]] void throw_failed(sqlite3* database, int code, const std::filesystem::path& file) {
  const std::string what = "the run store " + file.string();
  const int last = last_disk_error();
  switch (code & 0xff) {
    case SQLITE_FULL: throw core::system_error("cannot write " + what, ENOSPC);
    case SQLITE_READONLY:
    case SQLITE_PERM: throw_not_writable(file, last);
    case SQLITE_CANTOPEN: {
      // SQLite has tried several ways to open the file, and knows only why the last one failed.
      const int reason = errno_of_creating_in(file.parent_path());
      throw core::system_error("cannot open " + what, reason ? reason : EIO);
    }
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_DATA) throw_damaged(what, "a page does not fit its checksum", file);
      // SQLite reports a full disk as an I/O error when it has to grow a shared memory file.
      if (const int reason = database ? sqlite3_system_errno(database) : 0; reason || last)
        throw core::system_error("cannot write " + what, reason ? reason : last);
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: throw_damaged(what, sqlite3_errstr(code), file);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw core::EnvironmentError(
          what + " has been locked by another process for half a minute",
          {"`fuser " + file.string() + "` shows which process; end it, or wait, and try again"});
    default: break;
  }
  throw core::EnvironmentError(
      what + " failed: " + (database ? sqlite3_errmsg(database) : sqlite3_errstr(code)));
}

}  // namespace

bool Statement::step() {
  switch (const int code = sqlite3_step(statement_)) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: return false;
    default:
      throw_failed(database_,
                   sqlite3_extended_errcode(database_) ? sqlite3_extended_errcode(database_) : code,
                   file_);
  }
}

std::string Statement::text(int column) const {
  const auto* text = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return text
             ? std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
             : std::string();
}

Database::Database(std::filesystem::path file, int application_id, int version, const char* schema,
                   std::span<const char* const> migrations)
    : file_(std::move(file)), version_(version) {
  open();
  // A write-ahead log needs memory that all processes share, which a network's file system lacks.
  // There, exclusive locking lets this process change a store with a log to one without: SQLite
  // then needs no shared memory.
  const bool may_have_log = is_local_file_system(file_.parent_path());
  if (!may_have_log && !is_read_only())
    execute(
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE; PRAGMA locking_mode=NORMAL");
  if (pragma("PRAGMA user_version") == 0) create(application_id, schema, may_have_log);
  check_format(application_id);
  migrate(migrations);
  // With a write-ahead log, a power failure may cost the last transactions, but not the database.
  execute(may_have_log ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL");
  execute("PRAGMA foreign_keys=ON");
  // SQLite would copy the log into the database at every close, which would take longer than all
  // other work of a run that reuses everything. The destructor copies a large log only.
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Database::open() {
  core::make_folders(file_.parent_path());
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(file_)))
    throw core::EnvironmentError(
        "the run store " + file_.string() + " is a symbolic link",
        {"another user may have put the link there; if you trust its target, move the target to " +
         file_.string()});
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(file_.c_str(), &database,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                   checked_vfs());
  database_.reset(database);
  if (code != SQLITE_OK) throw_failed(database, code, file_);
  sqlite3_extended_result_codes(database, 1);
  // The database may have been downloaded from a bucket, and somebody else may have written it. The
  // store uses no views and no triggers, so that those in the file, which may never end, are off.
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  for (const int kind : {SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER})
    sqlite3_db_config(database, kind, 0, nullptr);
  sqlite3_busy_timeout(database, 30'000);
  // Reserves space for a checksum in each page, if this call is about to create the database.
  int reserved = reserved_bytes;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
}

// SQLite silently opens a file read-only if it may not be written.
bool Database::is_read_only() const { return sqlite3_db_readonly(database_.get(), "main") == 1; }

void Database::require_writable() const {
  if (is_read_only()) throw_not_writable(file_);
}

int Database::pragma(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (const int failed = sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr);
      failed != SQLITE_OK)
    throw_failed(database_.get(), failed, file_);
  const std::unique_ptr<sqlite3_stmt, Finalize> owned(statement);
  if (const int failed = sqlite3_step(statement); failed != SQLITE_ROW)
    throw_failed(database_.get(), failed, file_);
  return sqlite3_column_int(statement, 0);
}

void Database::create(int application_id, const char* schema, bool may_have_log) {
  require_writable();
  // The lock admits one process at a time, because SQLite fails instead of waiting while another
  // process changes the database to a write-ahead log.
  const core::Descriptor folder(
      ::open(file_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) core::lock_exclusively(folder.get(), file_.parent_path());
  if (pragma("PRAGMA schema_version") != 0) return;  // Another process has created it meanwhile.
  // The first page is written with a journal, and the journal has to reach the disk before the
  // page: after a power failure, the page may be zeros, which SQLite could not open without the
  // journal.
  execute("PRAGMA synchronous=NORMAL");
  if (may_have_log) execute("PRAGMA journal_mode=WAL");
  execute("BEGIN IMMEDIATE");
  execute(schema);
  execute(("PRAGMA application_id=" + std::to_string(application_id) +
           ";PRAGMA user_version=" + std::to_string(version_))
              .c_str());
  execute("COMMIT");
}

void Database::check_format(int application_id) {
  if (pragma("PRAGMA application_id") != application_id)
    throw core::EnvironmentError(
        "the run store " + file_.string() + " is a database of another program",
        {"move it away, or choose another folder with --state"});
  if (const int found = pragma("PRAGMA user_version"); found > version_)
    throw core::EnvironmentError(
        "the run store " + file_.string() + " was made by a newer version of pipe (format " +
            std::to_string(found) + ", this one knows " + std::to_string(version_) + ")",
        {"use the newer pipe, or another folder with --state"});
}

void Database::migrate(std::span<const char* const> migrations) {
  if (pragma("PRAGMA user_version") >= version_) return;
  require_writable();
  execute("BEGIN IMMEDIATE");
  for (int found = pragma("PRAGMA user_version"); found < version_; ++found)
    execute(migrations[static_cast<std::size_t>(found) - 1]);
  execute(("PRAGMA user_version=" + std::to_string(version_)).c_str());
  execute("COMMIT");
}

Database::~Database() {
  statements_.clear();
  if (is_read_only()) return;
  // A small log stays, because a checkpoint waits for the disk, and the next process reads a small
  // log fast. A large log is copied into the database and emptied, unless another process uses the
  // database. The first write to an emptied log waits for the disk: the unchanged version is
  // written here, so that the next run does not wait.
  std::error_code error;
  const auto log = std::filesystem::file_size(file_.string() + "-wal", error);
  if (error || log < large_log) return;
  sqlite3_busy_timeout(database_.get(), 0);
  if (sqlite3_wal_checkpoint_v2(database_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr) != SQLITE_OK)
    return;
  sqlite3_exec(database_.get(), ("PRAGMA user_version=" + std::to_string(version_)).c_str(),
               nullptr, nullptr, nullptr);
}

void Database::before_commit(std::function<void()> check) {
  before_commit_ = std::move(check);
  int (*call)(void*) = [](void* self) {
    static_cast<Database*>(self)->before_commit_();
    return 0;
  };
  sqlite3_commit_hook(database_.get(), before_commit_ ? call : nullptr, this);
}

void Database::execute(const char* sql) {
  if (const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
      code != SQLITE_OK)
    throw_failed(database_.get(), code, file_);
}

void Database::transaction(const std::function<void()>& work) {
  if (in_transaction_) return work();
  prepare("BEGIN IMMEDIATE").run();
  in_transaction_ = true;
  try {
    work();
    prepare("COMMIT").run();
    in_transaction_ = false;
  } catch (...) {
    in_transaction_ = false;
    try {
      execute("ROLLBACK");
    } catch (const core::EnvironmentError&) {
      // SQLite has already rolled back, as it does on a full disk.
    }
    throw;
  }
}

Statement Database::prepare(const char* sql) {
  auto& kept = statements_[sql];
  if (!kept) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) throw_failed(database_.get(), code, file_);
    kept.reset(statement);
  }
  return Statement(database_.get(), kept.get(), file_);
}

}  // namespace pipeline::store
