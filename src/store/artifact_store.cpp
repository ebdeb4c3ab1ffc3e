#include "store/artifact_store.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/random_name.hpp"
#include "file_tree/tree.hpp"
#include "store/artifact_marks.hpp"
#include "store/artifact_sync.hpp"
#include "store/staging.hpp"
#include "store/tree_entries.hpp"

namespace pipeline::store {

namespace fs = std::filesystem;
using file_tree::copy_file, file_tree::copy_tree, file_tree::hash_tree, file_tree::scan_tree,
    file_tree::tree_digest, file_tree::TreeNode;

namespace {

/// Returns the artifact's path, `FOLDER/ab/cdef...`, as a text, because a run with nothing to do
/// looks at thousands of locations, and std::filesystem parses each path.
std::string location(const fs::path& folder, const core::Digest& digest) {
  auto text = folder.native() + '/' + digest.hex();
  text.insert(text.size() - 62, 1, '/');  // After the first 2 of the digest's 64 digits.
  return text;
}

/// Returns true if a file may become an artifact by rename: it is owned by this user, so that it
/// can be made read-only, and has one name, so that it cannot be written under another.
bool is_ours_alone(const struct stat& status) {
  return status.st_uid == ::geteuid() && (S_ISDIR(status.st_mode) || status.st_nlink == 1);
}

bool is_ours_alone(const fs::path& root, const std::vector<TreeNode>& nodes) {
  const auto ours = [](const fs::path& path) {
    const auto status = status_of(path);
    return status && is_ours_alone(*status);
  };
  return ours(root) && std::all_of(nodes.begin(), nodes.end(),
                                   [&](const TreeNode& node) { return ours(root / node.path); });
}

constexpr const char* other_file_system = "it is on another file system";

/// @param copied bytes that share no blocks with the original
/// @param why the artifact was not moved
std::string way_of_copy(std::uint64_t bytes, std::uint64_t copied, const char* why) {
  return std::string(2 * copied < bytes ? "blocks shared" : "copied") + ", because " + why;
}

/// Removes the source of a copy or a duplicate; without permission it stays, which loses nothing.
void discard(const fs::path& path) {
  try {
    core::remove_tree(path);
  } catch (const core::EnvironmentError&) {
  }
}

/// Makes a folder writable: only then can it be moved into another folder. A file stays as it is,
/// because hard links share its mode.
void allow_rename(const fs::path& path) {
  if (const auto status = status_of(path); status && S_ISDIR(status->st_mode))
    ::chmod(path.c_str(), 0755);
}

std::uint64_t total_bytes(const std::vector<TreeNode>& nodes) {
  std::uint64_t total = 0;
  for (const auto& node : nodes) total += node.bytes;
  return total;
}

}  // namespace

ArtifactStore::ArtifactStore(fs::path folder) : folder_(std::move(folder)) {}

fs::path ArtifactStore::path(const core::Digest& digest) const { return location(folder_, digest); }

bool ArtifactStore::has(const core::Digest& digest) const {
  return status_of(path(digest)).has_value();
}

StoredArtifact ArtifactStore::take(const fs::path& source, const BeforeRemoval& before_removal,
                                   const fs::path& other_name) {
  // A file or folder is announced before the rename. If that fails, it is copied, and announced
  // again only if it has changed.
  std::optional<core::Digest> announced;
  const BeforeRemoval announce = [&](const StoredArtifact& artifact) {
    if (before_removal && announced != artifact.digest) before_removal(artifact);
    announced = artifact.digest;
  };
  const auto status = status_of(source);
  if (!status)
    throw core::system_error("cannot take " + source.string() + " into the artifact store", ENOENT);
  if (S_ISREG(status->st_mode)) return take_file(source, *status, announce);
  if (S_ISDIR(status->st_mode)) return take_folder(source, other_name, announce);
  if (S_ISLNK(status->st_mode))
    throw core::ContentError("cannot keep " + source.string() + ": it is a symbolic link",
                             {"copy what it points to instead, e.g. with cp -rL"});
  throw core::ContentError(
      "cannot keep " + source.string() + ": it is a socket, a pipe or a device",
      {"write a file or a folder there"});
}

StoredArtifact ArtifactStore::take_file(const fs::path& source, const struct stat& status,
                                        const BeforeRemoval& before_removal) {
  StoredArtifact artifact{{}, false, static_cast<std::uint64_t>(status.st_size)};
  file_tree::check_holes(source, file_tree::holes_in(source, status));
  const bool executable = (status.st_mode & S_IXUSR) != 0;
  const auto seal = [&](const fs::path& file) {
    // Two steps may make the same bytes, one of them executable. Both are one artifact, which is
    // then executable.
    const auto existing = status_of(path(artifact.digest));
    set_mode(file,
             executable || (existing && S_ISREG(existing->st_mode) && (existing->st_mode & S_IXUSR))
                 ? 0555
                 : 0444);
    set_mark(file, mark(artifact.digest, "", artifact.bytes));
    core::sync_to_disk(file);
  };
  // Why the file is copied if it cannot be moved.
  const auto* why = status.st_uid == ::geteuid() ? "it has a second name" : "another user owns it";
  if (is_ours_alone(status)) {
    why = other_file_system;
    freeze(source, executable ? 0555 : 0444);
    const EarlyWriting writing(source);
    artifact.digest = core::sha256_file(source);
    artifact.hold = hold(artifact.digest);
    before_removal(artifact);
    check_frozen(source, artifact.bytes);
    artifact.way = "in the store before";
    if (looks_whole(artifact.digest)) {
      if (executable) set_mode(path(artifact.digest), 0555);
      discard(source);
      return artifact;
    }
    seal(source);
    artifact.way = "moved";
    if (publish(source, artifact.digest)) return artifact;
  }
  const Staging staging(folder_);
  std::uint64_t copied = 0;
  artifact.digest = copy_file(source, staging.content(), 0600, &artifact.bytes, &copied);
  artifact.hold = hold(artifact.digest);
  artifact.way = way_of_copy(artifact.bytes, copied, why);
  seal(staging.content());
  publish(staging.content(), artifact.digest);
  before_removal(artifact);
  discard(source);
  return artifact;
}

StoredArtifact ArtifactStore::take_folder(const fs::path& source, const fs::path& other_name,
                                          const BeforeRemoval& before_removal) {
  file_tree::FolderNames names{fs::absolute(source), fs::canonical(source)};
  if (!other_name.empty()) names.push_back(other_name);
  auto nodes = scan_tree(source, names);
  StoredArtifact artifact{{}, true, total_bytes(nodes)};
  // Why the folder is copied if it cannot be moved.
  const auto* why = "another user owns a file of it, or one has a second name";
  if (is_ours_alone(source, nodes)) {
    why = other_file_system;
    file_tree::rewrite_links(source, nodes);
    freeze(source, nodes);
    const EarlyWriting writing(source, nodes);
    hash_tree(source, nodes);
    artifact.digest = tree_digest(nodes);
    artifact.hold = hold(artifact.digest);
    before_removal(artifact);
    check_frozen(source, nodes);
    artifact.way = "in the store before";
    if (looks_whole(artifact.digest)) {
      discard(source);
      return artifact;
    }
    seal_contents(source, nodes, artifact.digest);
    sync_contents(source, nodes);
    artifact.way = "moved";
    if (publish(source, artifact.digest)) return artifact;
  }
  const Staging staging(folder_);
  core::make_folders(staging.content());
  std::uint64_t copied = 0;
  copy_tree(source, nodes, staging.content(), &copied);
  artifact.digest = tree_digest(nodes);
  artifact.hold = hold(artifact.digest);
  artifact.bytes = total_bytes(nodes);
  artifact.way = way_of_copy(artifact.bytes, copied, why);
  seal_contents(staging.content(), nodes, artifact.digest);
  sync_contents(staging.content(), nodes);
  publish(staging.content(), artifact.digest);
  before_removal(artifact);
  discard(source);
  return artifact;
}

StoredArtifact ArtifactStore::put_tree(std::span<const TreeEntry> entries, StatIndex& index,
                                       std::vector<TreeFile>* files) {
  auto nodes = nodes_of(entries, index);
  const auto list_files = [&] {
    if (!files) return;
    files->clear();
    for (const auto& node : nodes)
      if (node.kind == TreeNode::Kind::file)
        files->push_back({node.path, node.digest, node.executable});
  };
  StoredArtifact artifact{tree_digest(nodes), true, total_bytes(nodes)};
  if (looks_whole(artifact.digest)) {
    list_files();
    return artifact;
  }
  std::map<std::string_view, const fs::path*> sources;
  for (const auto& entry : entries) sources[entry.relative_path] = &entry.source;
  const Staging staging(folder_);
  core::make_folders(staging.content());
  for (auto& node : nodes) {
    const auto to = staging.content() / node.path;
    if (node.kind == TreeNode::Kind::directory) {
      core::make_folders(to);
    } else {
      node.digest = copy_file(*sources.at(node.path), to, 0600, &node.bytes);
    }
  }
  // A file may have changed since its digest was taken, so the digest of the copied bytes is used.
  artifact.digest = tree_digest(nodes);
  artifact.bytes = total_bytes(nodes);
  seal_contents(staging.content(), nodes, artifact.digest);
  if (!is_read_on_use(artifact.bytes, entries.size())) sync_contents(staging.content(), nodes);
  publish(staging.content(), artifact.digest);
  list_files();
  return artifact;
}

bool ArtifactStore::publish(const fs::path& sealed, const core::Digest& digest) {
  constexpr int max_tries = 4;  // Other processes may make and remove the target meanwhile.
  const auto target = path(digest);
  const bool is_directory = S_ISDIR(status_of(sealed).value().st_mode);
  for (int tries = 1; ::rename(sealed.c_str(), target.c_str()) != 0; ++tries) {
    const int refused = errno;
    if (refused == EXDEV) return false;
    // A file is replaced by an equal one. A folder is not: either another process was faster, or
    // the existing one is damaged.
    const bool occupied =
        refused == ENOTEMPTY || refused == EEXIST || refused == EISDIR || refused == ENOTDIR;
    if ((!occupied && refused != ENOENT) || tries == max_tries)
      throw core::system_error("cannot put " + target.string() + " into the artifact store",
                               refused);
    if (refused == ENOENT) {
      core::make_folders(target.parent_path());
    } else if (verify(digest)) {
      discard(sealed);
      return true;
    }
  }
  if (is_directory) {
    seal_folder(target, digest);
    return true;
  }
  // The file had the time `artifact_time`, which FAT rounds to two seconds. Another time shows that
  // a process has written to the file since then.
  if (const auto status = status_of(target);
      status && std::abs(status->st_mtim.tv_sec - artifact_time) > 2) {
    set_aside(target);
    throw_changed(sealed);
  }
  return true;
}

bool ArtifactStore::looks_whole(const core::Digest& digest) {
  const auto status = status_of(location(folder_, digest).c_str());
  if (!status) return false;
  if (S_ISREG(status->st_mode))
    return has_mark(*status, mark(digest, "", static_cast<std::uint64_t>(status->st_size))) ||
           verify(digest);
  if (!S_ISDIR(status->st_mode) || !has_mark(*status, mark(digest, "", 0))) return verify(digest);
  const auto target = path(digest);
  // A folder's time shows additions and removals, its entries' times all other changes.
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const auto folder = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    fs::directory_iterator entries(target / folder, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      const auto place = folder.empty() ? entries->path().filename().string()
                                        : folder + '/' + entries->path().filename().string();
      const auto inner = status_of(entries->path());
      if (!inner ||
          !has_mark(*inner,
                    mark(digest, place,
                         S_ISREG(inner->st_mode) ? static_cast<std::uint64_t>(inner->st_size) : 0)))
        return verify(digest);
      if (S_ISDIR(inner->st_mode)) folders.push_back(place);
    }
    if (error) return verify(digest);
  }
  return true;
}

bool ArtifactStore::is_intact(const core::Digest& digest) {
  return read_whole(digest, Marks::keep);
}
bool ArtifactStore::verify(const core::Digest& digest) { return read_whole(digest, Marks::set); }

bool ArtifactStore::read_whole(const core::Digest& digest, Marks marks) {
  const auto target = path(digest);
  const auto status = status_of(target);
  if (!status) return false;
  try {
    if (S_ISREG(status->st_mode) && core::sha256_file(target) == digest) {
      if (marks == Marks::keep) return true;
      set_mode(target, status->st_mode & S_IXUSR ? 0555 : 0444);
      set_mark(target, mark(digest, "", static_cast<std::uint64_t>(status->st_size)));
      return true;
    }
    if (S_ISDIR(status->st_mode)) {
      auto nodes = scan_tree(target);
      hash_tree(target, nodes);
      if (tree_digest(nodes) == digest) {
        if (marks == Marks::keep) return true;
        seal_contents(target, nodes, digest);
        seal_folder(target, digest);
        return true;
      }
    }
  } catch (const core::EnvironmentError&) {
    // An unreadable artifact is not intact. If it cannot be moved either, that is reported below.
    if (!status_of(target)) return false;
  }
  set_aside(target);
  return false;
}

void ArtifactStore::set_aside(const fs::path& target) {
  const auto folder = folder_ / "damaged";
  core::make_folders(folder);
  allow_rename(target);
  const auto name = target.parent_path().filename().string() + target.filename().string() + "." +
                    core::random_name();
  if (::rename(target.c_str(), (folder / name).c_str()) != 0 && errno != ENOENT)
    throw core::system_error("cannot move the damaged artifact " + target.string() + " aside",
                             errno);
}

void ArtifactStore::copy_out(const core::Digest& digest, const fs::path& target) const {
  const auto source = path(digest);
  const auto status = status_of(source);
  if (!status)
    throw core::EnvironmentError("the artifact " + digest.hex() + " is not in the store",
                                 {"run the pipeline again: the step that makes it will run"});
  if (status_of(target))
    throw core::InputError("cannot copy to " + target.string() + ": it exists",
                           "choose another name, or remove it first");
  const auto parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const core::TemporaryFolder temporary(parent, ".pipe-copy-");
  const auto content = temporary.path() / "content";
  core::Digest copied;
  if (S_ISDIR(status->st_mode)) {
    if (::mkdir(content.c_str(), 0777) != 0)
      throw core::system_error("cannot make the folder " + content.string(), errno);
    auto nodes = scan_tree(source);
    copy_tree(source, nodes, content);
    copied = tree_digest(nodes);
  } else {
    copied = copy_file(source, content, status->st_mode & S_IXUSR ? 0777 : 0666);
  }
  if (copied != digest)
    throw core::EnvironmentError(
        "the artifact " + digest.hex() + " is damaged: " + source.string() + " has other content",
        {"`pipe verify` moves it aside, and the next run makes it again"});
  if (::renameat2(AT_FDCWD, content.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0)
    return;
  // Not every file system supports renaming without replacing.
  if (errno != EINVAL || status_of(target))
    throw core::system_error("cannot copy to " + target.string(), errno == EINVAL ? EEXIST : errno);
  if (::rename(content.c_str(), target.c_str()) != 0)
    throw core::system_error("cannot copy to " + target.string(), errno);
}

void ArtifactStore::link_out(const core::Digest& digest, const fs::path& target) const {
  const auto source = path(digest);
  const auto link_file = [](const fs::path& from, const fs::path& to, bool executable) {
    if (::link(from.c_str(), to.c_str()) == 0) return;
    if (errno != EMLINK && errno != EPERM && errno != EXDEV && errno != EOPNOTSUPP)
      throw core::system_error("cannot link " + from.string(), errno);
    copy_file(from, to, executable ? 0555 : 0444);
  };
  const auto status = status_of(source);
  if (!status)
    throw core::EnvironmentError("the artifact " + digest.hex() + " is not in the store",
                                 {"run the pipeline again: the step that makes it will run"});
  if (!S_ISDIR(status->st_mode)) return link_file(source, target, status->st_mode & S_IXUSR);
  core::make_folders(target);
  for (const auto& node : scan_tree(source)) {
    const auto to = target / node.path;
    if (node.kind == TreeNode::Kind::directory) {
      core::make_folders(to);
    } else if (node.kind == TreeNode::Kind::file) {
      link_file(source / node.path, to, node.executable);
    } else if (::symlink(node.target.c_str(), to.c_str()) != 0) {
      throw core::system_error("cannot make the link " + to.string(), errno);
    }
  }
}

std::vector<core::Digest> ArtifactStore::all() const {
  std::vector<core::Digest> found;
  std::error_code error;
  for (fs::directory_iterator folders(folder_, error);
       !error && folders != fs::directory_iterator(); folders.increment(error)) {
    const auto first_digits = folders->path().filename().string();
    if (first_digits.size() != 2) continue;
    for (const auto& entry : core::entries_of(folders->path())) {
      try {
        found.push_back(core::Digest::from_hex(first_digits + entry.filename().string()));
      } catch (const std::invalid_argument&) {
        // The file is not one of the store's, and is left alone.
      }
    }
  }
  return found;
}

std::shared_ptr<const void> ArtifactStore::remove(std::span<const core::Digest> digests) {
  const auto staging = std::make_shared<const Staging>(folder_);
  core::make_folders(staging->content());
  holds_.for_each_free(digests, [&](const core::Digest& digest) {
    forget_elsewhere(digest);
    const auto place = path(digest);
    allow_rename(place);
    // A rename hides the artifact at once: an interrupted removal leaves no partial artifact.
    ::rename(place.c_str(), (staging->content() / digest.hex()).c_str());
  });
  return staging;
}

std::uint64_t ArtifactStore::collect(const std::function<bool(const core::Digest&)>& is_used) {
  std::uint64_t freed = 0;
  const auto remove = [&](const fs::path& path) {
    const auto status = status_of(path);
    if (!status) return;
    if (S_ISREG(status->st_mode)) freed += static_cast<std::uint64_t>(status->st_size);
    if (S_ISDIR(status->st_mode)) {
      std::error_code error;
      for (fs::recursive_directory_iterator entries(path, error);
           !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
        if (entries->is_symlink(error) || !entries->is_regular_file(error)) continue;
        const auto bytes = entries->file_size(error);
        if (!error) freed += bytes;
      }
      // A rename hides the artifact at once: an interrupted removal leaves no partial artifact.
      allow_rename(path);
      try {
        const Staging staging(folder_);
        if (::rename(path.c_str(), staging.content().c_str()) == 0) return;
      } catch (const core::EnvironmentError&) {  // A full disk has no room for another folder.
      }
    }
    core::remove_tree(path);
  };
  std::vector<fs::path> unused;
  for (const auto& digest : all())
    if (!is_used(digest)) unused.push_back(path(digest));
  for (const auto& path : unused) {
    remove(path);
    ::rmdir(path.parent_path().c_str());  // Succeeds only for an empty folder.
  }
  remove_notes(is_used);
  for (const auto& entry : core::entries_of(folder_ / "damaged")) remove(entry);
  Staging::remove_abandoned(folder_);
  return freed;
}

}  // namespace pipeline::store
