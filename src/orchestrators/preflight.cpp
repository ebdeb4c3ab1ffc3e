#include "orchestrators/preflight.hpp"

#include <algorithm>
#include <charconv>

#include "core/joined.hpp"
#include "gpu/errors.hpp"

namespace pipeline::orchestrators {
namespace {

constexpr std::string_view mark = "pipe-preflight ";
constexpr int missing = 127;  ///< A shell's exit code for a program that is not found.
constexpr std::size_t full_report_size = 64 * 1024;

/// $1: the UUIDs that must be visible; the other arguments are the command. The check runs in
/// a subshell, so that its variables do not conflict with the command's. nvidia-smi lists the
/// slices of a GPU divided by MIG after that GPU, which then does not count itself.
/// `seen` counts the GPUs and slices that are listed, and `own` those of them that must be visible;
/// `whole` is 1 while the last one listed is a GPU, which its first slice takes out of both counts.
/// Some machines have the driver's programs in /usr/local/nvidia/bin; few images have it on PATH.
constexpr std::string_view gate = R"sh((
  PATH=$PATH:/usr/local/nvidia/bin
  nvidia-smi </dev/null 2>&1
  code=$?
  printf '\npipe-preflight table %s\n' $code
  [ $code = 0 ] || exit 125
  list=$(nvidia-smi -L </dev/null 2>&1)
  code=$?
  printf '%s\npipe-preflight list %s\n' "$list" $code
  [ $code = 0 ] || exit 125
  set -f
  seen=0 own=0 wanted=0 whole=0
  for word in $1; do wanted=$((wanted + 1)); done
  for word in $list; do
    case " $1 " in *" ${word%?} "*) hit=1 ;; *) hit=0 ;; esac
    case $word in
      GPU-*')') seen=$((seen + 1)) own=$((own + hit)) whole=1 whole_hit=$hit ;;
      MIG-*')') [ $whole = 0 ] || seen=$((seen - 1)) own=$((own - whole_hit)) whole=0; seen=$((seen + 1)) own=$((own + hit)) ;;
    esac
  done
  [ $seen = $wanted ] && [ $own = $wanted ] && echo pipe-preflight open
) || exit 125
shift
exec "$@")sh";

std::vector<std::string> uuids_of(const std::vector<AssignedGpu>& gpus) {
  std::vector<std::string> uuids;
  for (const auto& gpu : gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

/// Returns those of `some` that are not in `others`.
std::vector<std::string> without(std::vector<std::string> some,
                                 const std::vector<std::string>& others) {
  std::erase_if(
      some, [&](const std::string& one) { return std::ranges::find(others, one) != others.end(); });
  return some;
}

std::vector<std::string> last_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  constexpr std::size_t kept = 5;
  if (lines.size() > kept) lines.erase(lines.begin(), lines.end() - kept);
  return lines;
}

/// @param kind infrastructure for a transient cause, so that the attempt can be retried
Failure not_started(const std::string& cause, std::vector<std::string> advice,
                    FailureKind kind = FailureKind::not_started) {
  Failure failure{kind, "was not started: " + cause, std::move(advice), {}};
  failure.hints.emplace_back("`preflight: off` in `resources` starts it without this check");
  return failure;
}

Failure lacks_smi(GpuVisibility visibility) {
  if (visibility == GpuVisibility::all)
    return not_started("there is no `nvidia-smi` on PATH, which comes with the NVIDIA driver",
                       {"install the driver (Debian: `sudo apt-get install nvidia-driver "
                        "nvidia-smi`), or run the step where there is one"});
  return not_started("there is no `nvidia-smi` in its container, where NVIDIA's toolkit puts it",
                     {"`utility` must be among the driver capabilities: `runtime_environment: "
                      "{NVIDIA_DRIVER_CAPABILITIES: \"compute,utility\"}`",
                      "a parent image with another C library (Alpine) cannot run NVIDIA's "
                      "programs: take one such as nvidia/cuda or debian",
                      "`pipe doctor` says how the engine gives GPUs to containers"});
}

Failure sees_other_gpus(const std::vector<std::string>& seen, const std::vector<std::string>& own) {
  const auto lacking = without(own, seen), others = without(seen, own);
  if (seen.empty())
    return not_started("it sees no GPU, although " + core::joined(own, ", ") +
                           (own.size() == 1 ? " is" : " are") + " reserved for it",
                       {"`pipe doctor` says how the engine gives GPUs to containers",
                        "no setting of the step may set NVIDIA_VISIBLE_DEVICES"});
  if (!lacking.empty())
    return not_started("it does not see " + core::joined(lacking, ", ") + ", which " +
                           (lacking.size() == 1 ? "is" : "are") + " reserved for it; it sees " +
                           core::joined(seen, ", "),
                       {"the GPUs that pipe reserves must be those of the engine's machine: `pipe "
                        "gpus` and `nvidia-smi -L` there have to agree"});
  return not_started(
      "it sees GPUs that are not reserved for it: " + core::joined(others, ", "),
      {"a privileged container sees all of them: leave `privileged` out of `run_args`",
       "an engine whose default runtime is NVIDIA's may add those of the image's environment: "
       "`pipe doctor`"});
}

}  // namespace

std::vector<std::string> visible_gpus(std::string_view list) {
  std::vector<std::string> uuids;
  bool whole = false;  // The last UUID is that of a GPU of which no slice has been listed yet.
  constexpr std::string_view before = "(UUID: ";
  for (auto at = list.find(before); at != list.npos; at = list.find(before, at + 1)) {
    const auto begin = at + before.size();
    const auto uuid = list.substr(begin, list.find(')', begin) - begin);
    if (uuid.starts_with("MIG-") && std::exchange(whole, false)) uuids.pop_back();
    if (uuid.starts_with("GPU-")) whole = true;
    uuids.emplace_back(uuid);
  }
  return uuids;
}

std::optional<Failure> preflight_failure(const SmiReport& report,
                                         const std::vector<AssignedGpu>& gpus,
                                         GpuVisibility visibility) {
  const auto& smi_output = report.list.empty() ? report.table : report.list;
  if (report.code == missing) return lacks_smi(visibility);
  if (report.code != 0) {
    const auto trouble = gpu::gpu_trouble(smi_output);
    auto failure =
        trouble ? not_started(trouble->cause, trouble->advice,
                              trouble->is_transient ? FailureKind::infrastructure
                                                    : FailureKind::not_started)
                : not_started("nvidia-smi failed with exit code " + std::to_string(report.code),
                              {"its output is in the step's log"});
    failure.details = last_lines(smi_output);
    return failure;
  }
  const auto seen = visible_gpus(report.list), own = uuids_of(gpus);
  if (without(own, seen).empty() &&
      (visibility == GpuVisibility::all || without(seen, own).empty()))
    return std::nullopt;
  if (visibility == GpuVisibility::its_own) return sees_other_gpus(seen, own);
  const auto gone = without(own, seen);
  return not_started("this machine has no " + core::joined(gone, ", ") + " any more, which " +
                         (gone.size() == 1 ? "was" : "were") + " reserved for it",
                     {"`sudo dmesg | grep NVRM` says whether a GPU has dropped off the bus"},
                     FailureKind::infrastructure);
}

Failure preflight_hangs(std::chrono::seconds waited) {
  return not_started(
      "nvidia-smi did not answer within " + std::to_string(waited.count()) +
          " s: the driver hangs, or a GPU does",
      {"`sudo dmesg | grep NVRM` on that machine names the cause; a restart of the machine ends it",
       "the driver starts slowly if no process keeps it loaded: `sudo nvidia-smi -pm 1` does"},
      FailureKind::infrastructure);
}

std::vector<std::string> behind_gate(const std::vector<std::string>& command,
                                     const std::vector<AssignedGpu>& gpus) {
  std::vector<std::string> words{"/bin/sh", "-c", std::string(gate), std::string(gate_name),
                                 core::joined(uuids_of(gpus), " ")};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void write_preflight(LogSink& log, std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (end > 0) lines += std::string(preflight_mark) + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!lines.empty()) log.write(Stream::out, lines);
}

void PreflightLog::take_line(std::string_view line) {
  if (!line.starts_with(mark)) {
    if (output_.size() < full_report_size) (output_ += line) += '\n';
    return;
  }
  line.remove_prefix(mark.size());
  if (line == "open") {
    open_ = true;
    return;
  }
  (has_table_ ? report_.list : report_.table) = output_;
  has_table_ = true;
  write_preflight(log_, std::exchange(output_, {}));
  const auto digits = line.substr(line.find(' ') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), report_.code);
}

void PreflightLog::finish() {
  if (!open_) write_preflight(log_, std::exchange(output_, {}) + std::exchange(rest_, {}));
}

void PreflightLog::write(Stream stream, std::string_view bytes) {
  if (stream == Stream::err) return log_.write(stream, bytes);
  while (!open_ && !bytes.empty()) {
    const auto end = bytes.find('\n');
    rest_ += bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    if (end != bytes.npos || rest_.size() > full_report_size) take_line(std::exchange(rest_, {}));
  }
  if (!bytes.empty()) log_.write(stream, bytes);
}

}  // namespace pipeline::orchestrators
