/// @file
/// Artifacts by name: an artifact that was published under a name is a version of that name, and
/// one version is the current one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/records.hpp"

namespace pipeline::store {

class Database;
class KeyValues;

struct PublishedVersion {
  unsigned version = 1;
  std::string run, step;  ///< The run and the step that produced the artifact.
  OutputRecord output;
  WallTime time{};
  bool is_executable = false;  ///< For a file in a bucket, which keeps no modes.
};

struct PublishedName {
  std::string name;
  std::vector<PublishedVersion> versions;  ///< In the order of their numbers; none: unknown name.
  /// Versions that were made current, each after the one before; the last one is current.
  std::vector<unsigned> promoted;

  /// Returns the version with this number, or the current one for 0; null if there is none.
  const PublishedVersion* find(unsigned version = 0) const;
  /// Returns the version that has this content; null if there is none.
  const PublishedVersion* find_content(const core::Digest& content) const;

  /// Adds a version, which becomes the current one. Does nothing if a version has this content, so
  /// that a repeated run changes nothing.
  /// @param made its number is ignored
  /// @return the number of the version that has the content
  unsigned publish(PublishedVersion made);
  /// Makes a version the current one. Throws InputError if there is none.
  void promote(unsigned version);
  /// Makes the version current again that was current before. Throws InputError if there was none.
  /// @return its number
  unsigned demote();
};

/// Returns the record of a name as JSON, as the run store and buckets have it.
std::string text_of(const PublishedName& name);
/// Throws EnvironmentError if the text is not such a record.
PublishedName read_published(const std::string& name, const std::string& text);

/// A version of a published artifact, written `NAME` or `NAME@VERSION`.
struct PublishedReference {
  std::string name;
  unsigned version = 0;  ///< 0: the current one.

  /// Returns nothing if the text after `@` is not the number of a version.
  static std::optional<PublishedReference> parse(std::string_view text);
};

/// Names and versions are kept in the run store; their artifacts stay while a name has them.
class Published {
 public:
  /// Keeps references to all arguments.
  Published(Database& database, KeyValues& key_values)
      : database_(database), key_values_(key_values) {}

  /// Returns the record of a name, without versions if nothing has the name. Throws
  /// EnvironmentError if the record is damaged.
  PublishedName find(const std::string& name);
  std::vector<std::string> names();
  /// Changes the record of a name, in a transaction. Returns the result of `edit`.
  unsigned change(const std::string& name, const std::function<unsigned(PublishedName&)>& edit);

 private:
  Database& database_;
  KeyValues& key_values_;
};

}  // namespace pipeline::store
