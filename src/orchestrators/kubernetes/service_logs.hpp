/// @file
/// Passes on the output of a pod's services.
#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "async/joinable_task.hpp"
#include "core/lines.hpp"
#include "core/tail_buffer.hpp"
#include "kubernetes_api/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Writes the services' lines to the log of their step, `[db] LINE`, while they run.
class ServiceLogs {
 public:
  ServiceLogs(kubernetes_api::Client& client, LogSink& log, asio::any_io_executor executor)
      : client_(client), log_(log), executor_(std::move(executor)) {}

  /// Begins to read the output of services that have been started since the last call.
  void begin(const StepSpec& step, const nlohmann::json& pod);
  /// Stops reading after `limit`, or once all services have ended and their output is read. A
  /// service of which nothing has come by then is asked once more for what it has written. Must be
  /// called before this object is destroyed.
  async::Task<> end(std::chrono::milliseconds limit);
  /// Calls end(), and adds the last lines of each service to the failure, after `[NAME]`.
  async::Task<> explain(Failure& failure);

 private:
  struct Output {
    std::string service, pod;
    core::Lines lines{16384};     ///< Bytes of a line.
    core::TailBuffer tail{2048};  ///< Bytes, for explain().
    std::optional<async::JoinableTask> reading = {};
  };
  enum class Reading { follow, once };
  async::Task<> read(Output& output, Reading reading);

  kubernetes_api::Client& client_;
  LogSink& log_;
  asio::any_io_executor executor_;
  core::CancelSource connections_;
  std::list<Output> outputs_;
};

}  // namespace pipeline::orchestrators::kubernetes
