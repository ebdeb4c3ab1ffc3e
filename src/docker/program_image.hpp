/// @file
/// A C++ program in an image: executable, shared libraries and loader as one layer on top of an
/// environment, which it needs nothing of.
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

/// The files of the layer, sorted, under the paths that they have in the image, without the leading
/// slash. Besides what the program names, what its C library loads by itself: name services and the
/// unwinder. Throws EnvironmentError if one is missing.
std::vector<ContextFile> program_files(const Program& program);

/// The words that start the program in a container: its own loader, which looks for libraries in
/// the layer first and then where the image has its own, so that an NVIDIA driver's are found,
/// which are mounted there.
/// @param image_variables of the image, `NAME=VALUE`: its LD_LIBRARY_PATH is searched too
std::vector<std::string> program_words(const Program& program,
                                       const std::vector<std::string>& image_variables);

/// Images with a program in them, each made once. One per run.
class ProgramImages {
 public:
  /// @param run_id label of what is built
  ProgramImages(asio::io_context& loop, EngineApi& engine, std::string run_id);

  /// The environment with the program on top. Empty image_id: not made yet, or the environment is
  /// not.
  async::Task<ImageStatus> status(const StepSpec& step, ImageStatus environment);
  async::Task<ImageStatus> ensure(const StepSpec& step, ImageStatus environment, EventSink& events,
                                  core::CancelSource& cancel);

 private:
  const std::string& digest_of(const Program& program);
  std::string key_of(const StepSpec& step, const ImageStatus& environment);
  async::Task<ImageStatus> look(const StepSpec& step, ImageStatus environment);
  async::Task<ImageStatus> build(const StepSpec& step, ImageStatus environment, ImageStatus status,
                                 EventSink& events, core::CancelSource& cancel);

  EngineApi& engine_;
  std::string run_id_;
  async::SingleFlight<ImageStatus> made_;  // By key_of().
  std::map<const Program*, std::string> digests_;
};

}  // namespace pipeline::docker
