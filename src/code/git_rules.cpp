#include "code/git_rules.hpp"

#include <algorithm>

#include "core/file.hpp"
#include "core/text.hpp"
#include "vcs/repository.hpp"

namespace pipeline::code {
namespace {

namespace fs = std::filesystem;

/// Returns the folder that is named in a file of one line, such as git's `.git` files and
/// `commondir`; `otherwise` if the line does not begin with `before`.
fs::path named_folder(const fs::path& file, std::string_view before, const fs::path& otherwise) {
  std::string text = core::read_if_file(file);
  if (!text.starts_with(before)) return otherwise;
  text.erase(0, before.size());
  text.erase(std::min(text.find_first_of("\r\n"), text.size()));
  return text.empty() ? otherwise : (file.parent_path() / text).lexically_normal();
}

/// Returns the folders, with `/` at their ends, that a .gitmodules file names.
std::vector<std::string> submodules_of(const std::string& text) {
  std::vector<std::string> folders;
  for (const auto line : core::lines_of(text)) {
    const auto equals = line.find('=');
    if (equals == line.npos || core::trimmed(line.substr(0, equals)) != "path") continue;
    folders.emplace_back(core::trimmed(line.substr(equals + 1))) += '/';
  }
  return folders;
}

}  // namespace

GitRules::GitRules(const fs::path& root) : root_(root) {
  const auto top = vcs::repository_top(root);
  if (!top) {  // For example an unpacked archive of a release: .gitmodules names the submodules.
    sources_.push_back(root / ".gitmodules");
    for (auto& folder : submodules_of(core::read_if_file(sources_.back())))
      submodules_.try_emplace(std::move(folder));
    return;
  }
  const fs::path git = named_folder(*top / ".git", "gitdir: ", *top / ".git");
  index_ = git / "index";
  std::error_code error;
  is_sparse_ = fs::exists(git / "info/sparse-checkout", error);
  const fs::path exclude = named_folder(git / "commondir", "", git) / "info/exclude";
  sources_.push_back(exclude);
  ignore_.add("", core::read_if_file(exclude));
  fs::path folder = *top;
  const fs::path below = root.lexically_relative(*top);
  for (const auto& name : below) {
    if (name == ".") break;
    sources_.push_back(folder / ".gitignore");
    const fs::path in_top = folder.lexically_relative(*top);
    ignore_.add(in_top == "." ? "" : in_top.generic_string(), core::read_if_file(sources_.back()));
    folder /= name;
  }
  if (below == ".") return;
  prefix_ = below.generic_string();
  // If git leaves out the pipeline's own folder, its rules are ignored: the user wants these files.
  constexpr bool is_folder = true;
  if (ignore_.ignores(prefix_, is_folder)) {
    ignore_ = {};
    prefix_.clear();
  } else {
    prefix_ += '/';
  }
}

void GitRules::add(const std::string& folder, std::string_view rules) {
  for (auto& [submodule, ignore] : submodules_) {
    if (!(folder + '/').starts_with(submodule)) continue;
    return ignore.add(std::string_view(folder).substr(std::min(submodule.size(), folder.size())),
                      rules);
  }
  std::string in_repository = prefix_ + folder;
  if (in_repository.ends_with('/')) in_repository.pop_back();
  ignore_.add(in_repository, rules);
}

bool GitRules::match(const std::string& relative, bool is_folder) const {
  for (const auto& [submodule, ignore] : submodules_)
    if (relative.starts_with(submodule))
      return ignore.ignores(relative.substr(submodule.size()), is_folder);
  return ignore_.ignores(prefix_ + relative, is_folder);
}

bool GitRules::exclude(const std::string& relative, bool is_folder,
                       std::set<std::string>& looked_at) {
  if (!match(relative, is_folder)) return false;
  for (const auto& [submodule, ignore] : submodules_)
    if (submodule.starts_with(relative + '/')) return false;
  if (index_.empty()) return true;
  looked_at.insert(index_.string());
  return !tracks(relative);
}

bool GitRules::tracks(const std::string& relative) {
  if (!tracked_) tracked_ = vcs::tracked_files(root_);
  const auto found = std::ranges::lower_bound(*tracked_, relative);
  if (found != tracked_->end() && *found == relative) return true;
  const std::string folder = relative + '/';
  const auto below = std::ranges::lower_bound(*tracked_, folder);
  return below != tracked_->end() && below->starts_with(folder);
}

}  // namespace pipeline::code
