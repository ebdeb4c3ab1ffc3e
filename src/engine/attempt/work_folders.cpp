#include "engine/attempt/work_folders.hpp"

#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/empty_folder.hpp"
#include "core/file.hpp"
#include "store/private_folder.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path WorkFolders::take(const std::string& name,
                           const orchestrators::Capabilities& orchestrator) {
  auto path = root_ / name;
  if (auto& spare = spare_[orchestrator.name]; !spare.empty()) {
    const auto other = std::move(spare.back());
    spare.pop_back();
    if (::rename(other.c_str(), path.c_str()) == 0) return path;
    core::remove_tree(other);
  }
  core::remove_tree(path);
  return join(name);
}

fs::path WorkFolders::join(const std::string& name) {
  auto path = root_ / name;
  for (const auto* inner : {"outputs", "scratch"}) core::make_folders(path / inner);
  struct stat status {};
  if (mode_ == 0 && ::stat(path.c_str(), &status) == 0) {
    mode_ = status.st_mode & 07777;
    store::keep_from_others(root_);
  }
  return path;
}

void WorkFolders::give_back(const fs::path& folder, const orchestrators::Capabilities& orchestrator,
                            bool succeeded) {
  try {
    if (succeeded && !orchestrator.outlives_driver &&
        is_unused(folder, orchestrator.scratch_folders))
      spare_[orchestrator.name].push_back(folder);
    else
      core::remove_tree(folder);
  } catch (const std::exception&) {  // The end of the run removes what cannot be removed now.
  }
}

bool WorkFolders::is_unused(const fs::path& folder, const std::vector<std::string>& inner) const {
  static const std::vector<std::string> names{"outputs", "scratch"};
  const auto scratch = folder / "scratch";
  return core::empty_folder(folder, mode_, names) &&
         core::empty_folder(folder / "outputs", mode_, {}) &&
         core::empty_folder(scratch, mode_, inner) &&
         std::ranges::all_of(inner, [&](const auto& name) {
           std::error_code error;
           return fs::symlink_status(scratch / name, error).type() == fs::file_type::not_found ||
                  core::empty_folder(scratch / name, mode_, {});
         });
}

}  // namespace pipeline::engine
