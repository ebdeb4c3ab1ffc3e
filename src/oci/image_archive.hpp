/// @file
/// Images of archives on this machine: OCI layouts, as tars and folders, and the archives of
/// `docker save`. No content is unpacked before its digest is known, and no name in an archive
/// becomes a path on this machine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "net/http.hpp"
#include "oci/archive_files.hpp"
#include "oci/manifest.hpp"
#include "settings/image_archive.hpp"

namespace pipeline::oci {

/// An image of an archive.
struct ArchivedImage {
  nlohmann::json description;   ///< See describe().
  std::string config;           ///< The configuration's bytes.
  std::vector<Blob> layers;     ///< The lowest first; without a digest where the archive has none.
  std::vector<Slice> contents;  ///< The content of each layer, in the archive.
};

/// Finds the image and compares its manifest and its configuration with their digests. Throws
/// EnvironmentError with advice.
/// @param root the folder of relative paths
/// @param platform `OS/ARCHITECTURE[/VARIANT]`; empty: that of this machine, if there are several
ArchivedImage read_archive(const settings::ImageArchive& archive, const std::filesystem::path& root,
                           const std::string& platform);

/// Copies a layer, packed as in the archive, and compares it with its digest, if it has one. The
/// caller compares its unpacked content.
void copy_layer(const ArchivedImage& image, std::size_t layer, const std::filesystem::path& to);

/// Returns a tar for POST /images/load that gives the image this name and no other one. The tar has
/// the form of `docker save` before version 25, which all engines read.
net::BodySource loadable_tar(const ArchivedImage& image, const std::string& name);

}  // namespace pipeline::oci
