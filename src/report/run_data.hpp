/// @file
/// A run as JSON for the pages: all of the run, or its changes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::report {

/// Reads a run from the stores, which must outlive this object.
class RunData {
 public:
  RunData(store::RunStore& store, const store::ArtifactStore& artifacts, store::RunRecord run,
          const ReportLimits& limits);

  /// Returns the run, its steps with their attempts, and its metrics and pictures.
  nlohmann::json all();

  /// Returns the changes since the last call of either function: `steps` that are new or different,
  /// and the whole of `run`, `failures`, `images`, `headlines`, `metrics`, `published`,
  /// `questions` and `pictures`. Returns null without changes.
  nlohmann::json changes();

  /// Returns a step with all details: `step` in the form of all(), and the `images`, `nodes` and
  /// `gathers` that it refers to. Returns null if the run has no such step.
  nlohmann::json details(const std::string& name);

 private:
  /// The values of a step that differ once its entry has to be made again.
  using Stamp = std::tuple<StepStatus, unsigned, WallTime, WallTime>;

  /// An output of a step of the run; points into `steps_`.
  struct ProducedOutput {
    const store::StepRecord* step;
    const store::OutputRecord* output;
    const core::Digest& digest() const { return output->digest; }
    std::string name() const { return step->name + "." + output->name; }
  };

  /// Names that many entries share, each listed once.
  class Names {
   public:
    std::size_t position_of(const std::string& name) {
      return positions_.try_emplace(name, positions_.size()).first->second;
    }
    std::size_t size() const { return positions_.size(); }
    nlohmann::json list() const;

   private:
    std::map<std::string, std::size_t> positions_;
  };

  static Stamp stamp_of(const store::StepRecord& step);
  std::string status() const;
  nlohmann::json run_entry() const;
  /// Returns a step. Keys have one letter and empty members are left out, so that ten thousand
  /// steps stay small; docs/json.md has this table, too. `n` name, `s` status, `b` name without the
  /// matrix, `i` position in `images`, `m` message, `p` parameters, `a` attempts.
  nlohmann::json step_entry(const store::StepRecord& step,
                            const std::vector<store::AttemptRecord>& attempts);
  /// Adds `r` the run that the step was reused from, `k` the beginning of the key, and for each
  /// output in `o` its name, file, bytes, digest, and true for a folder; adds the inputs.
  void add_details(const store::StepRecord& step, nlohmann::json& entry);
  /// Adds `f`, for each input its name and source: `KIND SOURCE` and a digest for data from
  /// outside, `STEP.OUTPUT` for an output, or the position in `gathers` for several outputs.
  void add_inputs(const store::StepRecord& step, nlohmann::json& entry);
  std::string shown_source(const store::DataOrigin& data) const;
  /// Returns an attempt; times are milliseconds, sizes bytes. `t` start since the run's start, `d`
  /// duration, `e` true while it is running, `x` exit code, `m` message, `q` number of GPUs, `c`
  /// CPU time, `y` peak of memory, `yl` limit of memory. `h` has the times of waiting, preparing,
  /// running, storing and, if any, transfers. `hw` has parts of the waiting by what was awaited;
  /// without `hw`, the attempt waited for a job slot. step_entry() adds `i`, the position of an
  /// image that is not the step's.
  nlohmann::json attempt_entry(const store::AttemptRecord& attempt, bool is_failed);
  /// Adds `w` the position in `nodes`, `g` the GPUs' models and UUIDs, `gu` the usage of each GPU,
  /// `rd` and `wr` the bytes read and written, and add_ranks().
  void add_attempt_details(const store::AttemptRecord& attempt,
                           const std::vector<store::TaskRecord>& tasks, nlohmann::json& entry);
  /// Adds `l` the end of the log, and `lo` the bytes that are left out before it.
  void add_log(const store::AttemptRecord& attempt, bool is_failed, nlohmann::json& entry);
  /// Adds the picture, or the cells of a notebook, to `pictures_`, if there is space for its bytes.
  /// If the limit of pictures is 0, the page asks for a picture by its digest, which is added.
  void add_picture(const store::StepRecord& step, const store::OutputRecord& output);
  /// Returns the failures, equal ones once: `n` names of the steps, `c` their number, `m` message,
  /// `h` hints, `d` last lines. The first one has `rf`, the rank whose log is shown.
  nlohmann::json failures() const;
  /// Returns the metrics that say how good the run is: `n` name, `v` value. A metric of a matrix
  /// has `i` the number of instances, `w` the instance with the value, and `a` the mean. `l` is the
  /// run before and `b` the best earlier run, each with its value; `low` is true if less is better.
  nlohmann::json headlines();
  /// Returns the versions that the run published: `NAME@VERSION`, `STEP.OUTPUT` and digest of each.
  nlohmann::json published();
  /// Returns the metrics; their curves are left out, and the page asks for them, unless the limits
  /// say `details`.
  nlohmann::json metrics();
  void read_steps();
  /// Returns the outputs of the run's steps that have this content, in the order of the steps.
  std::span<const ProducedOutput> outputs_equal_to(const core::Digest& artifact) const;
  /// Returns the output of the step. Records of earlier versions lack the step's name: then
  /// `position` selects an output, and a position beyond the end selects the last.
  /// @param equal outputs of the same content, at least one
  static const ProducedOutput& output_of(const std::string& step,
                                         std::span<const ProducedOutput> equal,
                                         std::size_t position);
  /// Returns the position in `gathers_` of an input that has several outputs, which is equal for
  /// equal inputs; nothing for an input that is not gathered.
  std::optional<std::size_t> gather_of(const core::Digest& input);

  store::RunStore& store_;
  const store::ArtifactStore& artifacts_;
  store::RunRecord run_;
  ReportLimits limits_;
  std::vector<store::StepRecord> steps_;
  std::map<std::string, Stamp> stamps_;  ///< Stamps of the entries that were returned.
  std::vector<ProducedOutput> outputs_;  ///< Sorted by the digest.
  std::map<core::Digest, std::optional<std::size_t>> gather_positions_;
  nlohmann::json gathers_ = nlohmann::json::array();             ///< Names of the outputs of each.
  std::unordered_map<std::string, store::InputDigests> inputs_;  ///< Keyed by the step's key.
  Names images_, nodes_;
  nlohmann::json pictures_ = nlohmann::json::array();
  nlohmann::json last_run_, last_failures_, last_metrics_, last_published_, last_questions_;
  std::size_t log_bytes_ = 0, picture_bytes_ = 0, known_pictures_ = 0;
};

}  // namespace pipeline::report
