/// @file
/// Formats of texts in settings. Each text that reaches a Dockerfile, an HTTP header, a shell or a
/// file path is checked against a format.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::settings {

struct Format {
  const char* expected;  ///< Completes the message `must be ...`.
  bool (*accepts)(std::string_view);
  /// The rule of `accepts` for editors, as an ECMA regular expression, which may accept more texts.
  /// Null: any text.
  const char* pattern = nullptr;
  /// Returns the probable intention behind a rejected text; the result can be invalid, too.
  std::string (*nearest)(std::string_view) = nullptr;
};

struct NumberFormat {
  const char* expected;
  bool (*accepts)(double);
  double minimum;
  bool exclusive;  ///< Whether `minimum` itself is refused.
};

namespace formats {
extern const Format line;  ///< No control characters; may be empty.
extern const Format word;  ///< Not empty, no control characters.
extern const Format text;  ///< May have several lines.
extern const Format path;
/// `[HOST[:PORT]/]PATH[:TAG][@DIGEST]` (github.com/distribution/reference).
extern const Format image;
extern const Format parent_image;  ///< An image, or an archive: see image_archive.hpp.
extern const Format repository;    ///< An image without tag and digest.
extern const Format image_tag;
extern const Format platform;  ///< `OS/ARCH[/VARIANT]`
extern const Format user;      ///< `NAME`, `UID` or `UID:GID`
extern const Format network;
extern const Format volume;  ///< `SOURCE:TARGET[:ro|rw]`
extern const Format label;
extern const Format variable;
extern const Format apt_package;
extern const Format snapshot;     ///< A moment that has passed: see snapshot_id().
extern const Format requirement;  ///< A line of a requirements file that refers to no other file.
extern const Format installer_option;  ///< A long option without its leading dashes.
extern const Format host_entry;        ///< `NAME:ADDRESS`
extern const Format build_argument;
extern const Format compute_capability;
extern const Format instance_type;
extern const Format kubernetes_name;  ///< An object's name: a DNS subdomain.
/// Key of a label, an annotation or a resource: `[PREFIX/]NAME`.
extern const Format kubernetes_key;
extern const Format kubernetes_label;  ///< A label's value.
extern const Format own_label;         ///< A label key outside of pipe's own prefix.
extern const Format quantity;          ///< `500m`, `8Gi`
extern const Format failure;           ///< See parse_failure().
extern const Format toleration;        ///< `KEY[=VALUE][:EFFECT]`
extern const Format env_source;        ///< `NAME=secret/OBJECT/KEY`
extern const Format env_from_source;   ///< `secret/OBJECT`
extern const Format volume_source;     ///< `pvc/CLAIM:TARGET[:ro|rw]`
extern const Format whole_number;      ///< Written as a text; may be negative.
extern const Format sbatch_option;     ///< `--NAME` or `--NAME=VALUE`
extern const NumberFormat positive;
extern const NumberFormat at_least_one;
}  // namespace formats

}  // namespace pipeline::settings
