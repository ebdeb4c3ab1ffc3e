#include "engine/run/result_folders.hpp"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <utility>

#include "async/on_pool.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "store/user_data.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Kind of the values that say what was copied to a path.
constexpr auto copies_kind = "published_to";

/// Puts the file or folder in place of what is there, at no moment leaving nothing.
void replace(const fs::path& made, const fs::path& target) {
  if (::rename(made.c_str(), target.c_str()) == 0) return;
  if (errno != EISDIR && errno != ENOTDIR && errno != ENOTEMPTY && errno != EEXIST)
    throw core::system_error("cannot write " + target.string(), errno);
  // Folders cannot be replaced by one that is not empty, but two paths can be exchanged.
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    throw core::system_error("cannot replace " + target.string(), errno);
  core::remove_tree(target);  // A file system without exchanges.
  if (::rename(made.c_str(), target.c_str()) != 0)
    throw core::system_error("cannot write " + target.string(), errno);
}

}  // namespace

void ResultFolders::put(const StepSpec& step, const std::vector<store::OutputRecord>& outputs) {
  if (step.publish_to.empty()) return;
  for (const auto& output : outputs) {
    if (output.temp) continue;
    copies_.push_back(step.publish_to / output.file_name);
    context_.tasks.spawn(copy(step.name, output, copies_.back()));
  }
}

/// Returns true if the path still has what was copied there, which is this output.
bool ResultFolders::is_there(const store::OutputRecord& output, const fs::path& target) {
  const auto known = context_.services.store.key_values().find(copies_kind, target.string());
  std::error_code error;
  return known && fs::exists(target, error) &&
         *known == output.digest.hex() + " " + store::stamp_of(target);
}

async::Task<> ResultFolders::copy(std::string step, store::OutputRecord output, fs::path target) {
  std::string trouble;
  try {
    if (is_there(output, target)) co_return;
    auto& values = context_.services.store.key_values();
    std::error_code error;
    if (fs::is_directory(target, error) && !values.find(copies_kind, target.string()))
      throw core::EnvironmentError(
          "the folder " + target.string() + " is there already, and is not a copy of an output",
          {"move it away, or name another folder under `publish_to`"});
    const auto stamp = co_await async::on_pool(context_.pool, [&] {
      core::make_folders(target.parent_path());
      const core::TemporaryFolder temporary(target.parent_path(), ".pipe-publish-");
      const auto made = temporary.path() / target.filename();
      context_.services.artifacts.copy_out(output.digest, made);
      replace(made, target);
      return store::stamp_of(target);
    });
    values.put(copies_kind, target.string(), output.digest.hex() + " " + stamp);
  } catch (const core::EnvironmentError& error) {
    trouble = error.what();
    for (const auto& advice : error.advice()) trouble += "; " + advice;
  }
  if (trouble.empty()) co_return;
  has_failed_ = true;
  context_.events.emit(event::Notice{step, "'" + output.name + "' was not copied: " + trouble});
}

}  // namespace pipeline::engine
