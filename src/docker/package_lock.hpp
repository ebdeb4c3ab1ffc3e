/// @file
/// The Python packages of a step's settings in the lock file: looked up, and resolved if missing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/single_flight.hpp"
#include "docker/image_builder.hpp"
#include "docker/image_plan.hpp"
#include "docker/package_resolver.hpp"
#include "lockfile/lock_file.hpp"

namespace pipeline::docker {

/// Returns the step without its Python packages. Its image, the parent with the Debian packages, is
/// the one against which the Python packages are resolved, and on which they are installed.
StepSpec without_packages(const StepSpec& step);

/// Returns the lines by which the lock file identifies these requirements, without credentials. The
/// lines contain digests of local files, so that a wheel that was built again is locked again.
/// @param root folder of relative paths in requirements
std::vector<std::string> locked_lines(const python_packages::PythonRequirements& python,
                                      const std::filesystem::path& root);

/// Returns the reason why the requirements cannot be locked on any image; else an empty text.
std::string obstacle_to_lock(const python_packages::PythonRequirements& python);

/// Returns the notice for requirements that are not locked.
std::string unlocked_notice(const std::string& reason);

/// A function that resolves requirements and returns the packages: keeps `preferred` versions as
/// far as possible, reads the index again if `refresh`, and passes on lines of progress.
using Resolve = std::function<async::Task<lockfile::LockedEnvironment>(
    lockfile::LockedEnvironment preferred, bool refresh, std::function<void(const std::string&)>)>;

/// Resolves a request with events for the user, and stores the result in the lock file. Throws as
/// `resolve` does.
/// @param name names the resolution in events: `packages for python:3.12-slim`
async::Task<> lock_packages(lockfile::LockFile& file, lockfile::LockRequest request,
                            std::string name, std::string step, Resolve resolve, EventSink& events,
                            core::CancelSource& cancel);

/// Finds the packages of an image's plan in the lock file, and adds missing ones.
class PackageLock {
 public:
  /// @param resolver resolves requirements against an image that the engine has
  PackageLock(asio::io_context& loop, Resolver resolver, const BuilderOptions& options)
      : resolver_(std::move(resolver)), options_(options), resolutions_(loop) {}

  /// Returns true if the plan's requirements are locked before its image is built. If they are
  /// resolved by the build instead because they cannot be locked, adds a notice to the plan.
  bool covers(ImagePlan& plan) const;
  /// Returns the packages of the plan's requirements, or null if they have to be resolved. Throws
  /// InputError: see LockFile::find().
  Locked find(const ImagePlan& plan, const std::string& parent_digest) const;
  /// Resolves the plan's requirements and writes the lock file; equal ones are resolved once. If
  /// the image's Python cannot resolve, covers() is false from now on.
  /// @param parent the image that the packages are installed on
  async::Task<> resolve(const ImagePlan& plan, ImageStatus parent, const std::string& step,
                        EventSink& events, core::CancelSource& cancel);

 private:
  std::string key_of(const ImagePlan& plan) const;
  lockfile::LockRequest request_of(const ImagePlan& plan, const std::string& parent_digest) const;
  async::Task<bool> resolve_once(const ImagePlan& plan, lockfile::LockRequest request,
                                 std::string image_id, std::string step, EventSink& events,
                                 core::CancelSource& cancel);

  const Resolver resolver_;
  const BuilderOptions& options_;
  async::SingleFlight<bool> resolutions_;
  /// Reasons why requirements cannot be resolved, keyed by key_of().
  std::map<std::string, std::string> unable_;
};

}  // namespace pipeline::docker
