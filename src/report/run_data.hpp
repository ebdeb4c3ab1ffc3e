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
  /// The parts of a step that change while the run is running.
  using Stamp = std::tuple<StepStatus, unsigned, WallTime, WallTime>;

  /// An output of a step of the run; points into `steps_`.
  struct Maker {
    const core::Digest* digest;
    const store::StepRecord* step;
    const store::OutputRecord* output;
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
  nlohmann::json declared() const;
  nlohmann::json step_entry(const store::StepRecord& step,
                            const std::vector<store::AttemptRecord>& attempts);
  void add_details(const store::StepRecord& step, nlohmann::json& entry);
  void add_inputs(const store::StepRecord& step, nlohmann::json& entry);
  std::string shown_source(const store::DataOrigin& data) const;
  nlohmann::json attempt_entry(const store::AttemptRecord& attempt, bool failed);
  void add_attempt_details(const store::AttemptRecord& attempt, nlohmann::json& entry);
  void add_log(const store::AttemptRecord& attempt, bool failed, nlohmann::json& entry);
  void add_picture(const store::StepRecord& step, const store::OutputRecord& output);
  nlohmann::json failures() const;
  nlohmann::json headlines();
  nlohmann::json published();
  nlohmann::json metrics();
  void read_steps();
  /// Returns the makers of an artifact, in the order of the steps.
  std::span<const Maker> makers_of(const core::Digest& artifact) const;
  static const Maker& made_by(const std::string& step, std::span<const Maker> makers,
                              std::size_t position);
  std::optional<std::size_t> gather_of(const core::Digest& input);

  store::RunStore& store_;
  const store::ArtifactStore& artifacts_;
  store::RunRecord run_;
  ReportLimits limits_;
  std::vector<store::StepRecord> steps_;
  std::map<std::string, Stamp> stamps_;  ///< Stamps of the entries that were returned.
  std::vector<Maker> makers_;            ///< Sorted by the digest.
  std::map<core::Digest, std::optional<std::size_t>> gather_positions_;
  nlohmann::json gathers_ = nlohmann::json::array();             ///< Names of the outputs of each.
  std::unordered_map<std::string, store::InputDigests> inputs_;  ///< Keyed by the step's key.
  Names images_, nodes_;
  nlohmann::json pictures_ = nlohmann::json::array();
  nlohmann::json last_run_, last_failures_, last_metrics_, last_published_, last_questions_;
  std::size_t log_bytes_ = 0, picture_bytes_ = 0, known_pictures_ = 0;
};

}  // namespace pipeline::report
