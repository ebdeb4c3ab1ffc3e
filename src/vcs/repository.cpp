#include "vcs/repository.hpp"

#include <git2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "core/address.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/lazy_library.hpp"
#include "core/reading_stop.hpp"
#include "vcs/open_interrupter.hpp"

namespace pipeline::vcs {
namespace {

#define GIT_FUNCTION(name)                                                              \
  constinit const core::LazyFunction<decltype(::git_##name)> name(PIPELINE_GIT2_SONAME, \
                                                                  "git_" #name)
namespace git {
GIT_FUNCTION(libgit2_init);
GIT_FUNCTION(repository_open_ext);
GIT_FUNCTION(repository_free);
GIT_FUNCTION(repository_workdir);
GIT_FUNCTION(reference_name_to_id);
GIT_FUNCTION(oid_tostr);
GIT_FUNCTION(diff_tree_to_index);
GIT_FUNCTION(diff_index_to_workdir);
GIT_FUNCTION(diff_num_deltas);
GIT_FUNCTION(diff_free);
GIT_FUNCTION(revparse_single);
GIT_FUNCTION(object_free);
GIT_FUNCTION(remote_lookup);
GIT_FUNCTION(remote_url);
GIT_FUNCTION(remote_free);
GIT_FUNCTION(repository_index);
GIT_FUNCTION(index_entrycount);
GIT_FUNCTION(index_get_byindex);
GIT_FUNCTION(index_get_bypath);
GIT_FUNCTION(index_free);
}  // namespace git
#undef GIT_FUNCTION

template <class T, const auto& free>
struct Freed {
  void operator()(T* object) const { free(object); }
};
using Repository = std::unique_ptr<git_repository, Freed<git_repository, git::repository_free>>;
using Diff = std::unique_ptr<git_diff, Freed<git_diff, git::diff_free>>;
using Object = std::unique_ptr<git_object, Freed<git_object, git::object_free>>;
using Index = std::unique_ptr<git_index, Freed<git_index, git::index_free>>;
using Remote = std::unique_ptr<git_remote, Freed<git_remote, git::remote_free>>;

/// Compares HEAD, the index and the files as git_status_list_new() does, which cannot be stopped.
/// Throws Stopped.
bool is_dirty(git_repository* repository, const std::string& below) {
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags =
      GIT_DIFF_INCLUDE_TYPECHANGE | GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_DISABLE_PATHSPEC_MATCH;
  options.progress_cb = [](const git_diff*, const char*, const char*, void*) {
    return core::is_reading_stopped() ? int{GIT_EUSER} : 0;
  };
  char* path = const_cast<char*>(
      below.c_str());  // libgit2's string arrays are not const, but are only read.
  if (!below.empty()) options.pathspec = {&path, 1};
  git_object* head = nullptr;  // Stays null before the first commit.
  git::revparse_single(&head, repository, "HEAD^{tree}");
  const Object owned(head);
  // A comparison that failed counts as a difference.
  const auto has_deltas = [](int failed, git_diff* diff) {
    const Diff owned_diff(diff);
    core::check_reading();
    return failed || git::diff_num_deltas(diff) > 0;
  };
  git_diff* diff = nullptr;
  int failed = git::diff_tree_to_index(&diff, repository, reinterpret_cast<git_tree*>(head),
                                       nullptr, &options);
  if (has_deltas(failed, diff)) return true;
  diff = nullptr;
  failed = git::diff_index_to_workdir(&diff, repository, nullptr, &options);
  return has_deltas(failed, diff);
}

std::string origin_of(git_repository* repository) {
  git_remote* remote = nullptr;
  if (git::remote_lookup(&remote, repository, "origin") != 0) return {};
  const Remote owned(remote);
  const char* url = git::remote_url(remote);
  return url ? core::without_credentials(url) : "";
}

/// Returns false if a file that libgit2 always reads is a named pipe, for example.
bool has_plain_files(const std::filesystem::path& top) {
  std::error_code ignored;
  return std::ranges::all_of(
      std::array{".git", ".gitignore", ".gitattributes", ".gitmodules", ".git/HEAD", ".git/config",
                 ".git/config.worktree", ".git/commondir", ".git/index", ".git/packed-refs",
                 ".git/shallow", ".git/info/exclude", ".git/info/attributes"},
      [&](const char* name) {
        const auto status = std::filesystem::status(top / name, ignored);
        return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status) ||
               std::filesystem::is_directory(status);
      });
}

/// The repository that a folder is in.
class OpenRepository {
 public:
  explicit OpenRepository(const std::filesystem::path& folder) {
    // Without a `.git`, libgit2 need not be loaded, which takes some ten milliseconds.
    const auto top = repository_top(folder);
    if (!top || !has_plain_files(*top)) return;
    interrupter_.emplace();
    static const int initialised = git::libgit2_init();
    git_repository* repository = nullptr;
    if (initialised >= 0 && git::repository_open_ext(&repository, folder.c_str(), 0, nullptr) == 0)
      repository_.reset(repository);
  }
  /// Returns null if there is none.
  git_repository* get() const { return repository_.get(); }
  explicit operator bool() const { return repository_ != nullptr; }

 private:
  std::optional<OpenInterrupter> interrupter_;
  Repository repository_;
};

/// Returns the folder's path below the repository's top, empty for the top itself.
std::string path_in(git_repository* repository, const std::filesystem::path& folder) {
  const char* top = git::repository_workdir(repository);
  if (!top) return {};
  std::error_code error;
  const auto relative = std::filesystem::relative(folder, top, error);
  return error || relative == "." ? std::string() : relative.generic_string();
}

}  // namespace

std::optional<std::filesystem::path> repository_top(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (auto above = std::filesystem::absolute(folder, ignored);; above = above.parent_path()) {
    if (std::filesystem::exists(above / ".git", ignored)) return above;
    if (above == above.parent_path()) return std::nullopt;
  }
}

std::optional<SourceState> source_state(const std::filesystem::path& folder) try {
  const OpenRepository repository(folder);
  if (!repository) return std::nullopt;
  SourceState state;
  git_oid head;
  if (git::reference_name_to_id(&head, repository.get(), "HEAD") == 0) {
    char text[GIT_OID_HEXSZ + 1];
    state.commit = git::oid_tostr(text, sizeof text, &head);
  }
  state.dirty = is_dirty(repository.get(), path_in(repository.get(), folder));
  state.remote_url = origin_of(repository.get());
  return state;
} catch (const core::Stopped&) {
  throw;
} catch (const core::EnvironmentError&) {  // libgit2 is not installed; the run is recorded without
                                           // a commit.
  return std::nullopt;
}

std::vector<std::string> tracked_files(const std::filesystem::path& folder) try {
  const OpenRepository repository(folder);
  if (!repository) return {};
  git_index* opened = nullptr;
  if (git::repository_index(&opened, repository.get()) != 0) return {};
  const Index index(opened);
  std::string prefix = path_in(repository.get(), folder);
  if (!prefix.empty()) prefix += '/';
  std::vector<std::string> files;
  for (std::size_t i = 0, count = git::index_entrycount(opened); i < count; ++i) {
    core::check_reading();
    const git_index_entry* entry = git::index_get_byindex(opened, i);
    const std::string_view path = entry->path;
    if (!path.starts_with(prefix)) continue;
    const auto& file = files.emplace_back(path.substr(prefix.size()));
    if (entry->mode != GIT_FILEMODE_COMMIT || !std::filesystem::exists(folder / file / ".git"))
      continue;
    const std::string submodule = file + "/";
    for (const auto& below : tracked_files(folder / submodule)) files.push_back(submodule + below);
  }
  std::ranges::sort(files);
  return files;
} catch (const core::Stopped&) {
  throw;
} catch (const core::EnvironmentError&) {
  return {};
}

std::string sparse_advice(const std::filesystem::path& folder, const std::string& path) try {
  const OpenRepository repository(folder);
  git_index* opened = nullptr;
  if (!repository || git::repository_index(&opened, repository.get()) != 0) return {};
  const Index index(opened);
  const auto prefix = path_in(repository.get(), folder);
  const auto wanted = (prefix.empty() ? "" : prefix + "/") + path;
  for (std::size_t i = 0, count = git::index_entrycount(opened); i < count; ++i) {
    const git_index_entry* entry = git::index_get_byindex(opened, i);
    const std::string_view known = entry->path;
    if ((entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) &&
        (known == wanted || known.starts_with(wanted + "/")))
      return "git sparse-checkout add " +
             core::shell_quote(known == wanted ? wanted.substr(0, wanted.rfind('/')) : wanted);
  }
  return {};
} catch (const core::EnvironmentError&) {
  return {};
}

bool is_submodule(const std::filesystem::path& folder) try {
  const OpenRepository repository(folder.parent_path());
  git_index* opened = nullptr;
  if (!repository || git::repository_index(&opened, repository.get()) != 0) return false;
  const Index index(opened);
  const auto path = path_in(repository.get(), folder);
  const git_index_entry* entry = git::index_get_bypath(opened, path.c_str(), 0);
  return entry && entry->mode == GIT_FILEMODE_COMMIT;
} catch (const core::EnvironmentError&) {
  return false;
}

}  // namespace pipeline::vcs
