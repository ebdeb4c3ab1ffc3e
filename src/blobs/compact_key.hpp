/// @file
/// Keys of blobs in little memory: a run may use 100,000 artifacts.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "core/digest.hpp"

namespace pipeline::blobs {

/// A key of a remote store. The key of an artifact (RemoteArtifacts::key_of()) is held as its
/// digest, which takes no memory of its own; the text of the key would take some 100 bytes.
class CompactKey {
 public:
  explicit CompactKey(std::string_view key) : value_(std::string(key)) {
    auto rest = key;
    const bool is_tree = rest.ends_with(suffix);
    if (is_tree) rest.remove_suffix(suffix.size());
    if (rest.size() != folder.size() + 65 || !rest.starts_with(folder)) return;
    rest.remove_prefix(folder.size());
    core::Digest digest;
    try {
      digest = core::Digest::from_hex(std::string(rest.substr(0, 2)).append(rest.substr(3)));
    } catch (const std::invalid_argument&) {
      return;
    }
    const CompactKey compact(digest, is_tree);
    if (compact.text() == key) *this = compact;
  }
  std::string text() const {
    if (const auto* other = std::get_if<std::string>(&value_)) return *other;
    const auto* tree = std::get_if<Tree>(&value_);
    const auto hex = (tree ? tree->digest : std::get<core::Digest>(value_)).hex();
    std::string key(folder);
    key.append(hex, 0, 2).append("/").append(hex, 2);
    return tree ? key.append(suffix) : key;
  }
  auto operator<=>(const CompactKey&) const = default;

 private:
  static constexpr std::string_view folder = "artifacts/", suffix = ".tar";
  struct Tree {
    core::Digest digest;
    auto operator<=>(const Tree&) const = default;
  };
  CompactKey(const core::Digest& digest, bool is_tree) {
    if (is_tree)
      value_ = Tree{digest};
    else
      value_ = digest;
  }
  std::variant<core::Digest, Tree, std::string> value_;
};

}  // namespace pipeline::blobs
