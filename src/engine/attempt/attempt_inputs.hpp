/// @file
/// The code and the inputs of an attempt, checked and laid out for the orchestrator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/attempt/attempt.hpp"

namespace pipeline::engine {

/// The tree of a step's code, and its files.
struct StoredCode {
  store::StoredArtifact tree;
  std::vector<store::TreeFile> files;
};

class AttemptInputs {
 public:
  /// Keeps references to the context and the step.
  /// @param folder the attempt's own
  /// @param joins  see Attempt::joins
  AttemptInputs(const AttemptContext& context, const StepSpec& step, OutputsOf outputs_of,
                std::filesystem::path folder, bool joins);

  /// Stores the step's code. Code that the store already has is read and compared once in a run; if
  /// it is damaged, it is stored again.
  async::Task<StoredCode> store_code();
  /// Reads small inputs completely, each once a run. Throws DamagedInput if one differs from what
  /// its step made. Data that was fetched or published, and is damaged, is moved aside.
  async::Task<> check();
  /// Returns the inputs for the orchestrator. Gathers, fetches and copies inputs that are not files
  /// of this machine yet.
  async::Task<std::vector<orchestrators::AttemptInput>> make();
  /// Remembers the state of the artifacts among the inputs, for damaged_artifact(). Throws
  /// DamagedInput if one of them is gone.
  void note_artifacts(const std::vector<orchestrators::AttemptInput>& inputs);
  /// Returns a failure if an artifact was changed since note_artifacts(); the store moves the
  /// changed artifact aside.
  async::Task<std::optional<Failure>> damaged_artifact();
  /// Returns an error if another attempt has found an input of this one damaged since check(): this
  /// attempt may have read it before. check() leaves out large inputs.
  std::optional<DamagedInput> found_damaged() const;
  /// Returns the error of an attempt whose orchestrator could not obtain an input. The step that
  /// made the input then runs again.
  DamagedInput lost_input(const orchestrators::LostInput& lost) const;
  /// Set by damaged_artifact() if another attempt has changed the artifact.
  const std::optional<DamagedInput>& changed_by_other() const { return changed_by_other_; }
  /// Returns a failure if the user's data is not what the step's key says.
  async::Task<std::optional<Failure>> changed_data();

 private:
  async::Task<> fetch_elsewhere(const InputSpec& input);
  async::Task<orchestrators::AttemptInput> make_data(const InputSpec& input);
  async::Task<orchestrators::AttemptInput> make_published(const InputSpec& input);

  /// The first half of a store::stamp_of().
  using ShortStamp = std::array<std::uint8_t, 16>;
  static ShortStamp stamp_of(const std::filesystem::path& artifact);
  /// The state of an artifact before the attempt. Small, because a gathered input may have 100,000
  /// artifacts.
  struct NotedArtifact {
    core::Digest digest;
    ShortStamp stamp;
    bool was_checked;
    std::uint32_t input;  ///< Index in StepSpec::inputs.
  };
  void refuse_missing() const;
  void note_all(const std::vector<orchestrators::AttemptInput>& inputs);
  void note_artifact(std::size_t input, const core::Digest& digest);
  std::optional<DamagedInput> changed_input(const NotedArtifact& noted) const;
  std::vector<NotedArtifact> noted_;
  std::optional<DamagedInput> changed_by_other_;
  const AttemptContext& context_;
  const Services& services_;
  const StepSpec& step_;
  const OutputsOf outputs_of_;
  const std::filesystem::path folder_;
  const bool joins_;
  std::size_t damages_before_ = 0;  ///< Size of AttemptContext::damaged at check().
};

}  // namespace pipeline::engine
