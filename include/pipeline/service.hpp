/// @file
/// Services of a step: containers that run beside it while it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pipeline/duration.hpp>
#include <pipeline/execution.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {

/// How a service shows that it can be used. Exactly one of `port` and `command` is set.
struct ServiceReady {
  /// The service accepts connections on this port; 0: not set.
  unsigned port = 0;
  /// Path that the service answers on that port by HTTP with a status below 400, such as `/health`;
  /// empty: a connection is enough.
  std::string http = {};
  /// Command that ends with 0 in the service's container.
  std::vector<std::string> command = {};
  /// Limit for the time from the container's start. Default: 2 min.
  std::optional<Duration> timeout = {};
};

/// Limits of a service's container.
struct ServiceResources {
  /// CPUs; greater than 0, fractions allowed.
  std::optional<double> cpu_count = {};
  /// Hard limit, bytes.
  std::optional<Bytes> memory = {};
  /// /dev/shm, bytes.
  std::optional<Bytes> shm_size = {};
};

/// A container that runs beside a step, such as a database or a model server; the step reaches the
/// service by its name. The service sees the step's inputs and code at the step's own paths, and
/// the step's GPUs.
struct ServiceSpec {
  std::string image = {};
  /// Default: the image's own.
  std::vector<std::string> entrypoint = {};
  /// In place of the image's own command: arguments of its entry point, if it has one.
  std::vector<std::string> command = {};
  /// A variable without a value has that of the step's variable or secret of this name.
  StepEnvironment environment = {};
  ServiceReady ready = {};
  ServiceResources resources = {};
};

}  // namespace pipeline
