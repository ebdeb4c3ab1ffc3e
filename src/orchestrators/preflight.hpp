/// @file
/// The check of the GPUs before a step's command starts: runs `nvidia-smi` where the command will
/// run. The functions are pure, except that output of nvidia-smi is written to the step's log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// The output of nvidia-smi.
struct SmiReport {
  int code = 0;       ///< Exit code of the last call; 127: nvidia-smi was not found.
  std::string table;  ///< Output of `nvidia-smi`.
  std::string list;   ///< Output of `nvidia-smi -L`; empty if the first call failed.
};

/// The GPUs that a step should see: `its_own` in a container, `all` as a process of this machine.
enum class GpuVisibility { its_own, all };

/// Returns why the step must not start; nothing if it may. Transient causes are
/// FailureKind::infrastructure, which can be retried.
std::optional<Failure> preflight_failure(const SmiReport& report,
                                         const std::vector<AssignedGpu>& gpus,
                                         GpuVisibility visibility);
/// Time limit of nvidia-smi. Covers the initialisation of all GPUs of a machine, which nvidia-smi
/// waits for if no process keeps the driver loaded.
inline constexpr std::chrono::seconds preflight_timeout{120};
/// Returns the failure for nvidia-smi not ending in time.
Failure preflight_hangs(std::chrono::seconds waited);

/// Returns the UUIDs in the output of `nvidia-smi -L`: those of GPUs that are not divided by MIG,
/// and of the slices of the others.
std::vector<std::string> visible_gpus(std::string_view list);

/// Returns the gate: the command behind a shell that first runs nvidia-smi and executes the command
/// (same process, same signals, same exit code) only if exactly these GPUs are visible.
/// PreflightLog reads its output. Needs /bin/sh.
std::vector<std::string> behind_gate(const std::vector<std::string>& command,
                                     const std::vector<AssignedGpu>& gpus);

/// Separates the gate's output from the command's: the gate's lines are marked in the log.
class PreflightLog : public LogSink {
 public:
  explicit PreflightLog(LogSink& log) : log_(log) {}
  void write(Stream stream, std::string_view bytes) override;
  /// Writes what the gate has printed last; to be called at the end of the output.
  void finish();
  bool is_open() const { return open_; }  ///< The gate has started the command.
  const SmiReport& report() const { return report_; }

 private:
  void take_line(std::string_view line);

  LogSink& log_;
  std::string rest_;    ///< The beginning of a line whose end has not arrived.
  std::string output_;  ///< Output of the current call of nvidia-smi.
  SmiReport report_;
  bool has_table_ = false;  ///< The next output is that of `nvidia-smi -L`.
  bool open_ = false;
};

/// The gate's exit code if the command was not started.
inline constexpr int gate_closed = 125;

/// Stands before each line of nvidia-smi in the log.
inline constexpr std::string_view preflight_mark = "[preflight] ";
/// Writes output of nvidia-smi to the log, with preflight_mark before each line.
void write_preflight(LogSink& log, std::string_view text);

/// Beginning of the gate's shell message if the command could not be started.
inline constexpr std::string_view gate_name = "pipe-preflight";

}  // namespace pipeline::orchestrators
