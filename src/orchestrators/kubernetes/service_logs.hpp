/// @file
/// The output of a pod's services.
#pragma once

#include <chrono>
#include <list>
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

  /// Begins with the services that have been started since the last call.
  void begin(const StepSpec& step, const nlohmann::json& pod);
  /// Ends after at most this time; earlier if all services have ended and their output is read. To
  /// be called before the destruction.
  async::Task<> end(std::chrono::milliseconds limit);
  /// Ends, and adds the last lines of the services to a failure, each behind its name.
  async::Task<> explain(Failure& failure);

 private:
  struct Output {
    std::string service, pod;
    core::Lines lines{16384};
    core::TailBuffer tail{2048};
    std::optional<async::JoinableTask> reading = {};
  };
  async::Task<> read(Output& output);

  kubernetes_api::Client& client_;
  LogSink& log_;
  asio::any_io_executor executor_;
  core::CancelSource connections_;
  std::list<Output> outputs_;
};

}  // namespace pipeline::orchestrators::kubernetes
