/// @file
/// Manifests, indexes and configurations of images, of OCI and of Docker's second schema
/// (github.com/opencontainers/image-spec). Pure. All functions throw EnvironmentError for other
/// documents. The error's text does not name the image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::oci {

/// Returns the value of the header Accept for manifests and indexes.
std::string accepted_manifests();

struct Blob {
  std::string media_type;
  std::string digest;  ///< `sha256:` and 64 lower-case hex digits.
  std::uint64_t size = 0;
};

struct Manifest {
  Blob config;
  std::vector<Blob> layers;  ///< The lowest first.
};

/// The compression of a layer's tar.
enum class Packing { none, gzip, zstd };

/// Returns true for a text that has the form of Blob::digest.
bool is_digest(std::string_view text);

/// Returns true for a list of manifests, such as those of one image for several platforms.
bool is_index(const nlohmann::json& document);
/// Returns the manifest of an index that is made for the platform.
/// @param platform `OS/ARCHITECTURE[/VARIANT]`
Blob choose_manifest(const nlohmann::json& index, const std::string& platform);
Manifest read_manifest(const nlohmann::json& document);
Packing packing_of(const Blob& layer);

/// Returns the image as an engine describes it (GET /images/NAME/json), as far as an image of equal
/// content is the same on each engine: `Id`, `Os`, `Architecture`, `Created`, `Config`, and
/// `RootFS`, with the digests of its unpacked layers, as many as the manifest has.
nlohmann::json describe(const nlohmann::json& config, const Manifest& manifest);

/// Returns the platform of this machine.
std::string own_platform();

}  // namespace pipeline::oci
