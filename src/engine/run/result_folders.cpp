#include "engine/run/result_folders.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "async/on_pool.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "store/user_data.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Kind of the stored values that record which output was copied to a path, as `DIGEST STAMP`.
constexpr auto copy_record_kind = "published_to";
/// Begins the names of folders for copies that are being made.
constexpr auto unfinished_prefix = ".pipe-publish-";

/// A folder beside the target, in which a copy is made. A lock, which ends with the driver, shows
/// that the folder is in use.
class CopyFolder {
 public:
  explicit CopyFolder(const fs::path& parent) {
    std::error_code error;
    do {  // Another driver may have removed the folder before it was locked.
      folder_.emplace(parent, unfinished_prefix);
      lock_ = core::Descriptor(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (lock_) core::lock_exclusively(lock_.get(), path());
    } while (!fs::exists(path(), error) && !error);
  }
  const fs::path& path() const { return folder_->path(); }

 private:
  core::Descriptor lock_;  ///< Released after the folder is removed.
  std::optional<core::TemporaryFolder> folder_;
};

/// Removes the copies that killed drivers have left unfinished in the folder.
void remove_unfinished(const fs::path& folder) {
  for (const auto& entry : core::entries_of(folder)) {
    if (!entry.filename().string().starts_with(unfinished_prefix)) continue;
    const core::Descriptor lock(
        ::open(entry.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    try {
      core::remove_tree(entry);
    } catch (const core::EnvironmentError&) {
      // Files that cannot be removed, such as those of another user, stay.
    }
  }
}

/// Moves a file or folder to the target, replacing a file or folder that is there. Programs that
/// read the target meanwhile find the old content or the new one. Only on a file system that
/// cannot exchange two paths, an old folder is removed first, and the target is missing for a
/// moment.
/// @param fresh has the old content after an exchange; the caller removes it
void replace(const fs::path& fresh, const fs::path& target) {
  if (::rename(fresh.c_str(), target.c_str()) == 0) return;
  if (errno != EISDIR && errno != ENOTDIR && errno != ENOTEMPTY && errno != EEXIST)
    throw core::system_error("cannot write " + target.string(), errno);
  // rename() replaces neither a folder that has files nor a file by a folder; an exchange does.
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    throw core::system_error("cannot replace " + target.string(), errno);
  core::remove_tree(target);  // The file system cannot exchange paths.
  if (::rename(fresh.c_str(), target.c_str()) != 0)
    throw core::system_error("cannot write " + target.string(), errno);
}

/// Returns true if the folder has the output's content. For a copy without a record: a killed
/// driver leaves one, and so does the removal of a state folder. A folder of another size, which
/// may be very large, is not read.
bool has_content(const fs::path& folder, const store::OutputRecord& output) {
  std::error_code error;
  std::uint64_t bytes = 0;
  for (fs::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end && bytes <= output.bytes; entry.increment(error))
    if (!entry->is_symlink(error) && entry->is_regular_file(error))
      bytes += entry->file_size(error);
  if (error || bytes != output.bytes) return false;
  try {
    store::StatIndex unsaved{fs::path()};
    return store::read_user_data(folder, unsaved).digest == output.digest;
  } catch (const core::EnvironmentError&) {  // Such as a link that leads out of the folder.
    return false;
  }
}

}  // namespace

void ResultFolders::put(const StepSpec& step, const std::vector<store::OutputRecord>& outputs) {
  if (step.publish_to.empty()) return;
  for (const auto& output : outputs) {
    if (output.temp) continue;
    copies_.push_back(*step.publish_to / output.file_name);
    context_.tasks.spawn(copy(step.name, output, copies_.back()));
  }
}

/// Returns true if the target is a copy of this output that nobody has changed since.
bool ResultFolders::is_copied(const store::OutputRecord& output, const fs::path& target) {
  const auto known = context_.services.store.key_values().find(copy_record_kind, target.string());
  std::error_code error;
  return known && fs::exists(target, error) &&
         *known == output.digest.hex() + " " + store::stamp_of(target);
}

/// Copies an output, unless the target is a copy of it already.
async::Task<> ResultFolders::copy(std::string step, store::OutputRecord output, fs::path target) {
  std::string problem;
  try {
    if (is_copied(output, target)) co_return;
    auto& values = context_.services.store.key_values();
    std::error_code error;
    const bool is_unknown =
        fs::is_directory(target, error) && !values.find(copy_record_kind, target.string());
    const auto compare = [&] { return has_content(target, output); };
    bool is_copy = false;
    if (is_unknown) is_copy = co_await async::on_pool(context_.pool, compare);
    if (is_unknown && !is_copy)
      throw core::EnvironmentError(
          "the folder " + target.string() + " exists already, and is not a copy of an output",
          {"move it away, or name another folder under `publish_to`"});
    const bool is_first = folders_.insert(target.parent_path()).second;
    const auto stamp = co_await async::on_pool(context_.pool, [&] {
      if (is_first) remove_unfinished(target.parent_path());
      if (is_copy) return store::stamp_of(target);
      core::make_folders(target.parent_path());
      const CopyFolder temporary(target.parent_path());
      const auto fresh = temporary.path() / target.filename();
      context_.services.artifacts.copy_out(output.digest, fresh);
      replace(fresh, target);
      return store::stamp_of(target);
    });
    values.put(copy_record_kind, target.string(), output.digest.hex() + " " + stamp);
  } catch (const core::EnvironmentError& error) {
    problem = error.what();
    for (const auto& advice : error.advice()) problem += "; " + advice;
  }
  if (problem.empty()) co_return;
  has_failed_ = true;
  context_.events.emit(event::Notice{
      step, "output '" + output.name + "' was not copied to " + target.string() + ": " + problem});
}

}  // namespace pipeline::engine
