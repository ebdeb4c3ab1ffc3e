#include "blobs/folder/shared_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>

#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/regular_file.hpp"
#include "file_tree/beneath.hpp"

namespace pipeline::blobs::folder {
namespace {

namespace fs = std::filesystem;

constexpr mode_t file_bits = 0666, all_bits = 07777;
constexpr std::size_t max_keys = 1'000'000;
/// The age at which a file in `.new` counts as left by a killed process.
constexpr auto max_write_time = std::chrono::days(7);
/// The number of tries to put a file into a folder. Between the tries, another process may remove
/// the folder, because it is empty.
constexpr int max_tries = 100;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

BlobError damaged(const core::EnvironmentError& why) {
  return {BlobError::Kind::damaged_blob, why.what(), why.advice()};
}

/// Returns whether this user may open files in the folder. Leaves errno as it was.
bool can_search(const core::Descriptor& folder) {
  const auto before = errno;
  const bool can = folder && ::faccessat(folder.get(), ".", X_OK, AT_EACCESS) == 0;
  errno = before;
  return can;
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & all_bits : 0755;
}

}  // namespace

fs::path SharedFolder::path_of(std::string_view key) const {
  for (std::size_t begin = 0; begin <= key.size();) {
    const auto end = std::min(key.find('/', begin), key.size());
    const auto part = key.substr(begin, end - begin);
    if (part.empty() || part.front() == '.' || part.find('\0') != part.npos)
      throw BlobError(BlobError::Kind::other,
                      "'" + core::printable(std::string(key)) + "' is not a key of " + url());
    begin = end + 1;
  }
  return path_ / key;
}

/// Opens the folder that contains `path`. On failure, there is no descriptor, and errno is set. A
/// symbolic link on the way is a failure (ELOOP or ENOTDIR), because other users of the folder can
/// make links that lead anywhere.
SharedFolder::Place SharedFolder::place_of(const fs::path& path) const {
  Place place;
  place.name = path.filename().string();
  const core::Descriptor top(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (top)
    place.folder = file_tree::open_beneath(
        top.get(), path.lexically_relative(path_).parent_path().string(), O_PATH | O_DIRECTORY);
  return place;
}

/// Returns the error of a failed system call. @param what completes the message "cannot ..."
core::EnvironmentError SharedFolder::failure(const std::string& what, int error_number) const {
  std::vector<std::string> advice;
  if (error_number == EACCES || error_number == EROFS)
    advice = {"all users of the folder need permission to write in it, as after `chgrp -R GROUP " +
              path_.string() + " && chmod -R g+ws " + path_.string() + "`"};
  if (error_number == EPERM || error_number == EOPNOTSUPP || error_number == ENOLCK)
    advice = {"the folder's file system needs hard links and locks, as NFS and CephFS have them"};
  if (error_number == ELOOP || error_number == ENOTDIR)
    advice = {"no link below the folder is followed: replace it by what it leads to"};
  return core::EnvironmentError(
      core::system_error("cannot " + what + " " + url(), error_number).what(), std::move(advice));
}

void SharedFolder::check_exists() const {
  std::error_code error;
  if (!fs::is_directory(path_, error))
    throw core::EnvironmentError(
        "there is no folder " + path_.string() + ", which is the remote store",
        {"mount it, or make it (`mkdir -p " + path_.string() + "`), or correct `artifact_store`"});
}

std::optional<core::Descriptor> SharedFolder::find(const std::string& key) const {
  const auto place = place_of(path_of(key));
  core::Descriptor file;
  if (place.folder) file = core::open_untrusted_file(place.name, place.folder.get());
  if (!file && errno == EINVAL)
    throw BlobError(BlobError::Kind::damaged_blob, path_of(key).string() + " is not a file");
  if (!file && (errno == ELOOP || (errno == EACCES && can_search(place.folder))))
    throw damaged(failure("read " + key + " from", errno));
  if (!file && errno != ENOENT && errno != ENOTDIR) throw failure("read " + key + " from", errno);
  if (!file) {
    check_exists();
    return std::nullopt;
  }
  return file;
}

std::size_t SharedFolder::read(const core::Descriptor& file, const std::string& key,
                               std::uint64_t offset, std::span<char> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count = ::pread(file.get(), into.data() + done, into.size() - done,
                               static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failure("read " + key + " from", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::optional<std::string> SharedFolder::find_text(const std::string& key) const {
  const auto file = find(key);
  if (!file) return std::nullopt;
  struct stat status {};
  ::fstat(file->get(), &status);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > core::max_text_bytes) throw too_large(key, url());
  std::string text(size, '\0');
  text.resize(read(*file, key, 0, text));
  return text;
}

void SharedFolder::add_entries(const fs::path& folder, std::string_view prefix,
                               std::vector<Entry>& found) const {
  std::error_code error;
  std::vector<fs::path> inner;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_hidden(entry->path())) continue;
    auto key = entry->path().lexically_relative(path_).string();
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0)
      continue;  // Another process may remove what is listed.
    if (S_ISDIR(status.st_mode) && (key.starts_with(prefix) || prefix.starts_with(key + "/")))
      inner.push_back(entry->path());
    else if (S_ISREG(status.st_mode) && key.starts_with(prefix))
      found.push_back({std::move(key), static_cast<std::uint64_t>(status.st_size),
                       std::chrono::system_clock::from_time_t(status.st_mtime)});
  }
  if (error && error.value() != ENOENT)
    throw failure("list " + folder.string() + " in", error.value());
  if (found.size() > max_keys)
    throw core::EnvironmentError("there are more than " + std::to_string(max_keys) +
                                 " blobs below " + url() + "/" + std::string(prefix));
  for (const auto& each : inner) add_entries(each, prefix, found);
}

std::vector<Entry> SharedFolder::entries(const std::string& prefix) const {
  std::vector<Entry> found;
  const auto slash = prefix.rfind('/');
  const auto folder = slash == prefix.npos ? path_ : path_of(prefix.substr(0, slash));
  // A link in place of a folder would show the files behind it as keys, which callers remove.
  if (const auto in = place_of(folder / "."); !in.folder && errno != ENOENT)
    throw failure("list " + prefix + " in", errno);
  add_entries(folder, prefix, found);
  if (found.empty()) check_exists();
  std::ranges::sort(found, {}, &Entry::key);
  return found;
}

std::vector<std::string> SharedFolder::folders(const std::string& folder) const {
  std::vector<std::string> names;
  for (const auto& [key, size, modified] : entries(folder + "/")) {
    const auto begin = folder.size() + 1, end = key.find('/', begin);
    if (end == key.npos) continue;
    auto name = key.substr(begin, end - begin);
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

void SharedFolder::remove(const std::string& key) const {
  auto path = path_of(key);
  auto place = place_of(path);
  if (!place.folder || ::unlinkat(place.folder.get(), place.name.c_str(), 0) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) throw failure("remove " + key + " from", errno);
    return check_exists();
  }
  do {
    path = path.parent_path();
    if (path == path_) return;
    place = place_of(path);
  } while (place.folder && ::unlinkat(place.folder.get(), place.name.c_str(), AT_REMOVEDIR) == 0);
}

void SharedFolder::copy(const std::string& from, const std::string& to) const {
  const NewFile file(*this);
  // A blob is never changed in place, so that two blobs can be the same file.
  const auto source = place_of(path_of(from));
  const auto& target = file.place();
  if (!source.folder || ::linkat(source.folder.get(), source.name.c_str(), target.folder.get(),
                                 target.name.c_str(), 0) != 0) {
    if (errno != ENOENT) throw failure("copy " + from + " within", errno);
    throw BlobError(BlobError::Kind::missing_blob, "there is no " + from + " in " + url());
  }
  replace(file, to);
}

SharedFolder::NewFile::NewFile(const SharedFolder& folder) : folder_(folder) {
  std::random_device random;
  path_ = folder.path_ / ".new" / (std::to_string(random()) + "-" + std::to_string(random()));
  folder.check_exists();
  folder.make_folders(path_.parent_path());
  place_ = folder.place_of(path_);
  if (!place_.folder) throw folder.failure("write to", errno);
}

SharedFolder::NewFile::~NewFile() {
  if (place_.folder) ::unlinkat(place_.folder.get(), place_.name.c_str(), 0);
}

void SharedFolder::NewFile::create() {
  file_ = core::Descriptor(::openat(place_.folder.get(), place_.name.c_str(),
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_bits));
  if (!file_ || ::fchmod(file_.get(), mode_of(folder_.path_) & file_bits) != 0)
    throw folder_.failure("write to", errno);
}

void SharedFolder::NewFile::sync() {
  if (::fsync(file_.get()) != 0) throw folder_.failure("write to", errno);
  file_ = core::Descriptor();
}

/// Makes a folder and its parents. Other users may put links in place of folders at any moment, so
/// each folder is made in an open descriptor of its parent.
void SharedFolder::make_folders(const fs::path& folder) const {
  if (folder == path_) return;
  for (const bool parents_are_made : {false, true}) {
    const auto [parent, name] = place_of(folder);
    if (parent && ::mkdirat(parent.get(), name.c_str(), mode_of(path_)) == 0) {
      const core::Descriptor made(
          ::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (made) ::fchmod(made.get(), mode_of(path_));  // mkdirat() removes the bits of the umask.
      return;
    }
    if (errno == EEXIST || (errno == ENOENT && parents_are_made)) return;
    if (errno != ENOENT) throw failure("make a folder in", errno);
    make_folders(folder.parent_path());
  }
}

/// Makes the file the blob of the key; returns 0 or the error number.
/// @param replaces whether an earlier blob is replaced; if not, an earlier blob is the error EEXIST
int SharedFolder::publish(const NewFile& file, const std::string& key, bool replaces) const {
  const auto target = path_of(key);
  const auto& from = file.place();
  for (int tries = 0; tries < max_tries; ++tries) {
    const auto [folder, name] = place_of(target);
    const auto failed =
        !folder    ? -1
        : replaces ? ::renameat(from.folder.get(), from.name.c_str(), folder.get(), name.c_str())
                   : ::linkat(from.folder.get(), from.name.c_str(), folder.get(), name.c_str(), 0);
    if (failed == 0) {
      core::sync_to_disk(target.parent_path());
      return 0;
    }
    if (errno != ENOENT) return errno;
    make_folders(target.parent_path());
  }
  return ENOENT;
}

void SharedFolder::replace(const NewFile& file, const std::string& key) const {
  constexpr bool replaces = true;
  const auto error = publish(file, key, replaces);
  if (error == EISDIR || error == ENOTDIR || error == ELOOP)
    throw damaged(failure("write " + key + " to", error));
  if (error != 0) throw failure("write " + key + " to", error);
}

bool SharedFolder::add(const NewFile& file, const std::string& key) const {
  constexpr bool replaces = false;
  const auto error = publish(file, key, replaces);
  if (error != 0 && error != EEXIST) throw failure("write " + key + " to", error);
  return error == 0;
}

std::optional<core::Descriptor> SharedFolder::try_lock(const std::string& key) const {
  // All keys share 256 lock files, because a lock file can never be removed safely.
  constexpr std::size_t digits = 2;
  const auto path = path_ / ".locks" / core::sha256(key).hex().substr(0, digits);
  make_folders(path.parent_path());
  const auto place = place_of(path);
  core::Descriptor file;
  if (place.folder)
    file = core::Descriptor(::openat(place.folder.get(), place.name.c_str(),
                                     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                     file_bits));
  if (!file) throw failure("lock " + key + " in", errno);
  struct stat status {};
  // Another user can make a hard link here to a private file of this user; fchmod() would then
  // make that file readable for all.
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1)
    throw failure("lock " + key + " in", ELOOP);
  ::fchmod(file.get(), mode_of(path_) & file_bits);  // Fails for the file of another user.
  struct flock range {};
  range.l_type = F_WRLCK;
  if (::fcntl(file.get(), F_OFD_SETLK, &range) == 0) return file;
  if (errno != EAGAIN && errno != EACCES) throw failure("lock " + key + " in", errno);
  return std::nullopt;
}

void SharedFolder::remove_abandoned() const {
  const auto folder = place_of(path_ / ".new" / ".").folder;
  if (!folder) return;
  // The path of the open folder itself, because others can replace its name by a link meanwhile.
  const fs::path open = "/proc/self/fd/" + std::to_string(folder.get());
  const auto now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator entry(open, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename();
    struct stat status {};
    if (::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        now - std::chrono::system_clock::from_time_t(status.st_mtime) > max_write_time)
      ::unlinkat(folder.get(), name.c_str(), 0);
  }
}

}  // namespace pipeline::blobs::folder
