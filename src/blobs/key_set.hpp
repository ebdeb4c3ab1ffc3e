/// @file
/// Keys of blobs in little memory: a run may use 100,000 artifacts.
#pragma once

#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <boost/unordered/unordered_flat_set.hpp>

#include "core/digest.hpp"

namespace pipeline::blobs {

/// A set of keys. The key of an artifact (RemoteArtifacts::key_of()) is held as its digest.
class KeySet {
 public:
  void insert(const std::string& key);
  bool contains(const std::string& key) const;
  void erase(const std::string& key);
  std::vector<std::string> keys() const;  ///< In no particular order.
  std::size_t size() const { return files_.size() + trees_.size() + others_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const core::Digest& digest) const {
      std::size_t hash = 0;
      std::memcpy(&hash, digest.bytes.data(), sizeof(hash));
      return hash;
    }
  };
  using Digests = boost::unordered_flat_set<core::Digest, Hash>;
  Digests files_, trees_;
  std::set<std::string> others_;
};

}  // namespace pipeline::blobs
