/// @file
/// Parent images that `pipe` itself pulls from registries, or reads out of archives, if no engine
/// answers. A step's environment has the same key as with an engine, because an image is identified
/// by its content.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "docker/image_plan.hpp"
#include "oci/client.hpp"
#include "oci/image_archive.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process_reaper.hpp"

namespace pipeline::orchestrators::slurm {

/// The parent image of a step.
struct PulledImage {
  std::string name;            ///< `NAME@sha256:...`, or the name of its archive.
  nlohmann::json parent;       ///< See oci::describe().
  std::filesystem::path file;  ///< Its SquashFS file, which may be missing.
  StringMap variables;         ///< The image's own.
};

class PulledImages {
 public:
  PulledImages(asio::io_context& loop, processes::ProcessReaper& reaper,
               const OrchestratorOptions& options);

  /// Returns the plan of the step's image. If a setting of the step needs an engine, throws
  /// EnvironmentError that names the setting.
  docker::ImagePlan plan(const StepSpec& step) const;

  /// Returns the plan's parent image as record() has recorded it, or as its archive has it; nothing
  /// if it was not recorded. Contacts no registry.
  std::optional<PulledImage> find(const StepSpec& step, const docker::ImagePlan& plan) const;

  /// Looks the step's parent image up in its registry. Throws as plan() does.
  async::Task<PulledImage> look_up(const StepSpec& step, core::CancelSource& cancel);

  /// Downloads the image's layers, and writes its files as a tar.
  async::Task<> write_files(PulledImage image, std::string platform, std::filesystem::path tar,
                            const std::function<void(std::string)>& on_line,
                            core::CancelSource& cancel);

  /// Records the image on disk for find().
  static void record(const StepSpec& step, const PulledImage& image);

  /// Returns a one-line text for matches(); empty if more than the parent image, settings and the
  /// lock file determine the step's image.
  static std::string fingerprint_of(const StepSpec& step);
  /// Returns true if find() knows the same parent image as when the text was made.
  static bool matches(const std::string& fingerprint);

  /// Returns notices for the user on logins that could not be read.
  const std::set<std::string>& notices() const { return client_.notices(); }

 private:
  PulledImage image_of(const StepSpec& step, std::string name, nlohmann::json parent) const;
  /// @param platform empty: that of this machine
  const oci::ArchivedImage& archived_image(const std::string& parent, std::string platform) const;
  /// Returns the image of a registry or an archive.
  async::Task<oci::Image> contents_of(std::string name, std::string platform,
                                      core::CancelSource& cancel);
  /// Copies a layer of an image to the file `to`, compressed as it is stored.
  async::Task<> fetch_layer(std::string name, std::string platform, std::size_t layer,
                            oci::Blob blob, std::filesystem::path to, core::CancelSource& cancel);
  async::Task<> unpack(const oci::Blob& layer, std::filesystem::path packed,
                       std::filesystem::path unpacked, core::CancelSource& cancel);

  processes::ProcessReaper& reaper_;
  const docker::BuilderOptions options_;
  oci::Client client_;
  /// The images in archives, keyed by parent image and platform.
  mutable std::map<std::string, std::optional<oci::ArchivedImage>> archived_;
  asio::thread_pool pool_{1};  ///< Computes digests, and writes.
};

}  // namespace pipeline::orchestrators::slurm
