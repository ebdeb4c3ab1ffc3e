#include "cli/invocation.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::cli {
namespace {
namespace fs = std::filesystem;
}

void keep_invocation(store::RunStore& runs, const std::string& run, const Options& options) {
  const nlohmann::json kept{
      {"file", fs::absolute(options.file).string()},
      {"root", options.root.string()},
      {"parameters", options.parameters},
      {"profile", options.profile},
      {"orchestrator", options.orchestrator},
      {"context", options.context},
      {"namespace", options.name_space},
      {"claim", options.claim},
      {"claim_path", options.claim_path.string()},
      {"artifact_store", to_json(options.artifact_store)},
      {"step", options.step},
      {"execution_mode", options.execution_mode},
      {"jobs", options.jobs},
      {"no_cache", options.no_cache},
      {"template_dir",
       options.template_dir.empty() ? "" : fs::absolute(options.template_dir).string()}};
  runs.put_blob(store::invocation_kind, run, kept.dump());
}

std::optional<Options> invocation_of(store::RunStore& runs, const std::string& run,
                                     Options caller) {
  const auto text = runs.get_blob(store::invocation_kind, run);
  const auto kept = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!kept.is_object()) return std::nullopt;
  caller.state = runs.folder();
  caller.file = kept.value("file", std::string());
  caller.root = kept.value("root", std::string());
  caller.parameters = kept.value("parameters", caller.parameters);
  caller.profile = kept.value("profile", std::string());
  caller.orchestrator = kept.value("orchestrator", caller.orchestrator);
  caller.context = kept.value("context", std::string());
  caller.name_space = kept.value("namespace", std::string());
  caller.claim = kept.value("claim", std::string());
  caller.claim_path = kept.value("claim_path", std::string());
  caller.artifact_store =
      settings::artifact_store_of(kept.value("artifact_store", nlohmann::json()));
  caller.step = kept.value("step", std::string());
  caller.execution_mode = kept.value("execution_mode", std::string());
  if (caller.jobs == 0) caller.jobs = kept.value("jobs", 0u);
  caller.no_cache = kept.value("no_cache", false);
  caller.template_dir = kept.value("template_dir", std::string());
  return caller;
}

}  // namespace pipeline::cli
