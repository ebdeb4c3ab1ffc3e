/// @file
/// Resolves Python requirements against an image, in a short-lived container of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_plan.hpp"
#include "lockfile/locked_environment.hpp"

namespace pipeline::docker {

/// Volume of the engine in which downloaded installers (uv or pip) are kept, under their hashes.
/// The volume may be removed at any time.
inline constexpr std::string_view cache_volume = "pipe-lock-cache";

/// Thrown if the image's Python or installer can install the requirements, but cannot resolve them
/// beforehand.
struct CannotResolve : core::EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

/// The requirements to resolve, and the image to resolve them against.
struct Resolution {
  const ImagePlan& plan;  ///< Has the requirements.
  std::string image_id;   ///< Id of the image on which the packages will be installed.
  /// Versions that are kept as far as the requirements allow.
  lockfile::LockedEnvironment preferred;
  bool refresh = false;   ///< Data from the index is read again, even if it is cached.
  StringMap labels = {};  ///< Labels by which the container is found if this process dies.
  std::filesystem::path template_dir = {};
  std::filesystem::path root = {};   ///< Folder of relative paths in the requirements.
  std::filesystem::path state = {};  ///< The state folder, which is left out of local projects.
};

/// Resolves requirements, and calls the second parameter with lines of progress. Throws as
/// resolve_packages() does.
using Resolver = std::function<async::Task<lockfile::LockedEnvironment>(
    Resolution, std::function<void(const std::string&)>, core::CancelSource&)>;

/// Returns the files of a resolution. The caller writes the files to a folder FOLDER that is
/// writable in the container, and executes `/bin/sh FOLDER/lock/resolve.sh uv|pip` there.
std::vector<ContextFile> resolution_files(const Resolution& resolution);

/// Returns the packages that the resolver has found. Throws as resolve_packages() does.
/// @param printed the resolver's output
lockfile::LockedEnvironment finished_resolution(const ImagePlan& plan, bool succeeded,
                                                const std::string& printed);

/// Returns the first line of progress: `resolving 2 requirements with uv`.
std::string resolution_title(const ImagePlan& plan);

/// Returns the error of a failed script of templates/. The script's reason is in its output, after
/// `pipe: error: `.
/// @param reason used if the script printed no reason
core::BuildError failed_script(const std::string& what, std::string reason,
                               const std::string& printed);

/// Returns the packages that an installation would add to the image, and its Python. Throws
/// BuildError with the installer's output, and CannotResolve. A downloaded installer is kept in
/// `cache_volume`.
async::Task<lockfile::LockedEnvironment> resolve_packages(
    EngineApi& engine, Resolution resolution, std::function<void(const std::string&)> on_line,
    core::CancelSource& cancel);

/// Returns the request of a resolution as JSON, for resolve.py of templates/lock, which takes the
/// path of uv from PIPE_UV and resolves with pip if there is none.
/// @param refresh  data from the index is read again, even if it is cached
/// @param is_empty the packages are installed into an empty environment, whatever this Python has
/// @param root     the folder to which relative paths in the result refer; empty: the resolver's
/// working folder, or the target of the link `root` in it, if there is one
std::string resolution_request(const std::vector<std::string>& arguments,
                               const lockfile::LockedEnvironment& preferred, bool refresh,
                               bool is_empty, const std::filesystem::path& root = {});

/// Returns the progress in a line that resolve.py printed: `12 packages so far, now numpy 1.26.4`.
/// Empty for other lines.
std::string_view progress_of(std::string_view line);

/// Reads the output of resolve.py; nothing if resolve.py failed. Throws CannotResolve if the output
/// says so, and EnvironmentError if the output is not a lock.
std::optional<lockfile::LockedEnvironment> read_resolution(const std::string& printed);

}  // namespace pipeline::docker
