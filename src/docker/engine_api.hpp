/// @file
/// Docker Engine API (1.40 to 1.50) as coroutines. Podman implements the same API.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "docker/engine_info.hpp"
#include "docker/transfer_progress.hpp"
#include "net/connection.hpp"
#include "net/http.hpp"

namespace pipeline::docker {

/// The address of an engine, and the setting that it comes from.
struct Endpoint {
  std::string url;      ///< `unix:///var/run/docker.sock`, `tcp://host:2376`, `ssh://user@host`.
  std::string origin;   ///< `DOCKER_HOST`, `docker context 'x'`, `default`.
  net::TlsOptions tls;  ///< From DOCKER_TLS_VERIFY, DOCKER_CERT_PATH or the context.
  bool use_tls = false;
  std::string certificates;  ///< With TLS, the folder in which its files were searched.

  bool is_of_this_machine() const { return url.starts_with("unix://"); }
};
/// Returns DOCKER_HOST, else the current docker context, else the default socket.
Endpoint find_endpoint();
/// Returns an endpoint that a profile names. @param certificates folder of its TLS files; empty:
/// DOCKER_TLS_VERIFY, DOCKER_TLS and DOCKER_CERT_PATH hold for `tcp://`
Endpoint endpoint_at(const std::string& url, const std::string& certificates);

/// Time limits of an engine's responses, and the retries of a call while the engine restarts.
struct EngineLimits {
  /// Limit for the response to a call that is not a stream, and for the headers of a stream that
  /// opens at once.
  std::chrono::milliseconds answer{60'000};
  /// Interval of the checks that the engine of an open stream still responds.
  std::chrono::milliseconds check{15'000};
  async::RetryPolicy retries{.first_pause = std::chrono::milliseconds(250),
                             .max_pause = std::chrono::milliseconds(10'000),
                             .max_tries = 14};
};
/// Returns the defaults, with the limit of responses from PIPE_ENGINE_TIMEOUT (`30s`, `5m`).
EngineLimits limits_from_environment();

/// Thrown if the engine responded with an error.
class EngineError : public core::EnvironmentError {
 public:
  EngineError(long status, const std::string& message, std::vector<std::string> advice = {})
      : core::EnvironmentError(message, std::move(advice)), status_(status) {}
  long status() const { return status_; }
  /// Returns true if the engine knows no container of this name or id.
  bool is_no_such_container() const {
    return std::string_view(what()).find("No such container") != std::string_view::npos;
  }

 private:
  long status_;
};

struct ContainerState {
  bool running = false;
  bool started = false;  ///< The container was started at some time; it may have ended since.
  int exit_code = 0;
  bool oom_killed = false;
  std::string error;  ///< The engine's message if the container could not be started; else empty.
};

/// Returns true for a 429 or 5xx after which a retry can succeed. @param message the engine's
/// message: a 500 with a known permanent cause is not retryable
bool is_retryable(long status, std::string_view message);

class EngineApi {
 public:
  /// Connects on the first call only. `loop` must outlive this object. In addition to the errors
  /// documented with each call, all calls throw EnvironmentError if the engine cannot be reached.
  /// Calls that are not streams are retried within the limits when the engine is lost or responds
  /// with 429 or 5xx; then TransportError or EngineError is thrown.
  /// @param run_cancel cancels the calls that prepare a run and take no CancelSource: info(),
  /// system_info(), disk_usage() and inspect_image(); must outlive the loop. May be null
  EngineApi(asio::io_context& loop, Endpoint endpoint,
            EngineLimits limits = limits_from_environment(),
            core::CancelSource* run_cancel = nullptr);
  ~EngineApi();
  const Endpoint& endpoint() const;
  const EngineLimits& limits() const;

  /// Returns the version and features, negotiated once. Throws EnvironmentError, with the endpoint
  /// and with advice how to start an engine.
  async::Task<const EngineInfo*> info();
  async::Task<nlohmann::json> system_info();  ///< GET /info.
  async::Task<nlohmann::json> disk_usage();   ///< GET /system/df.

  /// Sends one JSON call on the negotiated version's path. `path` has its query, as in
  /// `/containers/json?all=1`; a null `body` is not sent. Throws EngineError for a status of 400
  /// and above.
  async::Task<nlohmann::json> call(std::string method, std::string path,
                                   nlohmann::json body = nullptr);
  /// Opens another connection, over which the caller itself speaks HTTP (raw_stream.hpp).
  std::unique_ptr<net::Connection> open_connection();

  /// Returns the engine's description of an image, or nothing if the engine does not have the
  /// image. If the engine keeps the image for several platforms, the description is that for
  /// `platform` (`OS/ARCHITECTURE[/VARIANT]`), or, before API 1.49, that for the engine's own
  /// machine. `Id` names the image for all platforms.
  async::Task<std::optional<nlohmann::json>> inspect_image(std::string reference,
                                                           std::string platform = {});
  /// Pulls an image; progress lines go to `on_line`.
  /// @param registry_auth value of the header X-Registry-Auth (RegistryAuth::header)
  async::Task<> pull_image(std::string reference, std::string platform, std::string registry_auth,
                           std::function<void(std::string_view)> on_line,
                           core::CancelSource& cancel);
  /// Pushes the image's parts that the registry lacks. A cancelled push leaves no image there.
  async::Task<Pushed> push_image(std::string reference, std::string registry_auth,
                                 std::function<void(std::string_view)> on_line,
                                 core::CancelSource& cancel);
  /// Asks the registry, through the engine, for the digest of the manifest with this tag or digest;
  /// nothing if there is none.
  async::Task<std::optional<std::string>> registry_digest(std::string reference,
                                                          std::string registry_auth,
                                                          core::CancelSource& cancel);
  async::Task<> tag_image(std::string reference, std::string repository, std::string tag);
  async::Task<> remove_image(std::string reference);
  /// Sends POST /build with the tar that `context` produces; `on_message` receives each JSON line
  /// of the response.
  async::Task<> build(std::string query, std::string registry_config, net::BodySource context,
                      std::function<void(const nlohmann::json&)> on_message,
                      core::CancelSource& cancel);
  /// Sends POST /images/load with the tar; `on_message` receives each JSON line of the response,
  /// also the engine's errors.
  /// @param what names the image in errors
  async::Task<> load_image(std::string what, net::BodySource tar,
                           std::function<void(const nlohmann::json&)> on_message,
                           core::CancelSource& cancel);

  /// Creates a container and returns its identifier. If the response of an earlier try was lost,
  /// the container of that try is returned. @param retry_cancel ends the retries
  async::Task<std::string> create_container(std::string name, nlohmann::json body,
                                            std::string platform = {},
                                            core::CancelSource* retry_cancel = nullptr);
  /// Starts the container once, even if the call is retried. @param retry_cancel ends the retries
  async::Task<> start_container(std::string id, core::CancelSource* retry_cancel = nullptr);
  /// Waits for the container's end and returns its exit code.
  /// @param condition not-running, next-exit (called before the start) or removed
  /// @param on_listening called once the engine is waiting
  async::Task<int> wait_container(std::string id, std::string condition = "not-running",
                                  std::function<void()> on_listening = {},
                                  core::CancelSource* cancel = nullptr);
  async::Task<ContainerState> inspect_container(std::string id,
                                                core::CancelSource* retry_cancel = nullptr,
                                                core::CancelSource* cancel = nullptr);
  /// Returns the resource usage of the container so far (`GET /containers/ID/stats`); all numbers
  /// of an ended container are zero. @param cancel ends the wait for the response
  async::Task<nlohmann::json> container_stats(std::string id, core::CancelSource& cancel);
  /// Returns true if the container ended by itself: the engine, since it was last started, saw the
  /// end, and did not stop or kill the container. Always true for Podman, whose containers do not
  /// depend on a daemon.
  async::Task<bool> saw_own_end(std::string id, core::CancelSource* retry_cancel = nullptr);
  /// Returns true if the container's file system has this file. The container need not have been
  /// started; files in its mounts are then found by Podman only.
  async::Task<bool> has_file(std::string id, std::string path);
  /// Streams the container's output from now to its end, for containers without a TTY.
  /// `on_listening` is called once no output can be missed; start the container then.
  async::Task<> attach_container(std::string id,
                                 std::function<void(bool is_stderr, std::string_view)> on_bytes,
                                 std::function<void()> on_listening = {},
                                 core::CancelSource* cancel = nullptr);
  /// Streams both outputs from the start until the container ends, for containers without a TTY.
  async::Task<> follow_logs(std::string id,
                            std::function<void(bool is_stderr, std::string_view)> on_bytes,
                            core::CancelSource* cancel = nullptr);
  /// Runs a program beside the container's command, with its GPUs and variables, and streams both
  /// outputs. Returns the exit code when the program has ended, at the latest with the container.
  async::Task<int> run_in_container(std::string id, std::vector<std::string> command,
                                    std::function<void(bool is_stderr, std::string_view)> on_bytes,
                                    core::CancelSource* cancel = nullptr);
  /// Unpacks a tar in a folder of the container, which need not be running. `tar` is called for the
  /// content, and again if a connection fails.
  async::Task<> put_archive(std::string id, std::string folder,
                            std::function<net::BodySource()> tar, core::CancelSource& cancel);
  /// Streams the tar of the file or folder at `path`, named after its last component. Throws
  /// EngineError 404 if the path does not exist.
  async::Task<> get_archive(std::string id, std::string path,
                            std::function<void(std::string_view)> on_bytes,
                            core::CancelSource& cancel);
  /// Sends SIGTERM, and SIGKILL after the grace period. A container that is not running is not an
  /// error.
  async::Task<> stop_container(std::string id, int grace_seconds);
  async::Task<> kill_container(std::string id, std::string signal);
  /// Removes a container and its anonymous volumes; kills a running one first. A missing container
  /// is not an error.
  async::Task<> remove_container(std::string id);
  /// Returns the containers with all of these labels (`key` or `key=value`), including ended ones.
  async::Task<std::vector<nlohmann::json>> list_containers(std::vector<std::string> labels);

 private:
  /// Returns the response that created the container with this name and these labels, if an earlier
  /// try has created it and nobody has started it.
  async::Task<std::optional<net::Response>> find_created(std::string name, nlohmann::json labels);

  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::docker
