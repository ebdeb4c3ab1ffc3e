/// @file
/// Earlier successes of steps by key, for reuse.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "store/records.hpp"

namespace pipeline::store {

class Database;

/// A named part of a cache key, such as `image` or `input data`. The value is a digest or a short
/// text; never a secret.
struct KeyPart {
  std::string name, value;
  /// The step that produced the input, if the input is one output: another step can have produced
  /// equal content. Not a part of the key.
  std::string producer = {};
  bool operator==(const KeyPart&) const = default;
};

/// Returns the digest of the artifact that the part of an input, `input NAME`, names in its value;
/// nothing if the value names none.
std::optional<core::Digest> artifact_of(const KeyPart& input);

/// An earlier success that a step may reuse.
struct CacheEntry {
  std::string key, run, step;
  std::vector<OutputRecord> outputs;
};

class CacheEntries {
 public:
  explicit CacheEntries(Database& database) : database_(database) {}

  /// Records a success under its key, with the key's parts and outputs.
  void add(const CacheEntry& entry, const std::string& pipeline, const std::vector<KeyPart>& parts);
  /// Returns true if any step has ever succeeded; otherwise no step needs to be looked up.
  bool has_successes();
  std::optional<CacheEntry> find(const std::string& key);
  void remove(const std::string& key);
  /// Returns the parts of the newest key with which this step of this pipeline succeeded, and the
  /// run; used to report what changed.
  std::optional<std::pair<std::string, std::vector<KeyPart>>> last_key_parts(
      const std::string& pipeline, const std::string& step);
  /// Returns the parts of a key with which a step succeeded; none if they are not known.
  std::vector<KeyPart> key_parts(const std::string& key);

 private:
  Database& database_;
};

}  // namespace pipeline::store
