#include "cli/snapshot.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/file.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

/// The deepest folder that holds both.
fs::path above(const fs::path& one, const fs::path& other) {
  fs::path common;
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end() && *a == *b;
       ++a, ++b)
    common /= *a;
  return common;
}

void keep_copy(const fs::path& source, const fs::path& target) {
  std::error_code error;
  if (fs::is_directory(source, error)) return core::make_folders(target);
  if (!fs::is_regular_file(source, error)) return;  // looked for, and not there
  core::make_folders(target.parent_path());
  fs::copy_file(source, target, fs::copy_options::overwrite_existing, error);
  if (error)
    throw core::system_error("cannot copy " + source.string() + " to " + target.string(),
                             error.value());
}

}  // namespace

fs::path keep_files(Session& session, const fs::path& folder) {
  const auto& profile = session.context.options().profile;
  const auto root = session.pipeline().root.lexically_normal(),
             file = session.file.lexically_normal();
  const auto profiles = spec::profile_files(file.parent_path());
  std::set<fs::path> files;
  for (const auto& source : session.sources()) files.insert(source.lexically_normal());
  for (const auto& each : profiles) files.erase(each.lexically_normal());
  for (const auto* step : session.selected_steps())
    for (const auto& each : session.resolver().code_of(*step).files)
      files.insert(each.source.lexically_normal());
  auto top = root;
  for (const auto& each : files) top = above(top, each);
  const auto placed = [&](const fs::path& path) {
    return (folder / path.lexically_relative(top)).lexically_normal();
  };
  core::make_folders(folder);
  for (const auto& each : files) keep_copy(each, placed(each));
  if (!profile.empty())
    keep_copy(spec::find_profile(profile, file.parent_path()).file,
              placed(file.parent_path()) / "profiles.yaml");
  return placed(file);
}

}  // namespace pipeline::cli
