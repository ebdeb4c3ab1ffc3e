#include "remote_driver/snapshot.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::remote_driver {
namespace {

namespace fs = std::filesystem;

fs::path deepest_common_folder(const fs::path& one, const fs::path& other) {
  fs::path common;
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end() && *a == *b;
       ++a, ++b)
    common /= *a;
  return common;
}

}  // namespace

Snapshot::Snapshot(fs::path folder, const fs::path& root, const std::set<fs::path>& files)
    : folder_(std::move(folder)), top_(root) {
  for (const auto& file : files) top_ = deepest_common_folder(top_, file);
  core::make_folders(folder_);
  for (const auto& file : files) add(file, path_of(file));
}

fs::path Snapshot::path_of(const fs::path& file) const {
  return (folder_ / file.lexically_relative(top_)).lexically_normal();
}

void Snapshot::add(const fs::path& source, const fs::path& target) const {
  std::error_code error;
  if (fs::is_directory(source, error)) return core::make_folders(target);
  if (!fs::is_regular_file(source, error)) return;
  core::make_folders(target.parent_path());
  fs::copy_file(source, target, fs::copy_options::overwrite_existing, error);
  if (error)
    throw core::system_error("cannot copy " + source.string() + " to " + target.string(),
                             error.value());
}

}  // namespace pipeline::remote_driver
