/// @file
/// What an image is made of, and documents about it in the formats of the field.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::sbom {

/// A package of Python's or of the distribution.
struct Package {
  std::string type;  ///< Of a package URL: `pypi`, `deb`, `rpm`, `apk`.
  std::string name, version;
  std::string architecture;  ///< Empty for `pypi`.
  std::string license;       ///< As the package says it; may be empty.
  std::string sha256;        ///< Of the file that was installed, hex; empty if it was not locked.
};

struct ImageRecord {
  std::string reference;     ///< `pipe:env-1a2b...`.
  std::string id;            ///< SHA-256 that the engine names it by, hex.
  std::string created;       ///< RFC 3339, UTC; may have a fraction of seconds.
  std::string architecture;  ///< `amd64`.
  std::string distribution, distribution_version;  ///< ID and VERSION_ID of os-release.
  std::string base;                                ///< Reference of the parent image; may be empty.
  std::string base_id;              ///< As `id`; empty if the engine has no such parent any more.
  std::vector<std::string> layers;  ///< `sha256:...` of the uncompressed layers, from the base up.
  std::vector<Package> packages;
  std::string run, step;  ///< The run and step that the documents are made for.
  std::string version;    ///< Of the program that writes the documents.
};

/// Fills in the packages, distribution and version from the lines that contents_script prints.
/// Ignores lines that it does not know.
void add_contents(ImageRecord& image, const std::string& lines);

/// A shell script that prints the packages of the file system in which it runs, one a line. It
/// needs nothing but sh; Python's packages are listed if there is a Python.
extern const char* const contents_script;

/// Returns the identifier of a package as a package URL (ECMA-427).
std::string package_url(const ImageRecord& image, const Package& package);

/// Returns a CycloneDX 1.5 document. Equal images give equal documents.
nlohmann::json cyclonedx(const ImageRecord& image);
/// Returns an SPDX 2.3 document. Equal images give equal documents.
nlohmann::json spdx(const ImageRecord& image);
/// Returns an in-toto statement (v1) with a SLSA provenance predicate (v1).
/// @param settings what determined the image: docker::PlanParts as JSON
nlohmann::json provenance(const ImageRecord& image, const nlohmann::json& settings);

}  // namespace pipeline::sbom
