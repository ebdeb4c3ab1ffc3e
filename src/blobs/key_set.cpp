#include "blobs/key_set.hpp"

#include <algorithm>
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
  Artifact found{.digest = {}, .is_tree = key.ends_with(suffix)};
  std::string hex;
  for (const char letter : std::string_view(key).substr(std::min(key.size(), folder.size())))
    if (letter != '/') hex += letter;
  if (found.is_tree) hex.resize(hex.size() - std::min(hex.size(), suffix.size()));
  try {
    found.digest = core::Digest::from_hex(hex);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  if (RemoteArtifacts::key_of(found.digest.hex(), found.is_tree) != key) return std::nullopt;
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
