/// @file
/// The contents of an image, and documents about them: CycloneDX, SPDX, SLSA provenance.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::sbom {

/// A Python package or a package of the distribution.
struct Package {
  std::string type;  ///< Type of the package URL: `pypi`, `deb`, `rpm`, `apk`.
  std::string name, version;
  std::string architecture;  ///< Empty for `pypi`.
  std::string license;       ///< License that the package states; may be empty.
  std::string sha256;        ///< Digest of the installed file, hex; empty if not locked.
};

struct ImageRecord {
  std::string reference;     ///< `pipe:env-1a2b...`.
  std::string id;            ///< SHA-256 by which the engine names the image, hex.
  std::string created;       ///< RFC 3339, UTC; may have a fraction of seconds.
  std::string architecture;  ///< `amd64`.
  std::string distribution, distribution_version;  ///< ID and VERSION_ID of os-release.
  std::string base;                                ///< Reference of the parent image; may be empty.
  std::string base_id;  ///< `id` of the parent image; empty if the engine no longer has it.
  std::vector<std::string> layers;  ///< `sha256:...` of the uncompressed layers, from the base up.
  std::vector<Package> packages;
  std::string run, step;  ///< The run and step that the documents are made for.
  std::string version;    ///< Version of the program that writes the documents.
};

/// Fills in the packages, distribution and version from the lines that contents_script prints.
/// Ignores unknown lines.
void add_contents(ImageRecord& image, const std::string& lines);

/// A script for sh that prints the packages of the file system in which it runs, one a line: those
/// of the distribution if it has dpkg, rpm or apk, and Python packages if Python is installed.
extern const char* const contents_script;

/// Returns the identifier of a package as a package URL (ECMA-427).
std::string package_url(const ImageRecord& image, const Package& package);

/// Returns a CycloneDX 1.5 document. Equal images give equal documents.
nlohmann::json cyclonedx(const ImageRecord& image);
/// Returns an SPDX 2.3 document. Equal images give equal documents.
nlohmann::json spdx(const ImageRecord& image);
/// Returns an in-toto statement (v1) with a SLSA provenance predicate (v1).
/// @param settings the parameters of the image: docker::PlanParts as JSON
nlohmann::json provenance(const ImageRecord& image, const nlohmann::json& settings);

}  // namespace pipeline::sbom
