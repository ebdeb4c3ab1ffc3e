/// @file
/// The plan of an image, made before any request to an engine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/spec.hpp>

#include "async/task.hpp"
#include "file_tree/tar_stream.hpp"
#include "lockfile/locked_environment.hpp"
#include "net/http.hpp"
#include "python_packages/requirements.hpp"

namespace pipeline::lockfile {
class LockFile;
}

namespace pipeline::docker {

using file_tree::ContextFile;
using file_tree::text_file;

/// The locked packages of a step's environment; null if the build resolves its requirements.
using Locked = std::shared_ptr<const lockfile::LockedEnvironment>;

/// The packages of each layer, the first one below all others.
using PackageLayers = std::vector<std::vector<lockfile::LockedPackage>>;

/// An image in an archive on this machine.
struct ArchivedImage {
  nlohmann::json description;  ///< As an engine describes it, for image_identity().
  /// Returns the tar for POST /images/load that gives the image this name.
  std::function<net::BodySource(const std::string& name)> tar;
};

struct BuilderOptions {
  std::filesystem::path root;          ///< The pipeline's folder.
  std::filesystem::path template_dir;  ///< Overrides the embedded templates; empty: none.
  std::string run_id;  ///< Label of built images; with prevent_build_reuse also part of the digest.
  /// Must outlive the builder. Null: the builds resolve the requirements.
  lockfile::LockFile* lock = nullptr;
  std::string owner;  ///< Label of containers that resolve requirements: see owner_of().
  std::filesystem::path state = {};  ///< The state folder, which is not part of any context.
  /// Reads the archive that a parent image names. `platform` may be empty. Null: archives are not
  /// supported.
  std::function<ArchivedImage(const std::string& parent_image, const std::string& platform)>
      read_archive = {};
};

/// The named parts of an environment as texts, used to explain why two images differ. Lists are
/// sorted; no secrets.
using PlanParts = std::map<std::string, std::vector<std::string>>;

/// Everything that determines an image, except the parent's id.
struct ImagePlan {
  bool build = true;  ///< False if the parent is used unchanged (skip_build, or nothing to add).
  /// Reference of the parent image; empty if the parent is the image built from `parent`.
  std::string parent_image;
  std::string dockerfile;  ///< Text of the generated Dockerfile, or of the user's own.
  std::string dockerfile_path = "Dockerfile";  ///< Path of the Dockerfile in the context.
  /// The Dockerfile for an engine without BuildKit; if empty, `dockerfile` is used.
  std::string classic_dockerfile;
  std::vector<ContextFile> context;    ///< The files of the build context, sorted by path.
  std::vector<ContextFile> host_only;  ///< The host's CA and package index configuration: mounted
                                       ///< during the build; not part of the digest nor of a layer.
  std::unique_ptr<ImagePlan> parent;   ///< The plan of the user's own Dockerfile, built first.
  std::vector<std::string> images_used;  ///< Images to pull first: the parent, or all that the
                                         ///< user's own Dockerfile names.
  std::string platform;                  ///< `os/arch[/variant]`, or empty.
  BuildOptions options;
  std::string repository = "pipe";  ///< Repository of the built image.
  std::string tag;                  ///< A second tag, besides the digest; may be empty.
  std::string run_id;               ///< Set with prevent_build_reuse only: part of the digest.
  PlanParts parts;
  PackageLayers layers;              ///< The locked packages of each layer.
  std::vector<std::string> notices;  ///< Notices for the user.
  bool for_own_dockerfile = false;   ///< The plan is for the user's own Dockerfile.
  python_packages::PythonRequirements python;
  bool resolves = false;  ///< The build chooses versions of Python packages: they are not locked,
                          ///< or a command of the user's installs some.
};

/// Makes the plan for one step's settings, without an engine. Throws InputError, or
/// EnvironmentError for a missing file.
/// @param parent_user USER of the parent image, which is restored after the installs; empty: root,
/// or not known yet
/// @param locked the packages to install, if the requirements are already resolved; otherwise null
ImagePlan plan_image(const StepSpec& step, const BuilderOptions& options,
                     const std::string& parent_user = {},
                     const lockfile::LockedEnvironment* locked = nullptr);

/// Returns a hex digest over the plan and the ids of the images that it uses. Throws
/// EnvironmentError if a file cannot be read.
std::string plan_digest(const ImagePlan& plan, const std::vector<std::string>& image_ids);

}  // namespace pipeline::docker
