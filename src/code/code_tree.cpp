#include "code/code_tree.hpp"

#include <algorithm>
#include <climits>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/own_files.hpp"
#include "vcs/repository.hpp"

namespace pipeline::code {
namespace {

namespace fs = std::filesystem;

/// Returns true for git's and pipe's own files, and for the caches that Python writes beside its
/// sources: they are never code.
bool is_never_code(const fs::path& path, bool is_folder) {
  const auto name = path.filename();
  return name == ".git" || name == "__pycache__" ||
         (is_folder ? core::is_state_folder(path) : core::is_own_file(path));
}

/// The maximum number of paths that lead to one folder. Without a limit, twenty folders with two
/// links each to the next folder give a million paths.
constexpr unsigned max_paths = 1000;

bool is_inside(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

/// Throws InputError for a path that is too long to be opened.
void check_length(const fs::path& path) {
  const auto length = path.native().size();
  if (length < PATH_MAX) return;
  throw core::InputError("the path of '" + path.filename().string() +
                             "' in the pipeline's folder has " + std::to_string(length) +
                             " bytes, and at most " + std::to_string(PATH_MAX - 1) +
                             " can be read: " + path.string().substr(0, 200) + "...",
                         "leave the folder out with .dockerignore, or give it a shorter path");
}

/// Returns what to do about a link that leaves the pipeline's folder.
std::string advice_for_link(const fs::path& link) {
  std::error_code error;
  if (fs::exists(link.parent_path().parent_path() / "pyvenv.cfg", error))
    return "it belongs to a virtual environment of this machine: write `" +
           link.filename().string() +
           "` alone and either list the packages under `settings: {docker: {requirements: "
           "[...]}}`, or activate the environment before `pipe run --orchestrator local`";
  return "copy it into the folder, or mount it with `settings: {docker: {volumes: [...]}}` and use "
         "the path that it has there";
}

}  // namespace

std::optional<std::string> normal_relative_path(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos)
    return std::nullopt;
  std::string normal = fs::path(path).lexically_normal().generic_string();
  if (normal == ".." || normal.starts_with("../")) return std::nullopt;
  if (normal.ends_with('/')) normal.pop_back();
  return normal == "." ? std::string() : normal;
}

CodeTree::CodeTree(fs::path root) : root_(std::move(root)) {
  std::error_code error;
  canonical_root_ = fs::canonical(root_, error);
  if (error) canonical_root_ = root_;
}

GitRules& CodeTree::git_rules() {
  if (!git_rules_) git_rules_.emplace(canonical_root_);
  return *git_rules_;
}

CodeTree::Kind CodeTree::kind(const std::string& relative) {
  const auto [known, is_new] = kinds_.try_emplace(relative, Kind::none);
  if (!is_new) return known->second;
  const fs::path path = path_of(relative);
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type != fs::file_type::regular && type != fs::file_type::directory) return Kind::none;
  // A `.env` file may contain secrets.
  if (type == fs::file_type::regular && path.filename() == env_file_name) return Kind::none;
  const fs::path target = fs::canonical(path, error);
  if (error) return Kind::none;
  if (!is_inside(target, canonical_root_)) {
    kinds_.erase(known);
    throw core::InputError("'" + relative + "' is a link that leaves the pipeline's folder, to '" +
                               target.string() + "'",
                           advice_for_link(path));
  }
  return known->second = type == fs::file_type::regular ? Kind::file : Kind::folder;
}

void CodeTree::read_ignore_files(const std::string& folder, std::set<std::string>& looked_at) {
  // The files are read from the root down, because later rules take precedence.
  if (!folder.empty()) {
    const auto slash = folder.rfind('/');
    read_ignore_files(slash == std::string::npos ? std::string() : folder.substr(0, slash),
                      looked_at);
  }
  looked_at.insert(join_path(folder, ".gitignore"));
  if (folder.empty()) {
    looked_at.insert(".dockerignore");
    for (const auto& source : git_rules().sources()) looked_at.insert(source.string());
  }
  if (!ignore_files_read_.insert(folder).second) return;
  if (folder.empty())
    docker_ignore_ = core::DockerIgnore(core::read_if_file(root_ / ".dockerignore"));
  git_rules().add(folder, core::read_if_file(path_of(join_path(folder, ".gitignore"))));
}

bool CodeTree::ignores(const std::string& relative, bool is_folder) {
  return docker_ignore_.ignores(relative) || git_rules().match(relative, is_folder);
}

std::vector<std::string> CodeTree::files_below(const std::string& folder,
                                               std::set<std::string>& looked_at) {
  std::vector<std::string> files;
  const auto slash = folder.rfind('/');
  read_ignore_files(slash == std::string::npos ? std::string() : folder.substr(0, slash),
                    looked_at);
  std::vector<fs::path> above;
  paths_to_.clear();
  constexpr bool is_folder = true;
  walk(folder, folder.empty() || !ignores(folder, is_folder), above, files, looked_at);
  std::sort(files.begin(), files.end());
  return files;
}

void CodeTree::check_submodule(const std::string& folder) const {
  std::error_code error;
  if (folder.empty() || !fs::is_empty(path_of(folder), error) || error ||
      !vcs::is_submodule(path_of(folder)))
    return;
  throw core::InputError("the submodule '" + folder + "' is not checked out: its folder is empty",
                         "git submodule update --init --recursive");
}

void CodeTree::check_left_out(const std::string& path) {
  if (!git_rules().is_sparse()) return;
  if (auto advice = vcs::sparse_advice(root_, path); !advice.empty())
    throw core::InputError("'" + path + "' is left out of this sparse checkout", std::move(advice));
}

void CodeTree::walk(const std::string& folder, bool ignoring, std::vector<fs::path>& above,
                    std::vector<std::string>& files, std::set<std::string>& looked_at) {
  std::error_code error;
  const fs::path real = fs::canonical(path_of(folder), error);
  if (error || std::find(above.begin(), above.end(), real) != above.end())
    return;  // A link to a folder above itself.
  if (++paths_to_[real.string()] > max_paths)
    throw core::InputError("links lead to the folder '" + real.string() + "' by more than " +
                               std::to_string(max_paths) + " paths below the pipeline's folder",
                           "leave the links out with .dockerignore, or name the folders under "
                           "`code` that the step needs");
  above.push_back(real);
  looked_at.insert(folder);
  if (ignoring) read_ignore_files(folder, looked_at);
  std::error_code failed;
  fs::directory_iterator entries(path_of(folder), failed);
  if (!failed && entries == fs::directory_iterator()) check_submodule(folder);
  for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
    const auto& entry = *entries;
    const std::string name = entry.path().filename().string();
    const std::string relative = join_path(folder, name);
    const bool is_folder = entry.is_directory(error);
    if (is_never_code(entry.path(), is_folder)) continue;
    if (ignoring) {
      if (git_rules().exclude(relative, is_folder && !entry.is_symlink(error), looked_at)) continue;
      if (docker_ignore_.ignores(relative) && !(is_folder && docker_ignore_.has_exceptions()))
        continue;
    }
    switch (kind(relative)) {
      case Kind::file: files.push_back(relative); break;
      case Kind::folder: walk(relative, ignoring, above, files, looked_at); break;
      case Kind::none: check_length(entry.path()); break;
    }
  }
  if (failed)
    throw core::EnvironmentError(
        "cannot read the folder " + path_of(folder).string() + ": " + failed.message(),
        {"leave it out with .dockerignore, or give yourself the right to read it"});
  above.pop_back();
}

std::vector<std::string> CodeTree::expand(const std::string& pattern,
                                          std::set<std::string>& looked_at) {
  const auto path = normal_relative_path(pattern);
  if (!path)
    throw core::InputError("the code '" + pattern + "' leaves the pipeline's folder",
                           "code is what lies beside the pipeline file or below");
  switch (kind(*path)) {
    case Kind::file: return {*path};
    case Kind::folder: return files_below(*path, looked_at);
    case Kind::none: break;
  }
  if (fs::path(*path).filename() == env_file_name)
    throw core::InputError("the code '" + pattern + "' may have secrets, and is never code",
                           "name its variables under `environment` or `secrets` of the step: they "
                           "get the values");
  const auto special = path->find_first_of("*?[\\");
  if (special == std::string::npos)
    throw core::InputError("the code '" + pattern + "' does not exist",
                           "looked for " + path_of(*path).string());
  const auto slash = path->rfind('/', special);
  const std::string folder = slash == std::string::npos ? std::string() : path->substr(0, slash);
  std::vector<std::string> matches;
  if (kind(folder) == Kind::folder) {
    for (auto& file : files_below(folder, looked_at)) {
      // A folder that matches includes everything in it.
      for (std::size_t end = file.find('/', folder.size() + 1);; end = file.find('/', end + 1)) {
        if (core::matches_glob(*path, std::string_view(file).substr(0, end))) {
          matches.push_back(file);
          break;
        }
        if (end == std::string::npos) break;
      }
    }
  }
  if (matches.empty())
    throw core::InputError("the code '" + pattern + "' matches no file",
                           "looked in " + path_of(folder).string() +
                               ", less what .dockerignore and .gitignore leave out");
  return matches;
}

}  // namespace pipeline::code
