/// @file
/// Parent images in archives on this machine. Their identity is known without an engine; the engine
/// loads each archive once, under a name of `pipe`'s own.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "async/single_flight.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_builder.hpp"

namespace pipeline::docker {

/// Stands for the parent's name in a generated Dockerfile, which then does not depend on the
/// archive's path.
inline constexpr const char* archived_parent_name = "pipe:archived-parent";

/// Returns true if the plan's parent image is an archive.
bool has_archived_parent(const ImagePlan& plan);

/// Returns the name under which the engine keeps the loaded image: `pipe:parent-` and the beginning
/// of its identity. @param identity as image_identity() returns it
std::string archived_reference(const ImagePlan& plan, const std::string& identity);

/// Returns true for a name of this form.
bool is_archived_reference(std::string_view name);

class ArchivedParents {
 public:
  /// All arguments must outlive this object.
  ArchivedParents(asio::io_context& loop, EngineApi& engine, const BuilderOptions& options)
      : engine_(engine), options_(options), loads_(loop) {}

  /// Returns the plan's parent image, which the first call reads. Throws EnvironmentError.
  const ArchivedImage& image(const ImagePlan& plan);
  /// Returns archived_reference() of the plan's parent image.
  std::string reference(const ImagePlan& plan);

  /// Returns the status of a plan that uses the parent image unchanged.
  async::Task<ImageStatus> status(const ImagePlan& plan);
  /// Loads the image unless the engine has it.
  async::Task<> ensure(const ImagePlan& plan, std::string step, EventSink& events,
                       core::CancelSource& cancel);

 private:
  std::string identity(const ImagePlan& plan);
  /// Returns the identifier of the image if the engine has it, else an empty text.
  async::Task<std::string> image_id(const ImagePlan& plan);
  async::Task<std::string> load(const ImagePlan& plan, core::CancelSource& cancel);

  EngineApi& engine_;
  const BuilderOptions& options_;
  std::map<std::string, ArchivedImage> images_;  ///< Keyed by parent image and platform.
  async::SingleFlight<std::string> loads_;       ///< Keyed by reference().
};

}  // namespace pipeline::docker
