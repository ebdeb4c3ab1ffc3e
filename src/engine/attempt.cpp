#include "engine/attempt.hpp"

#include <nlohmann/json.hpp>

#include "async/deadline.hpp"
#include "async/on_pool.hpp"
#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/log.hpp"
#include "core/quantity.hpp"
#include "engine/cache_key.hpp"
#include "engine/secret_mask.hpp"
#include "engine/step_log.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// The attempt's own folder, given back at destruction.
class WorkFolder {
 public:
  WorkFolder(WorkFolders& folders, const std::string& name,
             const orchestrators::Capabilities& place, bool joins)
      : folders_(folders),
        place_(place),
        path_(joins ? folders.join(name) : folders.take(name, place)) {}
  ~WorkFolder() { folders_.give_back(path_, place_, succeeded); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

  bool succeeded = false;

 private:
  WorkFolders& folders_;
  const orchestrators::Capabilities& place_;
  fs::path path_;
};

/// Steps that wait for the released GPUs and slots run on this thread, or in another process. They
/// should start before folders are removed and outputs stored here.
async::Task<> let_others_start() {
  asio::steady_timer moment(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
  co_await moment.async_wait(asio::use_awaitable);
}

Failure missing_output(const StepSpec& step, const OutputSpec& output) {
  return {FailureKind::missing_output,
          "ended well but did not write its output '" + output.name + "'",
          {"'" + step.name + "' must write a file or folder at ${outputs." + output.name +
           "}, also in $" + core::variable_name("PIPE_OUTPUT_", output.name)},
          {}};
}

/// Reads JSON from a folder that the step writes to; a discarded value if there is none.
nlohmann::json untrusted_json(const fs::path& file) {
  constexpr std::size_t most = 64 * 1024;
  return core::parse_json(core::read_untrusted_file(file, most).value_or(""));
}

/// Reads the step's own description of its failure, which has more information than the exit code.
/// It is untrusted and may contain a secret.
void read_failure(const fs::path& file, const std::vector<std::string>& secrets, Failure& failure) {
  const auto told = untrusted_json(file);
  if (!told.is_object()) return;
  const auto text = [&](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return std::string();
    SecretMask mask(secrets);
    auto shown = mask.feed(found->get<std::string>());
    return shown + mask.finish();
  };
  const auto with_type = [&](const nlohmann::json& object) {
    const auto type = text(object, "type"), message = text(object, "message");
    return type + (type.empty() || message.empty() ? "" : ": ") + message;
  };
  const auto what = with_type(told), how = text(told, "how"), where = text(told, "where");
  if (what.empty()) return;
  failure.kind = FailureKind::exception;
  failure.message = (how.empty() ? "threw" : how) + " " + what;
  if (const auto causes = told.find("causes"); causes != told.end() && causes->is_array())
    for (const auto& cause : *causes)
      if (cause.is_object()) failure.message += "; caused by " + with_type(cause);
  if (!where.empty()) failure.message += " (" + where + ")";
}

/// Records outputs that are already in the store. Storing removes them from the attempt's folders
/// before the run has recorded them; if this driver is killed in between, the next driver, which
/// joins the attempt, finds them here.
class TakenOutputs {
 public:
  /// @param scratch removed when the attempt is restarted
  TakenOutputs(const fs::path& scratch, store::ArtifactStore& artifacts)
      : scratch_(scratch), artifacts_(artifacts) {}

  void note(const std::string& output, const store::StoredArtifact& artifact) const {
    const nlohmann::json text{{"digest", artifact.digest.hex()},
                              {"is_directory", artifact.is_directory},
                              {"bytes", artifact.bytes}};
    core::write_file_atomically(file(output), text.dump());
  }
  /// The step could have written the file, too: the text must be a digest of an artifact that the
  /// store has.
  std::optional<store::StoredArtifact> find(const std::string& output) const {
    const auto text = untrusted_json(file(output));
    if (!text.is_object()) return std::nullopt;
    try {
      const store::StoredArtifact artifact{
          core::Digest::from_hex(text.at("digest").get<std::string>()),
          text.at("is_directory").get<bool>(), text.at("bytes").get<std::uint64_t>()};
      if (artifacts_.looks_whole(artifact.digest)) return artifact;
    } catch (const std::exception& error) {
      core::log::info(file(output).string() + ": " + error.what());
    }
    return std::nullopt;
  }

 private:
  fs::path file(const std::string& output) const { return scratch_ / (".taken-" + output); }

  const fs::path scratch_;
  store::ArtifactStore& artifacts_;
};

/// Inputs up to this size are read completely, which costs milliseconds. Size and time, which are
/// compared for larger artifacts, do not show a flipped bit.
constexpr std::uint64_t most_read_on_use = 1 << 20;
constexpr std::size_t most_files_read_on_use = 256;

struct InputToCheck {
  core::Digest digest;
  std::string name, made_by;
};

std::vector<InputToCheck> inputs_to_check(const StepSpec& step, const OutputsOf& outputs_of,
                                          std::set<core::Digest>& checked) {
  std::vector<InputToCheck> found;
  std::uint64_t bytes = 0;
  for (const auto& input : step.inputs)
    for (const auto& source : input.sources) {
      const auto made = outputs_of(source);
      if (found.size() == most_files_read_on_use || bytes + made.output->bytes > most_read_on_use)
        continue;
      if (checked.contains(made.output->digest)) continue;
      bytes += made.output->bytes;
      found.push_back({made.output->digest, input.name, made.step->name});
    }
  return found;
}

async::Task<> check_inputs(AttemptContext& context, const StepSpec& step,
                           const OutputsOf& outputs_of) {
  const auto inputs = inputs_to_check(step, outputs_of, context.checked);
  if (inputs.empty()) co_return;
  co_await async::on_pool(context.pool, [&] {
    for (const auto& input : inputs)
      if (!context.artifacts.is_intact(input.digest))
        throw core::EnvironmentError(
            "the input '" + input.name + "' of '" + step.name +
                "' is damaged: its content is not what '" + input.made_by + "' made",
            {"run again: '" + input.made_by + "' runs again, and makes it anew",
             "`pipe verify` looks for more that is damaged"});
  });
  for (const auto& input : inputs) context.checked.insert(input.digest);
}

void explain(const StepSpec& step, const CodeProvider& code, const StepLog& log, Failure& failure) {
  if (!code.missing_file) return;
  if (auto advice = code.missing_file(step, log.tail_text()))
    failure.hints.push_back(std::move(*advice));
}

}  // namespace

fs::path work_folder(const store::RunStore& runs, const std::string& run_id) {
  return runs.work_folder(run_id);
}

async::Task<AttemptOutcome> run_attempt(AttemptContext context, const StepSpec& step,
                                        AttemptOptions which, OutputsOf outputs_of,
                                        GpuReservation held, std::string log_name) {
  auto secrets = resolve_secrets(step);
  std::vector<std::string> hidden;
  for (const auto& [name, value] : secrets) hidden.push_back(value);

  AttemptOutcome outcome;
  const auto own_folder =
      std::make_shared<WorkFolder>(context.folders, step.name + "." + std::to_string(which.number),
                                   context.orchestrator.capabilities_of(step), which.joins);
  const auto& work = *own_folder;
  StepLog log(
      context.runs.log_file(log_name), hidden,
      [&](Stream stream, std::string line) {
        context.events.emit(event::StepLog{step.name, which.number, stream, std::move(line)});
      },
      [&](std::string row) {
        context.events.emit(event::StepProgress{step.name, which.number, std::move(row)});
      });
  const auto code = context.artifacts.put_tree(context.code.files(step), context.stats);
  co_await check_inputs(context, step, outputs_of);
  std::vector<orchestrators::AttemptInput> inputs;
  for (const auto& input : step.inputs) {
    if (input.gathered) {
      const auto folder = work / "inputs" / input.name;
      const GatheredFolder gathered(input, outputs_of);
      if (!which.joins || !fs::exists(folder / "index.json")) {
        core::remove_tree(folder);
        co_await async::on_pool(context.pool, [&] { gathered.make(context.artifacts, folder); });
      }
      inputs.push_back({input.name, input.name, folder, {}, gathered.pieces(context.artifacts)});
    } else {
      const auto& output = *outputs_of(input.sources.at(0)).output;
      inputs.push_back({input.name, output.file_name, context.artifacts.path(output.digest),
                        output.digest.hex()});
    }
  }
  async::Deadline deadline(co_await asio::this_coro::executor, context.stop, step.timeout,
                           core::StopLevel::graceful);
  std::vector<orchestrators::AttemptOutput> outputs;
  for (const auto& output : step.outputs) outputs.push_back({output.name, output.file_name});

  const orchestrators::Attempt attempt{.step = step,
                                       .pipeline = context.pipeline.name,
                                       .run_id = context.run_id,
                                       .number = which.number,
                                       .code = context.artifacts.path(code.digest),
                                       .code_digest = code.digest.hex(),
                                       .inputs = std::move(inputs),
                                       .outputs = work / "outputs",
                                       .output_names = std::move(outputs),
                                       .scratch = work / "scratch",
                                       .environment = resolve_environment(step),
                                       .secrets = std::move(secrets),
                                       .gpus = held.gpus,
                                       .joins = which.joins,
                                       .log = log,
                                       .cancel = deadline.source()};
  outcome.result = co_await context.orchestrator.run(attempt);
  const TakenOutputs taken(attempt.scratch, context.artifacts);
  if (!held.locks.empty()) {
    held.locks.clear();
    co_await let_others_start();
  }
  log.finish();
  outcome.log_tail = log.tail();
  auto& failure = outcome.result.failure;
  if (deadline.expired()) {
    failure = Failure{
        FailureKind::timed_out,
        "was stopped: it ran longer than its timeout of " + core::format_duration(*step.timeout),
        {"raise `timeout:` if that is too short"},
        {}};
  } else if (!failure) {
    for (const auto& output : step.outputs) {
      const auto path = work / "outputs" / output.file_name;
      if (fs::symlink_status(path).type() == fs::file_type::not_found &&
          !(which.joins && taken.find(output.name))) {
        failure = missing_output(step, output);
        break;
      }
    }
  }
  if (failure && (failure->kind == FailureKind::exit_code || failure->kind == FailureKind::signal))
    read_failure(work / "scratch" / orchestrators::failure_file_name.data(), hidden, *failure);
  if (failure) {
    if (failure->kind != FailureKind::cancelled) explain(step, context.code, log, *failure);
    co_return outcome;
  }
  struct ScopeGuard {  // Outputs that cannot be stored are of no use to another driver either.
    std::function<void()>& cleanup;
    bool stored = false;
    ~ScopeGuard() {
      if (!stored && cleanup) cleanup();
    }
  } unless{outcome.result.cleanup};
  const bool others_may_join = context.orchestrator.capabilities_of(step).outlives_driver;
  for (const auto& output : step.outputs) {
    const auto stored = co_await async::on_pool(context.pool, [&] {
      if (which.joins)
        if (const auto before = taken.find(output.name)) return *before;
      std::function<void(const store::StoredArtifact&)> before_it_goes;
      if (others_may_join)
        before_it_goes = [&](const store::StoredArtifact& artifact) {
          taken.note(output.name, artifact);
        };
      return context.artifacts.take(work / "outputs" / output.file_name, before_it_goes);
    });
    context.checked.insert(stored.digest);
    outcome.outputs.push_back(
        {output.name, output.file_name, stored.digest, stored.is_directory, stored.bytes});
  }
  unless.stored = true;
  own_folder->succeeded = true;
  outcome.folder = own_folder;
  co_return outcome;
}

}  // namespace pipeline::engine
