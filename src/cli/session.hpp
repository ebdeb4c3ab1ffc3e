/// @file
/// A pipeline with all that is needed to plan, build or run it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cli/context.hpp"
#include "engine/run.hpp"
#include "orchestrators/factory.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::cli {

class Session {
 public:
  /// Reads the pipeline and opens its state.
  explicit Session(Context& context);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Context& context;
  const std::string run_id;
  const PipelineSpec pipeline;
  store::RunStore& runs;
  spec::CodeResolver resolver;
  const engine::CodeProvider code;
  const std::unique_ptr<Orchestrator> orchestrator;

  /// The steps that `--step` asks for, what they need included; all without it. Throws InputError for an unknown one.
  std::vector<const StepSpec*> selected_steps() const;

 private:
  std::map<const spec::CodeSet*, std::vector<store::TreeEntry>> trees_;  ///< As long-lived as `code`.
  engine::CodeProvider make_code_provider();
};

/// The orchestrator of this name, with its loop.
std::unique_ptr<Orchestrator> make_orchestrator(Context& context, const std::string& name, OrchestratorOptions options);

/// Throws EnvironmentError, with the advice to go without one, if the docker orchestrator is wanted and no engine answers. Costs a connection to a socket.
void require_engine(Context& context);

/// Runs whose driver has died become interrupted, and what they have left outside is removed. Returns them.
std::vector<store::RunRecord> bury_dead_runs(Context& context, store::RunStore& runs);

}  // namespace pipeline::cli
