/// @file
/// The part of the port that describes the environments that steps run in, and makes them.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators {

/// The environment of a step, as far as it is known without building it.
struct Environment {
  /// Digest over everything that determines the environment; a part of the cache key. Empty if it
  /// is known only after prepare().
  std::string id;
  /// For messages: the image's reference or `Python 3.11.2, venv 1a2b3c`.
  std::string description;
  bool ready = false;  ///< True if nothing has to be built or pulled.
  /// If not ready: what will be built, and why (`new`, `parent image missing`, `requirements
  /// changed`).
  std::string reason;
  /// If ready: a one-line text with which matches() can later check cheaply that the environment is
  /// still the same.
  std::string fingerprint;
  /// Versions of its Python packages were chosen when it was made, so that machines can have
  /// different versions under the same id.
  bool resolves = false;
  /// The Python requirements as the step asks for them, where a lock file chooses their versions.
  std::vector<std::string> requirements = {};
  std::vector<std::string> notices;  ///< Notices for the user, such as settings that this
                                     ///< orchestrator does not support; each is shown once a run.
  auto operator<=>(const Environment&) const = default;
};

/// Used only from the loop's thread.
class EnvironmentProvider {
 public:
  /// Returns what the step would run in, without side effects. Equal for equal settings.
  virtual async::Task<Environment> environment(const StepSpec& step) = 0;

  /// Returns true if a step whose environment had this `fingerprint` would get an equal one now.
  /// May return false if in doubt.
  virtual async::Task<bool> matches(std::string fingerprint) {
    (void)fingerprint;
    co_return false;
  }

  /// Returns a digest over the Python packages and versions in a ready environment with `resolves`.
  virtual async::Task<std::string> packages(const StepSpec& step) {
    (void)step;
    co_return std::string();
  }

  /// Makes the environment ready: builds, pulls. Idempotent; equal environments are made once,
  /// different ones concurrently. Throws BuildError or EnvironmentError; when cancelled, returns
  /// early with EnvironmentError.
  virtual async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                           core::CancelSource& cancel) = 0;

  /// Resolves the step's Python requirements into the lock file, unless it has them already. Makes
  /// only what the resolution needs. Throws as prepare() does.
  virtual async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) {
    (void)step, (void)events, (void)cancel;
    co_return;
  }

  virtual ~EnvironmentProvider() = default;
};

}  // namespace pipeline::orchestrators
