#include "orchestrators/processes/environment_use.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/file.hpp"
#include "core/text.hpp"
#include "orchestrators/cache_folder.hpp"
#include "orchestrators/usage/kernel_file.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

/// Returns the values of VIRTUAL_ENV of all processes whose environment this user may read.
std::set<std::string> environments_in_use() {
  constexpr std::string_view name = "VIRTUAL_ENV=";
  std::set<std::string> used;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto process = entry.path().filename().string();
    if (!std::ranges::all_of(process, [](char c) { return c >= '0' && c <= '9'; })) continue;
    const auto variables = usage::process_variables(entry.path());
    for (const auto variable : core::split(variables, '\0'))
      if (variable.starts_with(name)) used.emplace(variable.substr(name.size()));
  }
  return used;
}

}  // namespace

fs::path environments_folder() { return cache_folder() / "environments"; }

std::vector<fs::path> unused_environments() {
  const auto used = environments_in_use();
  std::vector<fs::path> unused;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(environments_folder(), error))
    if (entry.is_directory(error) && !used.contains(entry.path().string()))
      unused.push_back(entry.path());
  std::ranges::sort(unused);
  return unused;
}

bool remove_environment(const fs::path& folder) {
  const core::Descriptor lock(
      ::open((folder.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  core::remove_tree(folder);
  return true;
}

}  // namespace pipeline::orchestrators::processes
