#include "engine/attempt/attempt_inputs.hpp"

#include <set>
#include <string>
#include <tuple>

#include "async/on_pool.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

struct InputToCheck {
  core::Digest digest;
  std::string name;
  std::string made_by;  ///< Empty: data from outside, which make() fetches again.
};

struct StoredData {
  core::Digest digest;
  std::uint64_t bytes;
};

/// Returns the artifact of data that was fetched or published; nothing for other data.
std::optional<StoredData> stored_data(const DataSpec& data, const AttemptContext& context) {
  if (!data.artifact.empty()) {
    const auto* version = context.data.artifact(data);
    if (!version) return std::nullopt;
    return StoredData{version->output.digest, version->output.bytes};
  }
  const auto pin = data.url.empty() ? std::nullopt : context.data.pins().of(data);
  if (!pin) return std::nullopt;
  const auto digest = core::Digest::from_hex(pin->sha256);
  return StoredData{digest, pin->size ? pin->size : context.downloads.size_of(digest)};
}

/// Returns the artifacts among the inputs that are small and few enough to be read before the
/// attempt (store::is_read_on_use()), and were not read in this run.
std::vector<InputToCheck> inputs_to_check(const StepSpec& step, const OutputsOf& outputs_of,
                                          const AttemptContext& context) {
  const auto& artifacts = context.run.services.artifacts;
  std::vector<InputToCheck> found;
  std::uint64_t bytes = 0;
  const auto add = [&](const core::Digest& digest, std::uint64_t size, const std::string& input,
                       const std::string& made_by) {
    // A damaged artifact is gone until its step has made it again.
    const bool may_be_gone = !context.damaged.empty() && !artifacts.has(digest);
    if (!may_be_gone && !store::is_read_on_use(bytes + size, found.size() + 1)) return;
    if (context.checked.contains(digest) || artifacts.elsewhere(digest)) return;
    bytes += size;
    found.push_back({digest, input, made_by});
  };
  for (const auto& input : step.inputs) {
    if (input.data)
      if (const auto stored = stored_data(*input.data, context))
        add(stored->digest, stored->bytes, input.name, "");
    for (const auto& source : input.sources)
      if (const auto made = outputs_of(source); made.output)
        add(made.output->digest, made.output->bytes, input.name, made.step->name);
  }
  return found;
}

}  // namespace

AttemptInputs::AttemptInputs(const AttemptContext& context, const StepSpec& step,
                             OutputsOf outputs_of, fs::path folder, bool joins)
    : context_(context),
      services_(context.run.services),
      step_(step),
      outputs_of_(std::move(outputs_of)),
      folder_(std::move(folder)),
      joins_(joins) {}

async::Task<> AttemptInputs::check() {
  damages_before_ = context_.damaged.size();
  const auto inputs = inputs_to_check(step_, outputs_of_, context_);
  if (inputs.empty()) co_return;
  const auto find_damage = [&]() -> const InputToCheck* {
    for (const auto& input : inputs)
      if (!services_.artifacts.is_intact(input.digest) && !input.made_by.empty()) return &input;
    return nullptr;
  };
  const auto* damaged = co_await async::on_pool(context_.run.pool, find_damage);
  if (damaged) {
    context_.damaged.push_back(damaged->made_by);
    throw DamagedInput("the input '" + damaged->name + "' of '" + step_.name +
                           "' is damaged: its content is not what '" + damaged->made_by + "' made",
                       {"`pipe verify` looks for more that is damaged"}, damaged->made_by);
  }
  for (const auto& input : inputs) context_.checked.insert(input.digest);
}

std::optional<DamagedInput> AttemptInputs::found_damaged() const {
  if (context_.damaged.size() == damages_before_) return std::nullopt;
  const std::set<std::string> makers(
      context_.damaged.begin() + static_cast<std::ptrdiff_t>(damages_before_),
      context_.damaged.end());
  for (const auto& input : step_.inputs)
    for (const auto& source : input.sources)
      if (const auto made = outputs_of_(source); made.output && makers.contains(made.step->name))
        return DamagedInput("the input '" + input.name + "' of '" + step_.name +
                                "' turned out to be damaged while the step ran",
                            {}, made.step->name);
  return std::nullopt;
}

async::Task<StoredCode> AttemptInputs::store_code() {
  const auto& files = services_.code.files(step_);
  StoredCode code;
  code.tree = services_.artifacts.put_tree(files, services_.stats, &code.files);
  if (context_.checked.contains(code.tree.digest) ||
      !store::is_read_on_use(code.tree.bytes, files.size()))
    co_return code;
  const bool is_intact = co_await async::on_pool(
      context_.run.pool, [&] { return services_.artifacts.is_intact(code.tree.digest); });
  if (!is_intact) code.tree = services_.artifacts.put_tree(files, services_.stats, &code.files);
  context_.checked.insert(code.tree.digest);
  co_return code;
}

async::Task<std::vector<orchestrators::AttemptInput>> AttemptInputs::make() {
  std::vector<orchestrators::AttemptInput> inputs;
  for (const auto& input : step_.inputs) {
    if (!services_.routes.capabilities_of(step_).takes_elsewhere) co_await fetch_elsewhere(input);
    if (input.data) {
      auto made = co_await make_data(input);
      inputs.push_back(std::move(made));
    } else if (input.gathered) {
      const auto folder = folder_ / "inputs" / input.name;
      const GatheredFolder gathered(input, outputs_of_);
      if (!joins_ || !fs::exists(folder / "index.json")) {
        core::remove_tree(folder);
        try {
          co_await async::on_pool(context_.run.pool,
                                  [&] { gathered.make(services_.artifacts, folder); });
        } catch (const core::EnvironmentError&) {
          refuse_missing();
          throw;
        }
      }
      inputs.push_back({input.name, input.name, folder});
      if (!services_.routes.capabilities_of(step_).on_this_machine)
        inputs.back().pieces = gathered.pieces(services_.artifacts);
    } else {
      const auto& output = *outputs_of_(input.sources.at(0)).output;
      inputs.push_back({.name = input.name,
                        .file_name = output.file_name,
                        .path = services_.artifacts.path(output.digest),
                        .digest = output.digest.hex(),
                        .elsewhere = services_.artifacts.elsewhere(output.digest)});
    }
  }
  co_return inputs;
}

/// Fetches the outputs that only the remote store has.
async::Task<> AttemptInputs::fetch_elsewhere(const InputSpec& input) {
  for (const auto& source : input.sources) {
    const auto made = outputs_of_(source);
    if (!made.output) continue;
    const auto place = services_.artifacts.elsewhere(made.output->digest);
    if (!place) continue;
    std::optional<orchestrators::LostInput> lost;
    try {
      const RemoteOutput output{*made.output, place->is_executable};
      co_await context_.downloads.fetch_output(output, context_.run.options.remote_cache,
                                               context_.run.pool);
    } catch (const DamagedCacheEntry& error) {
      lost.emplace(error.what(), made.output->digest.hex());
    }
    if (lost) throw lost_input(*lost);
  }
}

DamagedInput AttemptInputs::lost_input(const orchestrators::LostInput& lost) const {
  const auto digest = core::Digest::from_hex(lost.digest());
  services_.artifacts.forget_elsewhere(digest);
  for (const auto& input : step_.inputs)
    for (const auto& source : input.sources)
      if (const auto made = outputs_of_(source); made.output && made.output->digest == digest)
        return DamagedInput(
            "the input '" + input.name + "' of '" + step_.name + "' is damaged: " + lost.what(), {},
            made.step->name);
  throw core::EnvironmentError(lost.what());
}

/// Returns the user's data at its own path; for a cluster, a copy in the artifact store. Fetches
/// data that has a URL, unless the step's orchestrator does.
async::Task<orchestrators::AttemptInput> AttemptInputs::make_data(const InputSpec& input) {
  const auto& data = *input.data;
  if (!data.artifact.empty()) {
    auto made = co_await make_published(input);
    co_return made;
  }
  const auto file_name = file_name_of(data);
  if (!data.url.empty()) {
    auto pin = context_.data.pins().of(data);
    if (!pin)
      throw core::EnvironmentError(name_of(data) + " was not fetched when the run began",
                                   {"`pipe lock` fetches it"});
    const auto digest = core::Digest::from_hex(pin->sha256);
    orchestrators::AttemptInput made{.name = input.name,
                                     .file_name = file_name,
                                     .path = services_.artifacts.path(digest),
                                     .digest = pin->sha256};
    if (services_.routes.capabilities_of(step_).fetches_addresses)
      made.remote = context_.downloads.remote(data, *pin);
    if (!made.remote) co_await context_.downloads.fetch(data, std::move(*pin), context_.stop);
    co_return made;
  }
  const auto digest = context_.data.of(data.path).digest;
  if (services_.routes.capabilities_of(step_).on_this_machine) {
    std::error_code error;
    auto place = fs::canonical(data.path, error);
    if (error) throw core::system_error("cannot read " + data.path.string(), error.value());
    co_return orchestrators::AttemptInput{input.name, file_name, std::move(place), digest.hex()};
  }
  if (!services_.artifacts.has(digest)) {
    const auto copy = folder_ / "data";
    co_await async::on_pool(context_.run.pool, [&] {
      return store::store_user_data(data.path, services_.artifacts, copy);
    });
  }
  co_return orchestrators::AttemptInput{input.name, file_name, services_.artifacts.path(digest),
                                        digest.hex()};
}

/// Returns the published artifact; an empty file if nothing is published yet.
async::Task<orchestrators::AttemptInput> AttemptInputs::make_published(const InputSpec& input) {
  if (const auto* version = context_.data.artifact(*input.data)) {
    const auto& output = version->output;
    co_await context_.downloads.fetch_named(*input.data, *version, context_.data.cache(),
                                            context_.run.pool);
    co_return orchestrators::AttemptInput{
        input.name, output.file_name, services_.artifacts.path(output.digest), output.digest.hex()};
  }
  const auto empty = folder_ / "none";
  const auto stored = co_await async::on_pool(context_.run.pool, [&] {
    core::write_file_atomically(empty, "");
    return services_.artifacts.take(empty);
  });
  co_return orchestrators::AttemptInput{
      input.name, input.name, services_.artifacts.path(stored.digest), stored.digest.hex()};
}

AttemptInputs::ShortStamp AttemptInputs::stamp_of(const fs::path& artifact) {
  const auto whole = core::Digest::from_hex(store::stamp_of(artifact));
  ShortStamp half;
  std::copy_n(whole.bytes.begin(), half.size(), half.begin());
  return half;
}

void AttemptInputs::note_artifact(std::size_t input, const core::Digest& digest) {
  noted_.push_back({digest, stamp_of(services_.artifacts.path(digest)),
                    context_.checked.contains(digest), static_cast<std::uint32_t>(input)});
}

/// Throws DamagedInput if an output among the inputs is gone: another step has found it damaged
/// since check(), and its step has to make it again.
void AttemptInputs::refuse_missing() const {
  for (const auto& input : step_.inputs)
    for (const auto& source : input.sources)
      if (const auto made = outputs_of_(source);
          made.output && !services_.artifacts.has(made.output->digest) &&
          !services_.artifacts.elsewhere(made.output->digest))
        throw DamagedInput("the input '" + input.name + "' of '" + step_.name +
                               "' was removed before the step began",
                           {}, made.step->name);
}

void AttemptInputs::note_artifacts(const std::vector<orchestrators::AttemptInput>& inputs) {
  try {
    note_all(inputs);
  } catch (const core::EnvironmentError&) {
    refuse_missing();
    throw;
  }
}

void AttemptInputs::note_all(const std::vector<orchestrators::AttemptInput>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [spec, input] = std::tie(step_.inputs[i], inputs[i]);
    // An artifact in a remote store is fetched by the step's orchestrator, so no change of it is
    // noted.
    if (spec.gathered) {
      noted_.reserve(noted_.size() + spec.sources.size());
      for (const auto& source : spec.sources)
        if (const auto made = outputs_of_(source);
            made.output && !services_.artifacts.elsewhere(made.output->digest))
          note_artifact(i, made.output->digest);
    } else if (!input.remote && !input.elsewhere && !input.digest.empty()) {
      const auto digest = core::Digest::from_hex(input.digest);
      if (input.path == services_.artifacts.path(digest)) note_artifact(i, digest);
    }
  }
}

/// Returns the error of an attempt whose input another attempt has changed; nothing if the input is
/// the user's data.
std::optional<DamagedInput> AttemptInputs::changed_input(const NotedArtifact& noted) const {
  const auto& input = step_.inputs[noted.input];
  for (const auto& source : input.sources)
    if (const auto made = outputs_of_(source); made.output && made.output->digest == noted.digest)
      return DamagedInput("the input '" + input.name + "' of '" + step_.name +
                              "' was changed by another step that takes it, while this one ran",
                          {}, made.step->name);
  return std::nullopt;
}

async::Task<std::optional<Failure>> AttemptInputs::damaged_artifact() {
  const auto find_damage = [&]() -> const NotedArtifact* {
    for (const auto& noted : noted_) {
      const auto path = services_.artifacts.path(noted.digest);
      std::error_code gone;
      if ((!fs::exists(path, gone) || stamp_of(path) != noted.stamp) &&
          !services_.artifacts.is_intact(noted.digest))
        return &noted;
    }
    return nullptr;
  };
  const auto* damaged = noted_.empty() ? nullptr : find_damage();
  if (!damaged) co_return std::nullopt;
  // The attempt that has changed the artifact is unknown. The first attempt that finds the change
  // fails, and the others run again.
  if (context_.checked.erase(damaged->digest) == 0 && damaged->was_checked)
    changed_by_other_ = changed_input(*damaged);
  co_return Failure{
      FailureKind::bad_output,
      "changed its input '" + step_.inputs[damaged->input].name + "', which other steps read",
      {"a step reads its inputs and writes to its outputs: copy the input to "
       "$PIPE_SCRATCH first, and change the copy"},
      {}};
}

async::Task<std::optional<Failure>> AttemptInputs::changed_data() {
  for (const auto& input : step_.inputs) {
    if (!input.data || input.data->path.empty()) continue;
    const auto& path = input.data->path;
    const auto stamp =
        co_await async::on_pool(context_.run.pool, [&] { return store::stamp_of(path); });
    if (stamp == context_.data.of(path).stamp) continue;
    const auto state = fs::absolute(services_.store.folder()).lexically_relative(path);
    const bool has_state = !state.empty() && *state.begin() != "..";
    co_return Failure{
        FailureKind::environment,
        "the input '" + input.name + "' has changed since the run began: " + path.string(),
        {has_state ? "the state folder is in it, and changes with every run: name a folder beside "
                     "it, or another place for the state with --state DIR"
                   : "if the step itself writes to it, let it write to a copy in $PIPE_SCRATCH; "
                     "else run again once nothing writes to it any more"},
        {}};
  }
  co_return std::nullopt;
}

}  // namespace pipeline::engine
