#include "lockfile/lock_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "lockfile/conflict.hpp"
#include "lockfile/text.hpp"

namespace pipeline::lockfile {
namespace {

namespace fs = std::filesystem;

/// The parts of `manylinux_2_36_x86_64`: a family, a version of the C library, and a machine.
struct Platform {
  std::string family, machine;
  unsigned major = 0, minor = 0;
};

Platform platform_of(std::string_view text) {
  Platform platform;
  const auto parts = core::split(text, '_');
  platform.family = parts[0];
  std::size_t next = 1;
  const auto number = [&](unsigned& value) {
    if (next < parts.size() && core::all(parts[next], core::is_digit)) {
      std::from_chars(parts[next].data(), parts[next].data() + parts[next].size(), value);
      ++next;
    }
  };
  number(platform.major);
  number(platform.minor);
  for (; next < parts.size(); ++next) (platform.machine += '_') += parts[next];
  return platform;
}

/// Returns true if files for one platform run on the machine's platform: its C library has the same
/// version or a later one.
bool runs_on(std::string_view files, std::string_view machine) {
  const auto needed = platform_of(files), actual = platform_of(machine);
  return needed.family == actual.family && needed.machine == actual.machine &&
         std::pair(needed.major, needed.minor) <= std::pair(actual.major, actual.minor);
}

/// Returns true if a new lock for the request replaces the environment: the same packages on the
/// same kind of machine.
bool is_for(const LockedEnvironment& environment, const LockRequest& request) {
  if (environment.parent != request.parent || environment.installer != request.installer ||
      environment.requirements != request.requirements)
    return false;
  if (environment.parent != local_parent) return true;
  return environment.tag == request.tag &&
         platform_of(environment.platform).family == platform_of(request.platform).family &&
         platform_of(environment.platform).machine == platform_of(request.platform).machine;
}

/// Returns true if the environment can be installed as it is for the request.
bool fits(const LockedEnvironment& environment, const LockRequest& request) {
  if (!is_for(environment, request)) return false;
  return environment.parent == local_parent ? runs_on(environment.platform, request.platform)
                                            : environment.parent_digest == request.parent_digest;
}

/// Returns the number of lines that both lists have.
std::size_t shared(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  return static_cast<std::size_t>(std::ranges::count_if(
      one, [&](const auto& line) { return std::ranges::find(other, line) != other.end(); }));
}

/// Adds the requirements and packages that only `other` has.
void add_missing(LockedEnvironment& environment, const LockedEnvironment& other) {
  for (const auto& line : other.requirements)
    if (std::ranges::find(environment.requirements, line) == environment.requirements.end())
      environment.requirements.push_back(line);
  for (const auto& package : other.packages)
    if (std::ranges::find(environment.packages, package.name, &LockedPackage::name) ==
        environment.packages.end())
      environment.packages.push_back(package);
}

std::vector<std::string> difference(const std::vector<std::string>& before,
                                    const std::vector<std::string>& after) {
  std::vector<std::string> lines;
  for (const auto& line : after)
    if (std::ranges::find(before, line) == before.end()) lines.push_back("+ " + line);
  for (const auto& line : before)
    if (std::ranges::find(after, line) == after.end()) lines.push_back("- " + line);
  return lines;
}

/// Returns the file's text; empty if the file does not exist.
std::string text_of(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) ? core::read_file(path) : std::string();
}

std::string shown(const LockedPackage& package) {
  return package.name + (package.version.empty() ? "" : " " + package.version) +
         (package.origin == PackageOrigin::index ? "" : " (" + package.url + ")");
}

/// Returns a mark for source distributions; repositories and folders need none.
std::string source_mark(const LockedPackage& package) {
  return is_built_from_source(package) && !package.file.empty() ? " (built from source)" : "";
}

/// Locks the file against other processes for as long as the descriptor exists.
core::Descriptor locked(const fs::path& file) {
  const auto folder = file.parent_path();
  core::Descriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) throw core::system_error("cannot open " + folder.string(), errno);
  core::lock_exclusively(lock.get(), folder);
  return lock;
}

std::string commit_advice(const std::string& file) {
  return "run `pipe lock`, look at `git diff`, and commit " + file;
}

}  // namespace

LockFile::LockFile(fs::path path, LockOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}

void LockFile::read() {
  if (std::exchange(is_read_, true)) return;
  try {
    text_ = text_of(path_);
    if (text_.empty()) return;
    if (!accepts_conflicts_ || !read_sides()) {
      auto content = parse(text_, path_.string());
      environments_ = std::move(content.environments);
      for (auto& data : content.data) data_[data.address] = std::move(data);
    }
    for (const auto* list : {&environments_, &ours_, &theirs_})
      for (const auto& environment : *list) add_names(environment);
  } catch (...) {
    is_read_ = false;
    throw;
  }
}

void LockFile::add_names(const LockedEnvironment& environment) {
  for (const auto& package : environment.packages) names_.insert(package.name);
}

/// Reads both versions of a file in conflict. Returns false without a conflict, or if the conflict
/// is not between items of lists. Environments that differ are only preferences, because git may
/// have merged parts of one version into the other.
bool LockFile::read_sides() {
  const auto sides = conflict_sides(text_);
  if (!sides) return false;
  LockContent ours, theirs;
  try {
    ours = parse(sides->ours, path_.string());
    theirs = parse(sides->theirs, path_.string());
  } catch (const core::InputError&) {  // parse() reports the conflict.
    return false;
  }
  had_conflict_ = true;
  std::ranges::copy_if(ours.environments, std::back_inserter(environments_), [&](const auto& each) {
    return std::ranges::find(theirs.environments, each) != theirs.environments.end();
  });
  ours_ = std::move(ours.environments);
  theirs_ = std::move(theirs.environments);
  for (auto* side : {&ours.data, &theirs.data})
    for (auto& data : *side) data_.try_emplace(data.address, std::move(data));
  return true;
}

const LockedEnvironment* LockFile::exact(const LockRequest& request) const {
  const auto found = std::ranges::find_if(
      environments_, [&](const auto& environment) { return fits(environment, request); });
  return found == environments_.end() ? nullptr : &*found;
}

const LockedEnvironment* LockFile::nearest(const LockRequest& request,
                                           const std::vector<LockedEnvironment>& environments) {
  const LockedEnvironment* best = nullptr;
  std::size_t max_score = 0, min_others = 0;
  for (const auto& environment : environments) {
    const bool has_same_parent = environment.parent == request.parent &&
                                 (request.tag.empty() || environment.tag == request.tag);
    const auto common = shared(environment.requirements, request.requirements);
    const auto score = 2 * common + (has_same_parent ? 1 : 0);
    const auto others =
        environment.requirements.size() - std::min(common, environment.requirements.size());
    if (score < max_score || score == 0 || (score == max_score && others >= min_others)) continue;
    max_score = score;
    min_others = others;
    best = &environment;
  }
  return best;
}

std::optional<LockedEnvironment> LockFile::find(const LockRequest& request) {
  read();
  const auto is_known = [&](const auto& list) {
    return std::ranges::find(list, request) != list.end();
  };
  if (!is_known(asked_)) asked_.push_back(request);
  const bool upgrades = options_.upgrade_all || !options_.upgrade.empty();
  if (const auto* found = exact(request); found && (!upgrades || is_known(resolved_)))
    return *found;
  if (options_.frozen) refuse(request);
  return std::nullopt;
}

LockedEnvironment LockFile::preferred(const LockRequest& request) {
  read();
  const auto* found = nearest(request, had_conflict_ ? ours_ : environments_);
  if (!found || options_.upgrade_all) return {};
  auto environment = *found;
  if (const auto* other = nearest(request, theirs_)) add_missing(environment, *other);
  std::erase_if(environment.packages,
                [&](const auto& package) { return options_.upgrade.contains(package.name); });
  return environment;
}

void LockFile::refuse(const LockRequest& request) const {
  const auto file = path_.filename().string();
  std::vector<std::string> notes;
  const auto environment =
      "the environment from " +
      (request.parent == local_parent ? "this machine's Python" : request.parent);
  std::string message = environment + " is not in " + file + ", and --locked adds nothing to it";
  if (const auto* found = nearest(request, environments_)) {
    notes = difference(found->requirements, request.requirements);
    if (found->parent != request.parent)
      notes.push_back("the parent is " + request.parent + ", and was " + found->parent);
    else if (found->parent_digest != request.parent_digest)
      notes.push_back("the engine's " + request.parent +
                      " is another image than the one that was locked");
    if (found->installer != request.installer)
      notes.push_back("the installer is " + request.installer + ", and was " + found->installer);
    if (notes.empty() && found->tag != request.tag)
      notes.push_back("this Python is " + request.tag + ", and the locked one " + found->tag);
    if (notes.empty())
      notes.push_back("this machine is " + request.platform + ", and the locked one " +
                      found->platform);
    message = environment + " differs from the one in " + file;
  } else if (std::error_code error; !fs::exists(path_, error)) {
    message = "there is no " + file;
  }
  core::Diagnostic diagnostic;
  diagnostic.code = "lock-differs";
  diagnostic.message = std::move(message);
  diagnostic.notes = std::move(notes);
  diagnostic.suggestion = commit_advice(file);
  throw core::InputError({std::move(diagnostic)}, std::string(), std::string());
}

void LockFile::replace(const LockRequest& request, LockedEnvironment environment) {
  // Images that differ in other ways than their Python packages, such as apt packages or the
  // platform, have separate environments.
  const auto is_of_another_image = [&](const LockedEnvironment& each) {
    return each.parent != local_parent && each.parent_digest != request.parent_digest &&
           std::ranges::any_of(asked_, [&](const auto& other) { return fits(each, other); });
  };
  std::erase_if(environments_, [&](const auto& each) {
    return is_for(each, request) && !is_of_another_image(each);
  });
  environments_.push_back(std::move(environment));
}

std::string LockFile::put(const LockRequest& request, LockedEnvironment environment) {
  read();
  LockChange change;
  // An environment that other steps ask for is not replaced.
  const auto* before = nearest(request, had_conflict_ ? ours_ : environments_);
  const auto is_for_before = [&](const LockRequest& other) { return is_for(*before, other); };
  if (before && (is_for_before(request) || std::ranges::none_of(asked_, is_for_before)))
    change.before = *before;
  environment.parent = request.parent;
  environment.parent_digest = request.parent_digest;
  if (!request.platform.empty()) environment.platform = request.platform;
  if (!request.tag.empty()) environment.tag = request.tag;
  environment.installer = request.installer;
  environment.requirements = request.requirements;
  std::ranges::sort(environment.packages, {}, &LockedPackage::name);
  add_names(environment);
  change.after = environment;
  changes_.push_back(std::move(change));
  resolved_.push_back(request);
  replace(request, environment);
  if (options_.dry_run || path_.empty()) return {};
  return text_ == text() ? std::string() : write();
}

std::string LockFile::text() const {
  LockContent content{environments_, {}};
  for (const auto& [address, data] : data_) content.data.push_back(data);
  return to_text(std::move(content));
}

void LockFile::use_data(std::map<std::string, std::set<std::string>> data) {
  std::set<std::string> known;
  for (const auto& [address, names] : data) {
    auto all = names;
    all.insert(address);
    for (const auto& name : all)
      if (const auto text = normalised_name(name); options_.upgrade.contains(text)) {
        upgraded_data_.insert(address);
        known.insert(text);
      }
  }
  for (const auto& name : known) options_.upgrade.erase(name);
  used_data_ = std::move(data);
}

const LockedData* LockFile::find_data(const std::string& address) {
  read();
  const auto found = data_.find(address);
  return found == data_.end() ? nullptr : &found->second;
}

bool LockFile::upgrades_data(const std::string& address) const {
  return options_.upgrade_all || upgraded_data_.contains(address);
}

std::string LockFile::put_data(std::vector<LockedData> data) {
  read();
  for (auto& each : data) {
    const auto before = data_.find(each.address);
    if (before != data_.end() && before->second == each) continue;
    data_changes_.push_back({before == data_.end() ? LockedData() : before->second, each});
    fetched_.insert(each.address);
    data_[each.address] = std::move(each);
  }
  if (options_.dry_run || path_.empty()) return {};
  return text_ == text() ? std::string() : write();
}

/// Merges this object's results into the current file, which another `pipe` may have written.
void LockFile::merge() {
  std::vector<std::pair<LockRequest, LockedEnvironment>> own;
  for (const auto& request : resolved_)
    if (const auto* environment = exact(request)) own.emplace_back(request, *environment);
  auto own_data = std::exchange(data_, {});
  is_read_ = false;
  environments_.clear();
  read();
  for (auto& [request, environment] : own) replace(request, std::move(environment));
  for (const auto& address : fetched_) data_[address] = std::move(own_data[address]);
}

std::string LockFile::write() {
  const auto lock = locked(path_);
  merge();
  try {
    text_ = text();
    core::write_file_atomically(path_, text_, core::Durability::power);
    is_written_ = true;
  } catch (const core::EnvironmentError& failed) {
    return std::string(failed.what()) +
           ": the chosen versions and data apply to this run only; the next run may choose others";
  }
  return {};
}

void LockFile::remove_unused() {
  if (path_.empty() || (asked_.empty() && !used_data_)) return;
  read();
  const auto is_used = [&](const LockedEnvironment& environment) {
    // Steps on an orchestrator that locks nothing make no requests: the file belongs to other runs.
    if (asked_.empty() || has_unknown_) return true;
    bool has_images = false, is_asked = false, has_parent = false;
    for (const auto& request : asked_) {
      has_images |= request.parent != local_parent;
      is_asked |= request.requirements == environment.requirements;
      has_parent |= request.parent == environment.parent;
    }
    return is_asked && (environment.parent == local_parent || !has_images || has_parent);
  };
  std::vector<LockedEnvironment> unused;
  std::ranges::copy_if(environments_, std::back_inserter(unused), std::not_fn(is_used));
  unused_.clear();
  for (const auto& each : unused)
    unused_.push_back("- " + shown_environment(each) + ": " +
                      core::joined(each.requirements, ", "));
  std::set<std::string> unused_data;
  for (const auto& [address, data] : data_)
    if (used_data_ && !used_data_->contains(address)) unused_data.insert(address);
  for (const auto& address : unused_data) unused_.push_back("- " + address);
  if (options_.dry_run || options_.frozen || (unused_.empty() && !had_conflict_)) return;
  // Entries that another process has written since stay: its pipeline may use them.
  const auto lock = locked(path_);
  merge();
  std::erase_if(data_, [&](const auto& each) { return unused_data.contains(each.first); });
  std::erase_if(environments_,
                [&](const auto& each) { return std::ranges::find(unused, each) != unused.end(); });
  try {
    text_ = environments_.empty() && data_.empty() ? std::string() : text();
    if (text_.empty())
      fs::remove(path_);
    else
      core::write_file_atomically(path_, text_, core::Durability::power);
    is_written_ = true;
  } catch (const std::exception&) {  // The entries stay; put() reports a folder that is read-only.
  }
}

void LockFile::refuse_unused() const {
  if (!options_.frozen || unused_.empty()) return;
  const auto file = path_.filename().string();
  core::Diagnostic diagnostic;
  diagnostic.code = "lock-differs";
  diagnostic.message = file + " has entries that no step of the pipeline asks for";
  diagnostic.notes = unused_;
  diagnostic.suggestion = commit_advice(file);
  throw core::InputError({std::move(diagnostic)}, std::string(), std::string());
}

std::optional<core::Diagnostic> LockFile::unknown_upgrade() const {
  std::vector<std::string> known(names_.begin(), names_.end());
  if (used_data_)
    for (const auto& [address, names] : *used_data_)
      known.insert(known.end(), names.begin(), names.end());
  for (const auto& name : options_.upgrade) {
    if (names_.contains(name)) continue;
    core::Diagnostic unknown;
    unknown.code = "unknown-upgrade";
    unknown.message =
        "cannot upgrade '" + name + "': no package, input or address of the pipeline has this name";
    unknown.suggestion = core::did_you_mean(name, known);
    return unknown;
  }
  return std::nullopt;
}

bool LockFile::is_current() {
  read();
  return text_ == text_of(path_);
}

fs::path lock_beside(const fs::path& pipeline_file) {
  auto path = pipeline_file;
  return path.replace_extension(".lock");
}

std::string shown_environment(const LockedEnvironment& environment) {
  return environment.parent == local_parent ? "Python " + environment.python + " of this machine"
                                            : environment.parent;
}

std::vector<std::string> describe(const LockChange& change) {
  std::map<std::string, std::pair<const LockedPackage*, const LockedPackage*>> packages;
  for (const auto& package : change.before.packages) packages[package.name].first = &package;
  for (const auto& package : change.after.packages) packages[package.name].second = &package;
  std::vector<std::string> lines;
  for (const auto& [name, pair] : packages) {
    const auto& [before, after] = pair;
    if (!before)
      lines.push_back("+ " + shown(*after) + source_mark(*after));
    else if (!after)
      lines.push_back("- " + shown(*before));
    else if (shown(*before) != shown(*after))
      lines.push_back("~ " + shown(*before) + " -> " +
                      (after->origin == PackageOrigin::index ? after->version : shown(*after)) +
                      source_mark(*after));
    else if (before->sha256 != after->sha256)
      lines.push_back("~ " + shown(*before) + ": another file, " + after->file);
  }
  const auto snapshot = [](const LockedEnvironment& environment) {
    return std::vector<std::string>(environment.apt_snapshot.empty() ? 0 : 1,
                                    "snapshot " + environment.apt_snapshot);
  };
  auto apt = difference(snapshot(change.before), snapshot(change.after));
  std::ranges::move(difference(change.before.apt_packages, change.after.apt_packages),
                    std::back_inserter(apt));
  for (const auto& line : apt) lines.push_back(line.substr(0, 2) + "apt " + line.substr(2));
  return lines;
}

std::string describe(const DataChange& change) {
  const auto size_of = [](const LockedData& data) {
    return core::format_bytes(data.size) +
           (data.files ? " in " + std::to_string(data.files) + " files" : std::string());
  };
  const auto& after = change.after;
  if (change.before.address.empty()) return "+ " + after.address + ", " + size_of(after);
  const auto before = size_of(change.before), now = size_of(after);
  if (before != now) return "~ " + after.address + ", " + before + " -> " + now;
  return "~ " + after.address + ": another content of " + now;
}

}  // namespace pipeline::lockfile
