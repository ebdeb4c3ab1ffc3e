#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/text.hpp"
#include "core/uuid.hpp"
#include "net/url.hpp"
#include "sbom/image_record.hpp"

namespace pipeline::sbom {
namespace {

using nlohmann::json;

/// Returns a digest of the record for identifiers, so that equal images have equal documents.
std::string content_digest(const ImageRecord& image) {
  core::Hasher hasher;
  hasher.field("sbom 1").field(image.reference).field(image.id).field(image.version);
  for (const auto& package : image.packages)
    hasher.field(package_url(image, package)).field(package.sha256);
  return hasher.finish().hex();
}

/// Removes the fraction of seconds, which SPDX does not allow.
std::string whole_seconds(const std::string& time) {
  return time.substr(0, time.find_first_of(".Z")) + "Z";
}

/// Returns a list of one digest, in the form of either standard.
json list_of_sha256(const char* algorithm_key, const char* algorithm, const char* value_key,
                    const std::string& hex) {
  return json::array({{{algorithm_key, algorithm}, {value_key, hex}}});
}

json cyclonedx_package(const ImageRecord& image, const Package& package) {
  const auto url = package_url(image, package);
  json component{{"type", "library"},
                 {"bom-ref", url},
                 {"name", package.name},
                 {"version", package.version},
                 {"purl", url}};
  if (!package.license.empty())
    component["licenses"] = json::array({{{"license", {{"name", package.license}}}}});
  if (!package.sha256.empty())
    component["hashes"] = list_of_sha256("alg", "SHA-256", "content", package.sha256);
  return component;
}

json spdx_image(const std::string& identifier, const std::string& name, const std::string& id) {
  json package{{"SPDXID", identifier},
               {"name", name},
               {"downloadLocation", "NOASSERTION"},
               {"filesAnalyzed", false},
               {"primaryPackagePurpose", "CONTAINER"}};
  if (!id.empty())
    package["checksums"] = list_of_sha256("algorithm", "SHA256", "checksumValue", id);
  return package;
}

json relation(const std::string& from, const char* type, const std::string& to) {
  return {{"spdxElementId", from}, {"relationshipType", type}, {"relatedSpdxElement", to}};
}

}  // namespace

std::string package_url(const ImageRecord& image, const Package& package) {
  auto name = package.name;
  std::string url_namespace;
  if (package.type == "pypi") {
    name = core::lower(name);
    std::ranges::replace(name, '_', '-');
  } else {
    url_namespace = net::url_encode(image.distribution) + "/";
  }
  auto url = "pkg:" + package.type + "/" + url_namespace + net::url_encode(name) + "@" +
             net::url_encode(package.version, ":");
  if (!package.architecture.empty()) url += "?arch=" + net::url_encode(package.architecture);
  return url;
}

json cyclonedx(const ImageRecord& image) {
  json properties = json::array();
  for (const auto& layer : image.layers)
    properties.push_back({{"name", "pipe:layer"}, {"value", layer}});
  json container{{"type", "container"},
                 {"bom-ref", "image"},
                 {"name", image.reference},
                 {"version", image.id},
                 {"properties", properties}};
  container["hashes"] = list_of_sha256("alg", "SHA-256", "content", image.id);
  json components = json::array(), contained = json::array();
  const auto add = [&](json component) {
    contained.push_back(component["bom-ref"]);
    components.push_back(std::move(component));
  };
  if (!image.base.empty()) {
    json base{{"type", "container"}, {"bom-ref", "base"}, {"name", image.base}};
    if (!image.base_id.empty())
      base["hashes"] = list_of_sha256("alg", "SHA-256", "content", image.base_id);
    add(base);
  }
  if (!image.distribution.empty())
    add({{"type", "operating-system"},
         {"bom-ref", "distribution"},
         {"name", image.distribution},
         {"version", image.distribution_version}});
  for (const auto& package : image.packages) add(cyclonedx_package(image, package));
  json tool{{"type", "application"}, {"name", "pipe"}, {"version", image.version}};
  return {{"bomFormat", "CycloneDX"},
          {"specVersion", "1.5"},
          {"serialNumber", "urn:uuid:" + core::uuid_of(content_digest(image))},
          {"version", 1},
          {"metadata",
           {{"timestamp", image.created},
            {"tools", {{"components", json::array({tool})}}},
            {"component", container}}},
          {"components", components},
          {"dependencies", json::array({{{"ref", "image"}, {"dependsOn", contained}}})}};
}

json spdx(const ImageRecord& image) {
  json packages = json::array({spdx_image("SPDXRef-image", image.reference, image.id)});
  json relations = json::array({relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")});
  if (!image.base.empty()) {
    packages.push_back(spdx_image("SPDXRef-base", image.base, image.base_id));
    relations.push_back(relation("SPDXRef-image", "DESCENDANT_OF", "SPDXRef-base"));
  }
  std::size_t number = 0;
  for (const auto& each : image.packages) {
    const auto identifier = "SPDXRef-package-" + std::to_string(++number);
    json package{{"SPDXID", identifier},
                 {"name", each.name},
                 {"versionInfo", each.version},
                 {"downloadLocation", "NOASSERTION"},
                 {"filesAnalyzed", false}};
    package["externalRefs"] = json::array({{{"referenceCategory", "PACKAGE-MANAGER"},
                                            {"referenceType", "purl"},
                                            {"referenceLocator", package_url(image, each)}}});
    if (!each.sha256.empty())
      package["checksums"] = list_of_sha256("algorithm", "SHA256", "checksumValue", each.sha256);
    packages.push_back(package);
    relations.push_back(relation("SPDXRef-image", "CONTAINS", identifier));
  }
  return {{"spdxVersion", "SPDX-2.3"},
          {"dataLicense", "CC0-1.0"},
          {"SPDXID", "SPDXRef-DOCUMENT"},
          {"name", image.reference},
          {"documentNamespace", "urn:uuid:" + core::uuid_of(content_digest(image))},
          {"creationInfo",
           {{"created", whole_seconds(image.created)},
            {"creators", json::array({"Tool: pipe-" + image.version})}}},
          {"packages", packages},
          {"relationships", relations}};
}

json provenance(const ImageRecord& image, const json& settings) {
  json materials = json::array();
  if (!image.base.empty()) {
    json base{{"uri", "pkg:docker/" + net::url_encode(image.base, "/:@")}};
    if (!image.base_id.empty()) base["digest"] = {{"sha256", image.base_id}};
    materials.push_back(base);
  }
  for (const auto& package : image.packages)
    if (!package.sha256.empty())
      materials.push_back(
          {{"uri", package_url(image, package)}, {"digest", {{"sha256", package.sha256}}}});
  const auto builder = "pkg:generic/pipe@" + net::url_encode(image.version);
  json layers = json::array();
  for (const auto& layer : image.layers)
    layers.push_back(
        {{"name", "layer"}, {"digest", {{"sha256", layer.substr(layer.find(':') + 1)}}}});
  return {
      {"_type", "https://in-toto.io/Statement/v1"},
      {"subject", json::array({{{"name", image.reference}, {"digest", {{"sha256", image.id}}}}})},
      {"predicateType", "https://slsa.dev/provenance/v1"},
      {"predicate",
       {{"buildDefinition",
         {{"buildType", "pkg:generic/pipe#image"},
          {"externalParameters", settings},
          {"internalParameters", {{"architecture", image.architecture}}},
          {"resolvedDependencies", materials}}},
        {"runDetails",
         {{"builder", {{"id", builder}, {"version", {{"pipe", image.version}}}}},
          {"metadata",
           {{"invocationId", image.run + "/" + image.step}, {"finishedOn", image.created}}},
          {"byproducts", layers}}}}}};
}

}  // namespace pipeline::sbom
