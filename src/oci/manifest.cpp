#include "oci/manifest.hpp"

#include <algorithm>

#include <sys/utsname.h>

#include "core/error.hpp"
#include "core/json_member.hpp"
#include "core/text.hpp"

namespace pipeline::oci {
namespace {

using core::text_at;
using nlohmann::json;

constexpr std::uint64_t max_blob_size = std::uint64_t{256} << 30;
constexpr std::size_t max_layers = 1000, max_platforms = 10'000;

[[noreturn]] void reject(const std::string& why) { throw core::EnvironmentError(why); }

Blob read_blob(const json& value) {
  if (!value.is_object()) reject("its manifest is not a JSON object");
  Blob blob{text_at(value, "mediaType"), text_at(value, "digest"), 0};
  const auto size = value.find("size");
  if (!is_digest(blob.digest)) reject("its manifest has a digest that is not a SHA-256");
  if (size == value.end() || !size->is_number_unsigned() ||
      size->get<std::uint64_t>() > max_blob_size)
    reject("its manifest has a size that is not a number, or is above 256 GiB");
  blob.size = size->get<std::uint64_t>();
  return blob;
}

/// Returns the variant, which is `v8` for an arm64 without one.
std::string variant_of(const std::string& architecture, std::string variant) {
  return architecture == "arm64" && variant.empty() ? "v8" : variant;
}

}  // namespace

std::string accepted_manifests() {
  return "application/vnd.oci.image.index.v1+json, "
         "application/vnd.oci.image.manifest.v1+json, "
         "application/vnd.docker.distribution.manifest.list.v2+json, "
         "application/vnd.docker.distribution.manifest.v2+json";
}

bool is_digest(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  constexpr std::size_t digits = 64;
  return text.starts_with(prefix) && text.size() == prefix.size() + digits &&
         core::all(text.substr(prefix.size()), core::is_hex_digit);
}

bool is_index(const json& document) {
  return document.is_object() && document.contains("manifests");
}

Blob choose_manifest(const json& index, const std::string& platform) {
  const auto& manifests = index.at("manifests");
  if (!manifests.is_array() || manifests.size() > max_platforms)
    reject("its index has no list of manifests, or too many");
  const auto first = platform.find('/'), second = platform.find('/', first + 1);
  const auto os = platform.substr(0, first);
  const auto architecture =
      first == platform.npos ? std::string() : platform.substr(first + 1, second - first - 1);
  const auto variant = first == platform.npos || second == platform.npos
                           ? std::string()
                           : platform.substr(second + 1);
  std::string others;
  for (const auto& each : manifests) {
    if (!each.is_object() || !each.contains("platform") || !each.at("platform").is_object())
      continue;
    const auto& found = each.at("platform");
    const auto found_os = text_at(found, "os"), found_architecture = text_at(found, "architecture");
    const auto found_variant = text_at(found, "variant");
    const bool fits = found_os == os && found_architecture == architecture &&
                      (variant.empty() || variant_of(architecture, found_variant) ==
                                              variant_of(architecture, variant));
    if (fits) return read_blob(each);
    if (found_os != "unknown")  // BuildKit's attestations are of the system `unknown`.
      others += (others.empty() ? "" : ", ") + found_os + "/" + found_architecture +
                (found_variant.empty() ? "" : "/" + found_variant);
  }
  reject("it is not made for " + platform + (others.empty() ? "" : ", only for " + others));
}

Manifest read_manifest(const json& document) {
  if (!document.is_object()) reject("its manifest is not a JSON object");
  const auto layers = document.find("layers"), config = document.find("config");
  if (layers == document.end() || config == document.end())
    reject("its manifest has no layers or no configuration, or is of the outdated first schema");
  if (!layers->is_array() || layers->size() > max_layers)
    reject("its manifest has no list of layers, or more than a thousand");
  Manifest manifest;
  manifest.config = read_blob(*config);
  for (const auto& layer : *layers) {
    manifest.layers.push_back(read_blob(layer));
    packing_of(manifest.layers.back());  // Throws for a layer that cannot be unpacked.
  }
  return manifest;
}

Packing packing_of(const Blob& layer) {
  const auto& type = layer.media_type;
  const bool is_layer = type.starts_with("application/vnd.oci.image.layer.v1.tar") ||
                        type.starts_with("application/vnd.docker.image.rootfs.diff.tar");
  if (is_layer && (type.ends_with(".gzip") || type.ends_with("+gzip"))) return Packing::gzip;
  if (is_layer && (type.ends_with(".zstd") || type.ends_with("+zstd"))) return Packing::zstd;
  if (is_layer && type.ends_with(".tar")) return Packing::none;
  reject("it has a layer of the kind '" + type.substr(0, 100) + "', which pipe cannot unpack");
}

json describe(const json& config, const Manifest& manifest) {
  if (!config.is_object()) reject("its configuration is not a JSON object");
  const auto root = config.value("rootfs", json());
  const auto layers = root.is_object() ? root.value("diff_ids", json()) : json();
  if (!layers.is_array() || layers.size() != manifest.layers.size())
    reject("its configuration and its manifest have different numbers of layers");
  for (const auto& layer : layers)
    if (!layer.is_string() || !is_digest(layer.get<std::string>()))
      reject("its configuration has a digest that is not a SHA-256");
  json image = json::object();
  image["Id"] = manifest.config.digest;
  image["Os"] = text_at(config, "os");
  image["Architecture"] = text_at(config, "architecture");
  image["Created"] = text_at(config, "created");
  image["Config"] = config.value("config", json::object());
  image["RootFS"]["Layers"] = layers;
  return image;
}

std::string own_platform() {
  utsname system{};
  uname(&system);
  const std::string machine = system.machine;
  return "linux/" + (machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine);
}

}  // namespace pipeline::oci
