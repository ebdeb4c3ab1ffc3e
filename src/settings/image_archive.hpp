/// @file
/// Parses a parent image that is an archive on this machine, in the words of skopeo, Podman and
/// Apptainer (containers-transports(5)).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::settings {

/// `oci-archive:PATH[:IMAGE]`, `docker-archive:PATH[:IMAGE]` or `oci:PATH[:IMAGE]`.
struct ImageArchive {
  std::string transport;
  std::string path;   ///< Absolute, or below the pipeline's folder; without a colon.
  std::string image;  ///< A tag or a name, or `@N` for the image of this number from 0; empty: the
                      ///< only one.

  bool is_folder() const { return transport == "oci"; }
  std::string text() const { return transport + ":" + path + (image.empty() ? "" : ":" + image); }
};

/// Returns nothing for an image that an engine or a registry has.
std::optional<ImageArchive> image_archive(std::string_view text);

/// Returns true for an image reference, or an archive.
bool is_parent_image(std::string_view text);

}  // namespace pipeline::settings
