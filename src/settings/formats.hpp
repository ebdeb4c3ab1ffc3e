/// @file
/// What texts in settings may look like. Everything that reaches a Dockerfile, a header, a shell or
/// a file's path passes one of these.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::settings {

struct Format {
  const char* expected;  ///< Completes `must be ...`.
  bool (*accepts)(std::string_view);
  const char* pattern =
      nullptr;  ///< The same for editors (ECMA regular expression); may be coarser.
  /// What a text that is not accepted was probably meant to be; may be no better.
  std::string (*nearest)(std::string_view) = nullptr;
};

struct NumberFormat {
  const char* expected;
  bool (*accepts)(double);
  double minimum;
  bool exclusive;
};

namespace formats {
extern const Format line;  ///< No control characters; may be empty.
extern const Format word;  ///< Neither empty nor with control characters.
extern const Format text;  ///< Several lines.
extern const Format path;
extern const Format
    image;  ///< `[HOST[:PORT]/]PATH[:TAG][@DIGEST]` (github.com/distribution/reference).
extern const Format repository;  ///< The same without tag and digest.
extern const Format image_tag;
extern const Format platform;  ///< `OS/ARCH[/VARIANT]`
extern const Format user;      ///< `NAME`, `UID` or `UID:GID`
extern const Format network;
extern const Format volume;  ///< `SOURCE:TARGET[:ro|rw]`
extern const Format label;
extern const Format variable;
extern const Format apt_package;
extern const Format requirement;       ///< A line of a requirements file that needs no other file.
extern const Format installer_option;  ///< A long option without its dashes.
extern const Format host_entry;        ///< `NAME:ADDRESS`
extern const Format build_argument;
extern const Format compute_capability;
extern const Format instance_type;
extern const Format kubernetes_name;   ///< Of an object: a DNS subdomain.
extern const Format kubernetes_key;    ///< Of a label, an annotation, a resource: `[PREFIX/]NAME`.
extern const Format kubernetes_label;  ///< A label's value.
extern const Format own_label;         ///< A label's key that is not one of ours.
extern const Format quantity;          ///< `500m`, `8Gi`
extern const Format toleration;        ///< `KEY[=VALUE][:EFFECT]`
extern const Format env_source;        ///< `NAME=secret/OBJECT/KEY`
extern const Format env_from_source;   ///< `secret/OBJECT`
extern const Format volume_source;     ///< `pvc/CLAIM:TARGET[:ro|rw]`
extern const NumberFormat positive;
extern const NumberFormat at_least_one;
}  // namespace formats

}  // namespace pipeline::settings
