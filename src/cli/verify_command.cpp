#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "core/quantity.hpp"
#include "detached/detached_record.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

struct Use {
  std::string run, step, output;
  std::uint64_t bytes = 0;
  bool may_be_elsewhere = false;  ///< Only detached runs have made or reused it.
};

/// Returns each artifact that a run's record names, with one of its uses.
std::map<core::Digest, Use> uses_of(store::RunStore& store,
                                    const std::vector<store::RunRecord>& of) {
  std::map<core::Digest, Use> uses;
  for (const auto& run : of) {
    const bool may_be_elsewhere = run.driver.is_elsewhere() || detached::detached_of(store, run.id);
    for (const auto& step : store.runs().steps(run.id))
      for (const auto& output : step.outputs) {
        auto& use =
            uses.try_emplace(output.digest, Use{run.id, step.name, output.name, output.bytes, true})
                .first->second;
        use.may_be_elsewhere = use.may_be_elsewhere && may_be_elsewhere;
      }
  }
  return uses;
}

class Verifier {
 public:
  explicit Verifier(Context& context)
      : context_(context),
        store_(context.existing_store()),
        lock_(store::StateLock::keep_artifacts(store_.folder())),
        is_of_run_(!context.options().run.empty()) {}

  /// Checks the artifacts that the database names, as far as it can be read.
  void artifacts() {
    if (!wrong_.empty()) return;
    std::vector<store::RunRecord> runs;
    if (is_of_run_)
      runs.push_back(context_.find_run(store_));
    else
      runs = store_.runs().list();
    const auto uses = uses_of(store_, runs);
    std::set<core::Digest> all;
    for (const auto& [digest, use] : uses) all.insert(digest);
    if (!is_of_run_)
      for (const auto& digest : context_.artifacts().all()) all.insert(digest);
    for (const auto& digest : all) {
      const auto use = uses.find(digest);
      check(digest, use == uses.end() ? nullptr : &use->second);
    }
  }
  void database() { wrong_ = store_.check(); }

  core::ExitCode report() const {
    const auto code =
        problems_ + wrong_.size() == 0 ? core::ExitCode::ok : core::ExitCode::environment;
    if (context_.options().json) {
      context_.print_json({{"artifacts", checked_},
                           {"bytes", bytes_},
                           {"findings", findings_},
                           {"database", wrong_},
                           {"exit_code", static_cast<int>(code)}});
      return code;
    }
    Table table;
    table.add({"ARTIFACT", "IS", "MADE BY"});
    for (const auto& finding : findings_)
      table.add({finding["digest"].get<std::string>().substr(0, 12),
                 finding["state"].get<std::string>(),
                 finding.contains("run") ? finding["output"].get<std::string>() + " of run " +
                                               finding["run"].get<std::string>()
                                         : "no run"});
    if (!table.empty()) context_.print(table.render(context_.paint()));
    for (const auto& text : wrong_) context_.print("database: " + for_terminal(text, false) + "\n");
    context_.print(
        "read " + counted(checked_, "artifact") + ", " + core::format_bytes(bytes_) +
        ", and the database: " +
        (code == core::ExitCode::ok ? "all whole" : counted(problems_ + wrong_.size(), "problem")) +
        "\n");
    if (problems_)
      context_.print(
          "what is damaged was moved aside, to artifacts/damaged; the next run makes it again\n");
    return code;
  }

 private:
  void check(const core::Digest& digest, const Use* use) {
    auto& artifacts = context_.artifacts();
    const bool is_there = artifacts.has(digest);
    if (is_there && artifacts.is_intact(digest)) {
      ++checked_;
      bytes_ += use ? use->bytes : 0;
      return;
    }
    const bool is_elsewhere = !is_there && use && use->may_be_elsewhere;
    json finding{{"digest", digest.hex()},
                 {"state", is_there       ? "damaged"
                           : is_elsewhere ? "not on this machine"
                                          : "missing"}};
    if (use) finding.update({{"run", use->run}, {"output", use->step + "." + use->output}});
    findings_.push_back(std::move(finding));
    problems_ += !is_elsewhere;
  }

  Context& context_;
  store::RunStore& store_;
  const store::StateLock lock_;
  const bool is_of_run_;
  json findings_ = json::array();
  std::vector<std::string> wrong_;
  std::size_t checked_ = 0, problems_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

core::ExitCode verify_command(Context& context) {
  Verifier verifier(context);
  verifier.database();
  verifier.artifacts();
  return verifier.report();
}

}  // namespace pipeline::cli
