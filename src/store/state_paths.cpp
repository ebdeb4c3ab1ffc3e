#include "store/state_paths.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::store {
namespace {

std::filesystem::path checked(const std::string& name) {
  std::filesystem::path relative(name);
  if (name.empty() || relative.is_absolute() || std::ranges::find(relative, "..") != relative.end())
    throw core::EnvironmentError("'" + name + "' does not name a file in the state folder");
  return relative;
}

}  // namespace

std::string log_name(const std::string& run, const std::string& step, unsigned attempt,
                     unsigned rank) {
  const auto task = rank == 0 ? std::string() : ".rank-" + std::to_string(rank);
  return run + "/" + step + "." + std::to_string(attempt) + task + ".log";
}

std::filesystem::path StatePaths::log_file(const std::string& name) const {
  return folder_ / "logs" / checked(name);
}

std::filesystem::path StatePaths::work_folder(const std::string& run) const {
  return folder_ / "work" / checked(run);
}

std::filesystem::path StatePaths::failed_folder(const std::string& run) const {
  return folder_ / "failed" / checked(run);
}

std::filesystem::path StatePaths::detached_folder(const std::string& run) const {
  return folder_ / "detached" / checked(run);
}

std::filesystem::path StatePaths::heartbeat_file(const std::string& run) const {
  return folder_ / "drivers" / checked(run);
}

void StatePaths::remove(const std::filesystem::path& path) const {
  auto above = folder_;
  for (const auto& part : path.lexically_relative(folder_).parent_path()) {
    above /= part;
    std::error_code error;
    if (std::filesystem::is_symlink(above, error))
      throw core::EnvironmentError(
          "cannot remove " + path.string() + ": " + above.string() + " is a link",
          {"another user may have changed the state folder: look at it"});
  }
  core::remove_tree(path);
}

}  // namespace pipeline::store
