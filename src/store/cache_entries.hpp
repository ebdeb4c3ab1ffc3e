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
  /// For an input that is one output, the step that produced it: another step can have produced
  /// equal content. For data from outside, its origin (write_data_origin()). For the image, its
  /// description. Not a part of the key.
  std::string producer = {};
  bool operator==(const KeyPart&) const = default;
};

/// Returns the digest of the artifact that the part of an input, `input NAME`, names in its value;
/// nothing if the value names none.
std::optional<core::Digest> artifact_of(const KeyPart& input);

/// Data from outside of the pipeline: a file or folder of the user's, the content of an address, or
/// a published artifact.
struct DataOrigin {
  std::string kind;    ///< `file`, `folder`, `address` or `artifact`.
  std::string source;  ///< Its path, its address without the query, or `NAME@VERSION`.
  /// Digest of the content; of a folder the one that it would have as an artifact.
  std::optional<core::Digest> digest;
};

/// Returns the text that KeyPart::producer has for data.
std::string write_data_origin(const DataOrigin& origin);
/// Reads the part `data NAME` or `data NAME/` of a key; nothing for other parts, and for those of
/// the entries of a folder. Earlier versions of this program have recorded the digest only.
/// @return the input's name and the data
std::optional<std::pair<std::string, DataOrigin>> data_input(const KeyPart& part);

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
  /// Returns true if any success is recorded; otherwise no key needs to be looked up.
  bool has_successes();
  std::optional<CacheEntry> find(const std::string& key);
  void remove(const std::string& key);
  /// Returns the run and the key's parts of the earlier success of the step whose key has the
  /// fewest parts different from `now`; of several, the newest one. The newest hundred successes
  /// are compared. Inputs are not compared if `now` has none.
  std::optional<std::pair<std::string, std::vector<KeyPart>>> nearest_key_parts(
      const std::string& pipeline, const std::string& step, const std::vector<KeyPart>& now);
  /// Returns the run and the key's parts of the step's newest success.
  std::optional<std::pair<std::string, std::vector<KeyPart>>> last_key_parts(
      const std::string& pipeline, const std::string& step);
  /// Returns the parts of a key with which a step succeeded; none if they are not known.
  std::vector<KeyPart> key_parts(const std::string& key);

 private:
  Database& database_;
};

}  // namespace pipeline::store
