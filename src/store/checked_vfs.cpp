#include "store/checked_vfs.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

namespace pipeline::store {

namespace {

constexpr char vfs_name[] = "pipe-checked";
constexpr int database_header_size = 100;  // Section 1.3 of SQLite's file format.
constexpr unsigned char application_id_bytes[] = {
    0x70, 0x69, 0x70, 0x65};  // "pipe", the application_id of run_schema.hpp.

/// An open file as SQLite sees it; the underlying file follows in the same allocation.
struct CheckedFile {
  sqlite3_file base;
  bool has_checksums;
};

thread_local int last_errno = 0;

/// Records the errno of a failure, because SQLite loses it if a commit fails.
int noted(int result) {
  const int kind = result & 0xff;
  if (result != SQLITE_IOERR_SHORT_READ &&
      (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY))
    last_errno = errno;
  return result;
}

sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<CheckedFile*>(file) + 1);
}
sqlite3_vfs* real(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

/// Returns the checksum of a page and its offset. Each step is a bijection in the sum and in the
/// word, so one changed bit always changes the result. The result is never 0, which marks a page
/// written by a program without this layer.
std::uint64_t checksum(const unsigned char* page, std::uint64_t offset) {
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL ^ offset;
  for (int i = 0; i < page_size - reserved_bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, page + i, 8);
    sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
    sum ^= sum >> 32;
  }
  return sum ? sum : 1;
}

bool is_page(sqlite3_file* file, int amount, sqlite3_int64 offset) {
  return reinterpret_cast<CheckedFile*>(file)->has_checksums && amount == page_size &&
         offset % page_size == 0;
}

/// Returns true for a part of one page: since 3.45, SQLite reads long values past its cache. The
/// first page does not count, because SQLite reads its header before the page size is known.
bool is_part(sqlite3_file* file, int amount, sqlite3_int64 offset) {
  return reinterpret_cast<CheckedFile*>(file)->has_checksums && amount < page_size &&
         offset >= page_size && offset % page_size + amount <= page_size;
}

/// Returns true for another program's database: it has no space reserved for checksums (byte 20 of
/// its header, section 1.3 of the file format) and another application identifier (byte 68). Both
/// must differ, so that damage to one of them does not disable the checks.
bool is_foreign(const void* header) {
  const auto* bytes = static_cast<const unsigned char*>(header);
  return bytes[20] != reserved_bytes &&
         std::memcmp(bytes + 68, application_id_bytes, sizeof application_id_bytes) != 0;
}

int read(sqlite3_file* file, void* buffer, int amount, sqlite3_int64 offset) {
  if (is_part(file, amount, offset)) {
    std::array<unsigned char, page_size> page{};
    const auto begin = offset % page_size;
    const int result = read(file, page.data(), page_size, offset - begin);
    std::memcpy(buffer, page.data() + begin, static_cast<std::size_t>(amount));
    return result;
  }
  const int result = real(file)->pMethods->xRead(real(file), buffer, amount, offset);
  if (result != SQLITE_OK) return noted(result);
  if (offset == 0 && amount >= database_header_size && is_foreign(buffer))
    reinterpret_cast<CheckedFile*>(file)->has_checksums = false;
  if (!is_page(file, amount, offset)) return result;
  auto* page = static_cast<unsigned char*>(buffer);
  std::uint64_t stored;
  std::memcpy(&stored, page + page_size - reserved_bytes, reserved_bytes);
  if (stored == 0) return SQLITE_OK;
  if (stored != checksum(page, static_cast<std::uint64_t>(offset))) return SQLITE_IOERR_DATA;
  // Clears the checksum. Otherwise the page, once changed, would be written into the write-ahead
  // log with its old checksum, which a program without this layer would copy into the database.
  std::memset(page + page_size - reserved_bytes, 0, reserved_bytes);
  return SQLITE_OK;
}

int write(sqlite3_file* file, const void* buffer, int amount, sqlite3_int64 offset) {
  if (!is_page(file, amount, offset))
    return noted(real(file)->pMethods->xWrite(real(file), buffer, amount, offset));
  std::array<unsigned char, page_size> page;
  std::memcpy(page.data(), buffer, page_size);
  const auto sum = checksum(page.data(), static_cast<std::uint64_t>(offset));
  std::memcpy(page.data() + page_size - reserved_bytes, &sum, reserved_bytes);
  return noted(real(file)->pMethods->xWrite(real(file), page.data(), amount, offset));
}

/// Version 2 of the interface: with shared memory, which the write-ahead log needs; without xFetch,
/// which would bypass read().
const sqlite3_io_methods checked_methods = {
    2,
    [](sqlite3_file* f) {
      return real(f)->pMethods ? real(f)->pMethods->xClose(real(f)) : SQLITE_OK;
    },
    read,
    write,
    [](sqlite3_file* f, sqlite3_int64 size) {
      return noted(real(f)->pMethods->xTruncate(real(f), size));
    },
    [](sqlite3_file* f, int flags) { return noted(real(f)->pMethods->xSync(real(f), flags)); },
    [](sqlite3_file* f, sqlite3_int64* size) {
      return real(f)->pMethods->xFileSize(real(f), size);
    },
    [](sqlite3_file* f, int level) { return real(f)->pMethods->xLock(real(f), level); },
    [](sqlite3_file* f, int level) { return real(f)->pMethods->xUnlock(real(f), level); },
    [](sqlite3_file* f, int* held) { return real(f)->pMethods->xCheckReservedLock(real(f), held); },
    [](sqlite3_file* f, int operation, void* argument) {
      return real(f)->pMethods->xFileControl(real(f), operation, argument);
    },
    [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); },
    [](sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); },
    [](sqlite3_file* f, int page, int size, int extend, void volatile** memory) {
      return noted(real(f)->pMethods->xShmMap(real(f), page, size, extend, memory));
    },
    [](sqlite3_file* f, int offset, int count, int flags) {
      return real(f)->pMethods->xShmLock(real(f), offset, count, flags);
    },
    [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); },
    [](sqlite3_file* f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); },
    nullptr,
    nullptr,
};

/// The databases that this process has opened, by their paths.
class OpenedDatabases {
 public:
  void add(const char* name) {
    const std::scoped_lock lock(mutex_);
    names_.insert(name);
  }
  /// Returns true for a log, a journal or a super-journal of one of these databases. The name of
  /// such a file is the database's with a suffix.
  bool own(std::string_view file) {
    const std::scoped_lock lock(mutex_);
    const auto end = file.rfind('-');
    return end != file.npos && names_.contains(std::string(file.substr(0, end)));
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

OpenedDatabases& opened_databases() {
  static OpenedDatabases all;
  return all;
}

/// A journal that somebody else has left beside a database may name any file as its super-journal,
/// which SQLite removes once the journal has been rolled back (section 5.0 of
/// https://www.sqlite.org/atomiccommit.html).
int remove_file(sqlite3_vfs* vfs, const char* name, int sync) {
  if (opened_databases().own(name)) return noted(real(vfs)->xDelete(real(vfs), name, sync));
  errno = EPERM;
  return noted(SQLITE_IOERR_DELETE);
}

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* checked = reinterpret_cast<CheckedFile*>(file);
  checked->has_checksums = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  real(file)->pMethods = nullptr;
  struct stat status {};
  // Opening a pipe that somebody else has put there would wait for the pipe's other end.
  const bool is_special_file = name && ::stat(name, &status) == 0 && !S_ISREG(status.st_mode);
  const int result = is_special_file
                         ? SQLITE_CANTOPEN
                         : noted(real(vfs)->xOpen(real(vfs), name, real(file), flags, out_flags));
  if (name && (flags & SQLITE_OPEN_MAIN_DB)) opened_databases().add(name);
  // SQLite closes a file whose opening has failed if, and only if, it has methods.
  file->pMethods = real(file)->pMethods ? &checked_methods : nullptr;
  return result;
}

}  // namespace

int last_disk_error() { return std::exchange(last_errno, 0); }

const char* checked_vfs() {
  static sqlite3_vfs vfs = [] {
    auto* below = sqlite3_vfs_find(nullptr);
    sqlite3_vfs layer = *below;
    layer.szOsFile = static_cast<int>(sizeof(CheckedFile)) + below->szOsFile;
    layer.pNext = nullptr;
    layer.zName = vfs_name;
    layer.pAppData = below;
    layer.xOpen = open;
    layer.xDelete = remove_file;
    layer.xAccess = [](sqlite3_vfs* v, const char* name, int flags, int* out) {
      return real(v)->xAccess(real(v), name, flags, out);
    };
    layer.xFullPathname = [](sqlite3_vfs* v, const char* name, int size, char* out) {
      return real(v)->xFullPathname(real(v), name, size, out);
    };
    return layer;
  }();
  static const bool registered = sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
  return registered ? vfs_name : nullptr;
}

}  // namespace pipeline::store
