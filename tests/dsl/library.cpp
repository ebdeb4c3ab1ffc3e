// The engine in a program: run() with callbacks, its result, an executor and a codec of the user's
// own.
#include <pipeline/run.hpp>

#include <spawn.h>
#include <sys/wait.h>

#include <cassert>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

namespace pl = pipeline;

struct Secret {  // Not a plain struct, so it can only be stored by its codec below.
  explicit Secret(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

template <>
struct pipeline::Codec<Secret> {
  static constexpr std::string_view extension = ".secret";
  static void save(const Secret& secret, const std::filesystem::path& to) {
    std::ofstream(to) << secret.number() * 2;
  }
  static Secret load(const std::filesystem::path& from) {
    int number = 0;
    std::ifstream(from) >> number;
    return Secret(number / 2);
  }
};

Secret make(int number) { return Secret(number); }
int reveal(const Secret& secret) { return secret.number(); }
int one() { return 1; }
int two() { return 2; }
int never(pl::StepContext& context) {
  while (!context.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 0;
}

/// Runs steps as processes, and counts them.
struct Counting : pl::Executor {
  std::atomic<int> runs = 0;
  std::string name() const override { return "counting"; }
  std::string environment(const pl::StepSpec&) override { return "here"; }
  std::optional<pl::Failure> run(const pl::ExecutorRequest& request) override {
    ++runs;
    request.log(pl::Stream::out, "placed\n");
    std::vector<std::string> texts;
    for (const auto& [name, value] : request.environment) texts.push_back(name + "=" + value);
    std::vector<char*> words, variables;
    auto command = request.command;
    for (auto& word : command) words.push_back(word.data());
    for (auto& text : texts) variables.push_back(text.data());
    words.push_back(nullptr);
    variables.push_back(nullptr);
    pid_t pid = 0;
    if (::posix_spawn(&pid, words[0], nullptr, nullptr, words.data(), variables.data()) != 0)
      return pl::Failure{pl::FailureKind::not_started, "could not be started", {}, {}};
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status == 0) return {};
    return pl::Failure{
        pl::FailureKind::exit_code, "ended with status " + std::to_string(status), {}, {}};
  }
};

void check(bool holds, const char* claim) {
  if (holds) return;
  std::cerr << "not so: " << claim << "\n";
  std::_Exit(9);
}

int main(int argc, char** argv) {
  pl::Pipeline pipeline{"library"};
  auto secret = pipeline.add(pl::step<make>(), pl::param("number", 21));
  auto number = pipeline.add(pl::step<reveal>(), secret);
  pl::Pipeline endless{"endless"};
  endless.add(pl::step<never>());
  pl::Pipeline first{"variants"}, second{"variants"};
  const auto choice = first.add(pl::step(one, {.name = "choice"}));
  second.add(pl::step(two, {.name = "choice"}));
  pl::enter_steps({&pipeline, &endless, &first, &second});

  std::vector<std::string> started;
  int logged = 0;
  auto executor = std::make_shared<Counting>();
  const auto on_event = [&](const pl::Event& event) {
    if (const auto* step = std::get_if<pl::event::StepStarted>(&event))
      started.push_back(step->step);
    if (const auto* line = std::get_if<pl::event::StepLog>(&event))
      logged += line->line == "placed";
  };
  const std::string state = argc > 1 ? argv[1] : "";
  auto result = pl::run(pipeline, {.parameters = {{"number", "5"}},
                                   .executor = executor,
                                   .state = state,
                                   .on_event = on_event});
  check(result.succeeded(), "the run succeeds");
  check(result.load(number) == 5,
        "a parameter arrives, the codec is used, the result can be loaded");
  check(result.load(secret).number() == 5, "a type of the user's own can be loaded");
  check((started == std::vector<std::string>{"make", "reveal"}), "events arrive in order");
  check(executor->runs == 2 && logged == 2, "the executor has run both, and what it logs arrives");
  result =
      pl::run(pipeline, {.parameters = {{"number", "5"}}, .executor = executor, .state = state});
  check(executor->runs == 2 && result.step("reveal").status == pl::StepStatus::cached,
        "the second run reuses both");

  try {
    pl::run(pipeline,
            {.parameters = {{"number", "many"}}, .orchestrator = "local", .state = state});
    check(false, "a parameter of the wrong type is refused");
  } catch (const pl::RunError& error) {
    check(error.exit_code() == 2, "the exit code says that the input is wrong");
    check(!error.diagnostics().empty() && !error.diagnostics().front().message.empty(),
          "the error has its diagnostics");
  }
  try {
    (void)result.step("nothing");
    check(false, "there is no such step");
  } catch (const std::out_of_range&) {
  }

  check(pl::run(first, {.orchestrator = "local", .state = state}).load(choice) == 1 &&
            pl::run(second, {.orchestrator = "local", .state = state}).load(choice) == 2,
        "the result of another function is not reused for a step of the same name");

  std::stop_source stop;
  std::jthread stopper;
  result = pl::run(endless, {.orchestrator = "local",
                             .state = state,
                             .on_event =
                                 [&](const pl::Event& event) {
                                   if (std::holds_alternative<pl::event::StepStarted>(event))
                                     stopper = std::jthread([&] { stop.request_stop(); });
                                 },
                             .stop = stop.get_token()});
  check(result.status == pl::RunStatus::interrupted, "a run can be stopped from another thread");
  std::cout << "all well\n";
}
