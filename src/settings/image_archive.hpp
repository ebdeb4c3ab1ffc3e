/// @file
/// Parses a parent image that is an archive on this machine, in the notation of skopeo, Podman and
/// Apptainer (containers-transports(5)).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::settings {

/// `oci-archive:PATH[:IMAGE]`, `docker-archive:PATH[:IMAGE]` or `oci:PATH[:IMAGE]`.
struct ImageArchive {
  std::string transport;
  std::string path;  ///< Absolute, or below the pipeline's folder; without a colon.
  /// A tag, a name, or `@N` for the image with this number, from 0; empty: the only image.
  std::string image;

  bool is_folder() const { return transport == "oci"; }
  std::string text() const { return transport + ":" + path + (image.empty() ? "" : ":" + image); }
};

/// Parses the text; returns nothing if it names an image of an engine or a registry.
std::optional<ImageArchive> image_archive(std::string_view text);

/// Returns true for an image reference, or an archive.
bool is_parent_image(std::string_view text);

}  // namespace pipeline::settings
