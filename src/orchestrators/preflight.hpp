/// @file
/// The look at the GPUs before a step's command starts: `nvidia-smi`, where the command will run.
/// Pure but for the log that it writes to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// What nvidia-smi said.
struct SmiReport {
  int code = 0;       ///< Exit code of the last call; 127: there is no nvidia-smi.
  std::string table;  ///< Of `nvidia-smi`.
  std::string list;   ///< Of `nvidia-smi -L`; empty where the first call failed.
};

/// What a step should see: a container its own GPUs and no others, a process of this machine all
/// that there are.
enum class GpuVisibility { its_own, all };

/// Why the step must not start; nothing if all is well. What may pass is
/// FailureKind::infrastructure, which can be tried again.
std::optional<Failure> preflight_failure(const SmiReport& report,
                                         const std::vector<AssignedGpu>& gpus,
                                         GpuVisibility visibility);
/// Without a process that keeps the driver awake, nvidia-smi wakes all of a machine's GPUs up one
/// after the other.
inline constexpr std::chrono::seconds longest_preflight{120};
/// nvidia-smi did not come to an end.
Failure preflight_hangs(std::chrono::seconds waited);

/// The UUIDs in what `nvidia-smi -L` prints; of a GPU divided by MIG those of its slices.
std::vector<std::string> visible_gpus(std::string_view list);

/// The gate: the command, behind a shell that first runs nvidia-smi and becomes the command (same
/// process, same signals, same exit code) only if exactly these GPUs are there. What it prints is
/// for PreflightLog. Needs /bin/sh.
std::vector<std::string> behind_gate(const std::vector<std::string>& command,
                                     const std::vector<AssignedGpu>& gpus);

/// Parts what the gate prints from what the command prints: the gate's lines go to the log with a
/// mark.
class PreflightLog : public LogSink {
 public:
  explicit PreflightLog(LogSink& log) : log_(log) {}
  void write(Stream stream, std::string_view bytes) override;
  void finish();                       ///< Nothing more comes.
  bool open() const { return open_; }  ///< The command has been let through.
  const SmiReport& report() const { return report_; }

 private:
  void take_line(std::string_view line);

  LogSink& log_;
  std::string rest_;  ///< Of a line whose end has not come yet.
  std::string said_;  ///< By the call in progress.
  SmiReport report_;
  bool listed_ = false, open_ = false;
};

/// The exit code of a gate that stayed closed; nothing of the command has run then.
inline constexpr int gate_closed = 125;

/// Writes what nvidia-smi printed with the gate's mark.
void write_preflight(LogSink& log, std::string_view text);

/// What a message of the shell behind the gate begins with, when it could not start the command.
inline constexpr std::string_view gate_name = "pipe-preflight";

}  // namespace pipeline::orchestrators
