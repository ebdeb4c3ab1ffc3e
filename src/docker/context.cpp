#include "docker/context.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <sys/stat.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/ignore.hpp"
#include "core/own_files.hpp"
#include "core/quantity.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::docker {

namespace fs = std::filesystem;

namespace {

/// Identifies a folder, whatever path leads to it; unset for a folder that does not exist.
using FolderId = std::optional<std::pair<dev_t, ino_t>>;

FolderId id_of(const fs::path& folder) {
  struct stat status {};
  if (folder.empty() || ::stat(folder.c_str(), &status) != 0) return std::nullopt;
  return std::pair(status.st_dev, status.st_ino);
}

/// Walks a folder below `root` in path order, without the folder `left_out`, and adds its entries
/// to `files`. `enter(path)` decides whether a folder is walked, `take(path, is_folder)` whether an
/// entry is kept.
template <class Enter, class Take>
void walk(const fs::path& root, const std::string& folder, const FolderId& left_out,
          const Enter& enter, const Take& take, std::vector<ContextFile>& files) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator entry(root / folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(*entry);
  if (error)
    throw core::system_error("reading the folder " + (root / folder).string(), error.value());
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) {
    return entry.path().filename().string();
  });
  for (auto& entry : entries) {
    auto path = folder.empty() ? entry.path().filename().string()
                               : folder + "/" + entry.path().filename().string();
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) != 0)
      throw core::system_error("reading " + entry.path().string(), errno);
    if (S_ISDIR(status.st_mode)) {
      if (left_out == std::pair(status.st_dev, status.st_ino) ||
          core::is_state_folder(entry.path()))
        continue;
      bool kept = take(path, true);
      if (enter(path)) walk(root, path, left_out, enter, take, files);
      if (kept)
        files.push_back({.path = path,
                         .source = entry.path(),
                         .mode = status.st_mode & 07777,
                         .kind = ContextFile::Kind::directory});
    } else if (take(path, false) && !core::is_own_file(entry.path())) {
      if (S_ISLNK(status.st_mode)) {
        auto target = fs::read_symlink(entry.path(), error).string();
        if (error) throw core::system_error("reading " + entry.path().string(), error.value());
        files.push_back({.path = path,
                         .content = std::move(target),
                         .source = entry.path(),
                         .mode = 0777,
                         .kind = ContextFile::Kind::symlink});
      } else if (S_ISREG(status.st_mode)) {
        file_tree::check_holes(entry.path(), file_tree::holes_in(entry.path(), status));
        files.push_back({.path = path,
                         .source = entry.path(),
                         .bytes = static_cast<std::uint64_t>(status.st_size),
                         .mode = status.st_mode & 07777});
      }
      // Sockets, pipes and devices are skipped.
    }
  }
}

}  // namespace

std::vector<ContextFile> folder_context(const fs::path& root, std::string_view ignore_rules,
                                        const std::vector<std::string>& always,
                                        const fs::path& state) {
  core::DockerIgnore ignore(ignore_rules);
  std::vector<ContextFile> files;
  auto is_needed = [&](const std::string& path) {
    return std::ranges::find(always, path) != always.end();
  };
  auto leads_to_needed = [&](const std::string& path) {
    return std::ranges::any_of(always,
                               [&](auto& needed) { return needed.starts_with(path + "/"); });
  };
  walk(
      root, "", id_of(state),
      [&](const std::string& path) {
        return ignore.has_exceptions() || leads_to_needed(path) || !ignore.ignores(path);
      },
      [&](const std::string& path, bool) { return is_needed(path) || !ignore.ignores(path); },
      files);
  std::ranges::sort(files, {}, &ContextFile::path);
  return files;
}

std::vector<ContextFile> project_files(const fs::path& root,
                                       const std::vector<std::string>& patterns,
                                       const fs::path& state) {
  core::DockerIgnore docker_ignore(core::read_if_file(root / ".dockerignore"));
  core::GitIgnore git_ignore;
  git_ignore.add("", core::read_if_file(root / ".gitignore"));
  auto is_named = [&](const std::string& path) {
    if (patterns.empty()) return true;
    for (auto pattern : patterns) {
      while (pattern.starts_with("./")) pattern.erase(0, 2);
      while (pattern.ends_with('/')) pattern.pop_back();
      if (pattern.empty() || pattern == "." || path == pattern || path.starts_with(pattern + "/") ||
          core::matches_glob(pattern, path))
        return true;
      for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
        if (core::matches_glob(pattern, path.substr(0, slash))) return true;
    }
    return false;
  };
  auto is_left_out = [&](const std::string& file) {
    return file == ".git" || docker_ignore.ignores(file) || git_ignore.ignores(file, false);
  };
  std::vector<ContextFile> files;
  walk(
      root, "", id_of(state),
      [&](const std::string& path) {
        if (path == ".git" || git_ignore.ignores(path, true) ||
            (docker_ignore.ignores(path) && !docker_ignore.has_exceptions()))
          return false;
        git_ignore.add(path, core::read_if_file(root / path / ".gitignore"));
        return true;
      },
      [&](const std::string& path, bool folder) {
        return !folder && is_named(path) && !is_left_out(path);
      },
      files);
  std::ranges::sort(files, {}, &ContextFile::path);
  return files;
}

std::vector<ContextFile> package_files(const fs::path& folder, const fs::path& state) {
  auto files = project_files(folder, {}, state);
  std::erase_if(files, [](const ContextFile& file) {
    const std::string_view path = file.path;
    const auto top = path.starts_with("src/") ? path.substr(4) : path;
    return path.starts_with("build/lib") || path.starts_with("build/bdist.") ||
           path.starts_with("build/temp.") || top.substr(0, top.find('/')).ends_with(".egg-info") ||
           path.find("__pycache__/") != path.npos;
  });
  return files;
}

std::vector<ContextFile> local_files(const std::string& path, const fs::path& root,
                                     const fs::path& state) {
  const auto below = fs::path(path).lexically_normal();
  if (below.is_absolute() || *below.begin() == "..")
    throw core::InputError("the local package " + path + " is not below the pipeline's folder",
                           "copy it there, or make a wheel of it: pip wheel --no-deps " + path);
  std::error_code error;
  const auto source = root / below;
  std::vector<ContextFile> files;
  if (fs::is_directory(source, error)) {
    files = package_files(source, state);
    for (auto& file : files) file.path = (below / file.path).lexically_normal().generic_string();
    return files;
  }
  const auto bytes = fs::file_size(source, error);
  if (error)
    throw core::InputError("the local package " + path + " cannot be read: " + error.message(),
                           "name a file or folder; its path begins at the pipeline's folder");
  files.push_back({.path = below.generic_string(), .source = source, .bytes = bytes});
  return files;
}

std::uint64_t size_of(const std::vector<ContextFile>& files) {
  std::uint64_t total = 0;
  for (auto& file : files) total += file.bytes;
  return total;
}

std::string largest(const std::vector<ContextFile>& files, std::size_t count) {
  std::vector<const ContextFile*> order;
  for (auto& file : files) order.push_back(&file);
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [](auto* a, auto* b) { return a->bytes > b->bytes; });
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + order[i]->path + " (" + core::format_bytes(order[i]->bytes) + ")";
  return text;
}

}  // namespace pipeline::docker
