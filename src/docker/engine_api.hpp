/// @file
/// Docker Engine API (1.40 to 1.5x), as coroutines. Podman answers the same.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "docker/transfer_progress.hpp"
#include "net/http.hpp"

namespace pipeline::docker {

/// Where an engine answers, and how that was found.
struct Endpoint {
  std::string url;      ///< `unix:///var/run/docker.sock`, `tcp://host:2376`, `ssh://user@host`.
  std::string origin;   ///< `DOCKER_HOST`, `docker context 'x'`, `default`.
  net::TlsOptions tls;  ///< DOCKER_TLS_VERIFY, DOCKER_CERT_PATH or the context's.
  bool use_tls = false;
  std::string certificates;  ///< With TLS, the folder that its files were looked for in.

  bool is_of_this_machine() const { return url.starts_with("unix://"); }
};
/// DOCKER_HOST, else the current docker context, else the default socket.
Endpoint find_endpoint();

/// How long an engine may take, and how often a call is retried while it restarts.
struct EngineLimits {
  std::chrono::milliseconds answer{60'000};  ///< For the answer to a call that is no stream.
  std::chrono::milliseconds check{
      15'000};  ///< Between two checks that the engine of an open stream still answers.
  async::RetryPolicy retries{std::chrono::milliseconds(250), std::chrono::milliseconds(10'000), 14};
};
/// The defaults, with the answer's limit that PIPE_ENGINE_TIMEOUT names (`30s`, `5m`).
EngineLimits limits_from_environment();

/// The engine answered with an error.
class EngineError : public core::EnvironmentError {
 public:
  EngineError(long status, const std::string& message, std::vector<std::string> advice = {})
      : core::EnvironmentError(message, std::move(advice)), status_(status) {}
  long status() const { return status_; }

 private:
  long status_;
};

struct EngineInfo {
  std::string version, api_version, min_api_version, os, architecture;
  bool podman = false;
  bool buildkit = false;  ///< BuildKit builds (`POST /build?version=2`); DOCKER_BUILDKIT=0 or 1
                          ///< overrides the engine's own preference.
};

struct ContainerState {
  bool running = false;
  bool started = false;  ///< At some time; it may have ended since.
  int exit_code = 0;
  bool oom_killed = false;
  std::string error;
  std::string finished_at;  ///< By the engine's clock, RFC 3339.
};

/// A 429 or 5xx after which another try may succeed. @param message what the engine said: a known
/// cause of a 500 does not pass
bool is_retryable(long status, std::string_view message);

class EngineApi {
 public:
  /// Connects on the first call only. `loop` must outlive it. Beside what each call says, all throw
  /// EnvironmentError when the engine cannot be reached. Calls that are no streams are retried,
  /// within the limits, when the engine is lost or answers 429 or 5xx; then TransportError or
  /// EngineError is thrown.
  EngineApi(asio::io_context& loop, Endpoint endpoint,
            EngineLimits limits = limits_from_environment());
  ~EngineApi();
  const Endpoint& endpoint() const;
  const EngineLimits& limits() const;

  /// Version and abilities, negotiated once. Throws EnvironmentError saying which endpoint was
  /// tried and how to start an engine.
  async::Task<const EngineInfo*> info();
  async::Task<nlohmann::json> system_info();  ///< GET /info
  async::Task<nlohmann::json> disk_usage();   ///< GET /system/df

  /// One JSON call on the negotiated version's path. `path` as `/containers/json?all=1`; `body`
  /// null for none. Throws EngineError for a status of 400 and above.
  async::Task<nlohmann::json> call(std::string method, std::string path,
                                   nlohmann::json body = nullptr);

  async::Task<std::optional<nlohmann::json>> inspect_image(
      std::string reference);  ///< Nothing if the engine lacks it.
  /// Pulls; progress lines go to `on_line`. `registry_auth` is the X-Registry-Auth header's value.
  async::Task<> pull_image(std::string reference, std::string platform, std::string registry_auth,
                           std::function<void(std::string_view)> on_line,
                           core::CancelSource& cancel);
  /// Pushes what the registry lacks of an image that the engine has under this name. A push that is
  /// cancelled leaves no image there.
  async::Task<Pushed> push_image(std::string reference, std::string registry_auth,
                                 std::function<void(std::string_view)> on_line,
                                 core::CancelSource& cancel);
  /// The digest of the manifest that the registry has under this tag or digest, which the engine
  /// asks for; nothing if it has none.
  async::Task<std::optional<std::string>> registry_digest(std::string reference,
                                                          std::string registry_auth,
                                                          core::CancelSource& cancel);
  async::Task<> tag_image(std::string reference, std::string repository, std::string tag);
  async::Task<> remove_image(std::string reference);
  /// POST /build with the tar that `context` produces; `on_message` gets each JSON line of the
  /// answer.
  async::Task<> build(std::string query, std::string registry_config, net::BodySource context,
                      std::function<void(const nlohmann::json&)> on_message,
                      core::CancelSource& cancel);

  /// Returns the identifier; the container of an earlier try, whose answer was lost, is taken.
  /// @param retries stop with this
  async::Task<std::string> create_container(std::string name, nlohmann::json body,
                                            std::string platform = {},
                                            core::CancelSource* retries = nullptr);
  /// Starts it once, however often the call is retried. @param retries stop with this
  async::Task<> start_container(std::string id, core::CancelSource* retries = nullptr);
  /// The exit code. `condition`: not-running, next-exit (ask before the start) or removed;
  /// `on_listening` is called once the engine is waiting.
  async::Task<int> wait_container(std::string id, std::string condition = "not-running",
                                  std::function<void()> on_listening = {},
                                  core::CancelSource* cancel = nullptr);
  async::Task<ContainerState> inspect_container(std::string id,
                                                core::CancelSource* retries = nullptr);
  /// True if the engine, since it was last started, saw this container end and did not stop or kill
  /// it. What Podman runs does not depend on a daemon.
  async::Task<bool> saw_own_end(std::string id, std::string finished_at,
                                core::CancelSource* retries = nullptr);
  /// Whether there is such a file in the container's file system, also before it is started; its
  /// mounts are not looked at.
  async::Task<bool> has_file(std::string id, std::string path);
  /// What the container writes from now on, to its end; for what runs without a TTY. `on_listening`
  /// is called once nothing can be missed: start it then.
  async::Task<> attach_container(std::string id,
                                 std::function<void(bool is_stderr, std::string_view)> on_bytes,
                                 std::function<void()> on_listening = {},
                                 core::CancelSource* cancel = nullptr);
  /// Follows both streams from the start until the container ends; for what ran without a TTY.
  async::Task<> follow_logs(std::string id,
                            std::function<void(bool is_stderr, std::string_view)> on_bytes,
                            core::CancelSource* cancel = nullptr);
  /// Unpacks a tar in a folder of the container, which need not run. `tar` is asked for it, again
  /// when a connection has not come about.
  async::Task<> put_archive(std::string id, std::string folder,
                            std::function<net::BodySource()> tar, core::CancelSource& cancel);
  /// The tar of what is at `path`, named after its last component. Throws EngineError, 404, if
  /// nothing is there.
  async::Task<> get_archive(std::string id, std::string path,
                            std::function<void(std::string_view)> on_bytes,
                            core::CancelSource& cancel);
  async::Task<> stop_container(
      std::string id, int grace_seconds);  ///< SIGTERM, then SIGKILL; fine for what does not run.
  async::Task<> kill_container(std::string id, std::string signal);
  async::Task<> remove_container(std::string id);  ///< Kills it first if it runs, with its
                                                   ///< anonymous volumes; fine for what is gone.
  /// Containers with all of these labels (`key` or `key=value`), also the ended ones.
  async::Task<std::vector<nlohmann::json>> list_containers(std::vector<std::string> labels);

 private:
  async::Task<std::optional<net::Response>> find_created(std::string name, nlohmann::json labels);

  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::docker
