#include "blobs/key_set.hpp"

#include <optional>
#include <stdexcept>
#include <string_view>

#include "blobs/remote_artifacts.hpp"

namespace pipeline::blobs {
namespace {

struct Artifact {
  core::Digest digest;
  bool is_tree = false;
};

/// Returns the artifact of a key; nothing for a key that is not exactly an artifact's.
std::optional<Artifact> artifact_of(const std::string& key) {
  constexpr std::string_view folder = "artifacts/", suffix = ".tar";
  std::string_view rest = key;
  const bool is_tree = rest.ends_with(suffix);
  if (is_tree) rest.remove_suffix(suffix.size());
  if (!rest.starts_with(folder) || rest.size() < folder.size() + 3) return std::nullopt;
  rest.remove_prefix(folder.size());
  Artifact found{.digest = {}, .is_tree = is_tree};
  try {
    found.digest = core::Digest::from_hex(std::string(rest.substr(0, 2)).append(rest.substr(3)));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  if (RemoteArtifacts::key_of(found.digest.hex(), is_tree) != key) return std::nullopt;
  return found;
}

}  // namespace

void KeySet::insert(const std::string& key) {
  if (const auto artifact = artifact_of(key))
    (artifact->is_tree ? trees_ : files_).insert(artifact->digest);
  else
    others_.insert(key);
}

bool KeySet::contains(const std::string& key) const {
  const auto artifact = artifact_of(key);
  if (!artifact) return others_.contains(key);
  return (artifact->is_tree ? trees_ : files_).contains(artifact->digest);
}

void KeySet::erase(const std::string& key) {
  if (const auto artifact = artifact_of(key))
    (artifact->is_tree ? trees_ : files_).erase(artifact->digest);
  else
    others_.erase(key);
}

std::vector<std::string> KeySet::keys() const {
  std::vector<std::string> all(others_.begin(), others_.end());
  for (const auto& digest : files_) all.push_back(RemoteArtifacts::key_of(digest.hex(), false));
  for (const auto& digest : trees_) all.push_back(RemoteArtifacts::key_of(digest.hex(), true));
  return all;
}

}  // namespace pipeline::blobs
