/// @file
/// The files of an engine's image as a tar.
#pragma once

#include <filesystem>
#include <string>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::orchestrators::slurm {

struct ExportedImage {
  std::string id;
  std::string platform;    ///< May be empty.
  std::string run, owner;  ///< Labels of the container that the files are read from.
};

/// Writes all files of the image as a tar, with pipe's mount point, from a container that is never
/// started. Removes the container, also one that a dead driver of the run has left.
async::Task<> export_image(docker::EngineApi& engine, const ExportedImage& image,
                           const std::filesystem::path& tar, core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::slurm
