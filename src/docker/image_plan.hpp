/// @file
/// What an image is made of, before anything is asked of an engine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

#include "archive/tar_stream.hpp"

namespace pipeline::docker {

using archive::ContextFile;

struct BuilderOptions {
  std::filesystem::path root;          ///< The pipeline's folder.
  std::filesystem::path template_dir;  ///< Overrides the embedded templates; empty: none.
  std::string run_id;  ///< Label of what is built; with prevent_build_reuse a part of the digest.
};

/// The named parts of an environment, in words: what tells why one image is not another. Lists are
/// sorted; nothing secret.
using PlanParts = std::map<std::string, std::vector<std::string>>;

/// Everything that determines an image, but the parent's id.
struct ImagePlan {
  bool build = true;  ///< false: the parent is used as it is (skip_build, or nothing to add).
  std::string
      parent_image;  ///< Reference; with `dockerfile`, empty: it is the image made of `parent`.
  std::string dockerfile;          ///< Text of the generated Dockerfile, or of the user's own.
  std::string classic_dockerfile;  ///< The same for an engine without BuildKit; empty: `dockerfile`
                                   ///< serves both.
  std::vector<ContextFile> context;    ///< What it uses, sorted by path.
  std::vector<ContextFile> host_only;  ///< The host's CA and package index configuration: mounted
                                       ///< during the build, no part of the digest and of no layer.
  std::unique_ptr<ImagePlan> parent;   ///< The user's own Dockerfile, built first.
  std::vector<std::string> images_used;  ///< What must be pulled before: the parent, or all that
                                         ///< the user's own Dockerfile names.
  std::string platform;                  ///< `os/arch[/variant]`, or empty.
  BuildOptions options;
  std::string repository = "pipe";  ///< Of the image made.
  std::string tag;                  ///< A second tag, besides the digest; may be empty.
  std::string run_id;               ///< With prevent_build_reuse, else empty.
  PlanParts parts;
  std::vector<std::string> notices;  ///< What the user should know.
  bool own = false;                  ///< The user's own Dockerfile.
  bool resolves = false;  ///< Python packages are chosen when it is built: see docker::resolves().
};

/// The plan for one step's settings; no engine needed. Throws InputError or EnvironmentError (a
/// file is missing).
/// @param parent_user USER of the parent image, if that is known: put back after the installs,
/// which need root
ImagePlan plan_image(const StepSpec& step, const BuilderOptions& options,
                     const std::string& parent_user = {});

/// Hex digest over the plan and the ids of the images that it uses. Throws EnvironmentError when a
/// file cannot be read.
std::string plan_digest(const ImagePlan& plan, const std::vector<std::string>& image_ids);

}  // namespace pipeline::docker
