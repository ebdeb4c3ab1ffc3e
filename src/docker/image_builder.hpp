/// @file
/// Images for steps: what an image is made of (plan), whether the engine has it, and making it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// A file of the build context: its path there, and its content or where that is.
struct ContextFile {
  std::string path;
  std::optional<std::string> content;  ///< Generated; else read from `source`.
  std::filesystem::path source;
  std::uint64_t bytes = 0;
  unsigned mode = 0644;
};

/// Everything that determines an image, before anything is asked of an engine but the parent's id.
struct ImagePlan {
  bool build = true;                 ///< false: the parent is used as it is (skip_build, or nothing to add).
  std::string parent_image;          ///< Reference; with `dockerfile`, the name of the image built from it.
  std::string dockerfile;            ///< Text of the generated Dockerfile.
  std::vector<ContextFile> context;  ///< What it uses, sorted; the host's CA and package index configuration are marked host_only below.
  std::vector<ContextFile> host_only;  ///< Mounted during the build, no part of the digest and of no layer.
  std::unique_ptr<ImagePlan> parent;  ///< The user's own Dockerfile, built first.
};

struct BuilderOptions {
  std::filesystem::path root;          ///< The pipeline's folder.
  std::filesystem::path template_dir;  ///< Overrides the embedded templates; empty: none.
  std::string run_id;                  ///< Label of what is built; with prevent_build_reuse a part of the digest.
};

/// The plan for one step's settings; no engine needed. Throws InputError or EnvironmentError (a file is missing).
ImagePlan plan_image(const StepSpec& step, const BuilderOptions& options);

struct ImageStatus {
  std::string digest;        ///< Over the plan and the parent's id, hex; empty while the parent is not there.
  std::string reference;     ///< `pipe:env-<digest>`, or the parent's reference.
  std::string image_id;      ///< `sha256:...`, if the engine has it.
  std::string reason;        ///< If it has not: what will be done and why.
};

/// One per run. Equal environments are looked up and built once, different ones side by side.
class ImageBuilder {
 public:
  ImageBuilder(asio::io_context& loop, EngineApi& engine, BuilderOptions options);
  ~ImageBuilder();
  /// Without side effect.
  Task<ImageStatus> status(const StepSpec& step);
  /// Pulls and builds what is missing. Throws BuildError (failing line, last output, what to try), EnvironmentError.
  Task<ImageStatus> ensure(const StepSpec& step, EventSink& events, CancelSource& cancel);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::docker
