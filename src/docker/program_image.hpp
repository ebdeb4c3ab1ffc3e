/// @file
/// A C++ program in an image: executable, shared libraries and loader as one layer on top of an
/// environment. The layer does not depend on the environment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/single_flight.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_builder.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns the layer's files, sorted, with their paths in the image without the leading slash: the
/// executable, its loader and libraries, and the libraries that its C library loads by itself (name
/// services and the unwinder). Throws EnvironmentError if a file is missing.
std::vector<ContextFile> program_files(const Program& program);

/// Returns the command that starts the program in a container, through the program's own loader,
/// which searches libraries first in the layer, and then in the image's folders, where the
/// libraries of an NVIDIA driver are mounted.
/// @param image_variables the image's variables, `NAME=VALUE`; LD_LIBRARY_PATH is searched, too
std::vector<std::string> program_words(const Program& program,
                                       const std::vector<std::string>& image_variables);

/// Images that contain a program, each built once. Each run has one object.
class ProgramImages {
 public:
  /// @param run_id label of built images
  ProgramImages(asio::io_context& loop, EngineApi& engine, std::string run_id);

  /// Returns the status of the environment's image with the program on top. An empty image_id means
  /// that this image, or the environment's, does not exist yet.
  async::Task<ImageStatus> status(const StepSpec& step, ImageStatus environment);
  /// Builds the image if the engine does not have it, and returns its status.
  async::Task<ImageStatus> ensure(const StepSpec& step, ImageStatus environment, EventSink& events,
                                  core::CancelSource& cancel);

 private:
  const std::string& digest_of(const Program& program);
  std::string key_of(const StepSpec& step, const ImageStatus& environment);
  async::Task<ImageStatus> look_up(const StepSpec& step, ImageStatus environment);
  async::Task<ImageStatus> build(const StepSpec& step, ImageStatus environment, ImageStatus status,
                                 EventSink& events, core::CancelSource& cancel);

  EngineApi& engine_;
  std::string run_id_;
  async::SingleFlight<ImageStatus> made_;  // Keyed by key_of().
  std::map<const Program*, std::string> digests_;
};

}  // namespace pipeline::docker
