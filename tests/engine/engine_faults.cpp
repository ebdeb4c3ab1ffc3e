// A real engine behind a proxy that cuts, loses, refuses and delays calls: an attempt runs once,
// and a step that did not succeed never counts as a success.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "core/identifier.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "support/attempt_builder.hpp"
#include "support/engine_proxy.hpp"
#include "support/event_recorder.hpp"
#include "support/prepare_and_run.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {
namespace {

bool is_create(const std::string& method, const std::string& target) {
  return method == "POST" && target.find("/containers/create?") != target.npos;
}
bool is_start(const std::string& method, const std::string& target) {
  return method == "POST" && target.ends_with("/start");
}
bool is_wait(const std::string& target) { return target.find("/wait?") != target.npos; }

/// Returns true for the first `left` calls.
struct First {
  std::atomic<int> left;
  bool operator()() { return left.load() > 0 && left-- > 0; }
};

class EngineFaults : public testing::Test {
 protected:
  /// Makes the attempt of a step that executes a shell line.
  AttemptBuilder& step(const std::string& line) {
    auto& builder = builder_.emplace(shell(line));
    builder.step.settings->docker.parent_image = "debian:bookworm-slim";
    builder.step.settings->docker.skip_build = true;
    builder.step.settings->docker.network = "none";
    return builder;
  }

  /// Runs the attempt on an engine behind this proxy.
  orchestrators::AttemptResult run(EngineProxy& proxy, const char* timeout = "20s") {
    setenv("DOCKER_HOST", proxy.url().c_str(), 1);
    setenv("PIPE_ENGINE_TIMEOUT", timeout, 1);
    orchestrators::OrchestratorOptions options;
    options.root = options.state = builder_->folder.path();
    options.run_id = builder_->run_id;
    orchestrator_ = orchestrators::make_docker_orchestrator(loop_, options);
    unsetenv("DOCKER_HOST");
    Silent events;
    return run_task(loop_, prepare_and_run(*orchestrator_, *builder_, events));
  }

  /// Runs the attempt, whose engine goes away once the step has printed something, and comes back
  /// after `meanwhile`.
  orchestrators::AttemptResult run_with_engine_away(const std::function<void()>& meanwhile) {
    std::atomic<bool> is_away = false;
    EngineProxy proxy([&](const std::string&, const std::string&) {
      return is_away ? Fault::refused : Fault::none;
    });
    builder_->log.on_write = [&, is_done = false](const Log&) mutable {
      if (std::exchange(is_done, true)) return;
      is_away = true;
      proxy.cut_all();
      meanwhile();
      is_away = false;
    };
    return run(proxy);
  }
  static void docker_cli(const std::string& command) {
    EXPECT_EQ(std::system(("docker " + command + " >/dev/null").c_str()), 0);
  }
  /// Runs `docker COMMAND CONTAINER` for the attempt's container.
  void docker_on(const std::string& command) { docker_cli(command + " " + id()); }

  /// Returns the name of the attempt's container.
  std::string id() const {
    return orchestrators::docker_engine::container_name(
        const_cast<AttemptBuilder&>(*builder_).attempt());
  }
  /// Returns true if none of the run's containers is running.
  bool nothing_runs() const {
    const auto running = "docker ps -q --filter label=pipe.run=" + builder_->run_id;
    return std::system(("test -z \"$(" + running + ")\"").c_str()) == 0;
  }
  /// Returns how many containers the run has, running or not.
  std::size_t containers() {
    std::vector<std::string> labels;
    labels.push_back("pipe.run=" + builder_->run_id);
    return run_task(loop_, engine_.list_containers(labels)).size();
  }
  void TearDown() override {
    if (!builder_) return;
    run_task(loop_, engine_.remove_container(id()));
  }

  asio::io_context loop_;
  docker::EngineApi engine_{loop_, docker::find_endpoint()};
  std::optional<AttemptBuilder> builder_;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator_;
};

TEST_F(EngineFaults, a_cut_wait_and_log_are_resumed_and_the_exit_code_is_the_steps) {
  auto& attempt = step(
      "echo before; echo err >&2; while [ ! -e /pipe/outputs/go ]; do sleep 0.05; done; echo "
      "after; exit 3");
  std::atomic<int> waits = 0;
  EngineProxy proxy([&](const std::string&, const std::string& target) {
    if (is_wait(target) && ++waits == 2) write(attempt.folder.path() / "outputs" / "go", "");
    return Fault::none;
  });
  attempt.log.on_write = [&](const Log& log) {
    if (log.out == "before\n" && log.err == "err\n") proxy.cut_all();
  };
  const auto result = run(proxy);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message, "ended with exit code 3");
  EXPECT_EQ(attempt.log.out, "before\nafter\n");
  EXPECT_EQ(attempt.log.err, "err\n");
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(containers(), 0U);
}

TEST_F(EngineFaults,
       a_step_that_ended_while_the_connection_was_cut_is_a_success_if_it_ended_by_itself) {
  auto& attempt =
      step("echo before; while [ ! -e /pipe/outputs/go ]; do sleep 0.05; done; echo after");
  const auto result = run_with_engine_away([&] {
    write(attempt.folder.path() / "outputs" / "go", "");
    docker_on("wait");
  });
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(attempt.log.out, "before\nafter\n");
}

TEST_F(EngineFaults, a_step_that_was_stopped_with_its_engine_fails_though_it_exits_with_0) {
  step("trap 'exit 0' TERM; echo ready; while true; do sleep 0.05; done");
  const auto result = run_with_engine_away([&] { docker_on("stop"); });
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::infrastructure);
  EXPECT_FALSE(result.exit_code);
  EXPECT_NE(result.failure->message.find("ended with its engine"), std::string::npos)
      << result.failure->message;
}

TEST_F(EngineFaults, a_container_that_was_removed_while_the_connection_was_cut_is_a_failure) {
  step("echo ready; sleep 600");
  const auto result = run_with_engine_away([&] { docker_on("rm -f"); });
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::infrastructure);
  EXPECT_NE(result.failure->message.find("another program removed"), std::string::npos)
      << result.failure->message;
}

/// Faults that end after a few calls.
class PassingFaults : public EngineFaults, public testing::WithParamInterface<Fault> {};

TEST_P(PassingFaults, a_container_is_created_and_started_once_though_calls_are_repeated) {
  auto& attempt = step("echo once >> /pipe/outputs/f; echo done");
  First creates{2}, starts{2};
  EngineProxy proxy([&](const std::string& method, const std::string& target) {
    const bool fails =
        (is_create(method, target) && creates()) || (is_start(method, target) && starts());
    return fails ? GetParam() : Fault::none;
  });
  const auto result = run(proxy);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(attempt.written("f"), "once\n");
  EXPECT_EQ(attempt.log.out, "done\n");
  EXPECT_EQ(containers(), 0U);
}
std::string name_of(const testing::TestParamInfo<Fault>& fault) {
  constexpr std::array names{"none",        "refused", "lost_answer", "broken",
                             "unavailable", "missing", "hangs"};
  return names.at(static_cast<std::size_t>(fault.param));
}
INSTANTIATE_TEST_SUITE_P(EngineFaults, PassingFaults,
                         testing::Values(Fault::refused, Fault::lost_answer, Fault::broken,
                                         Fault::unavailable),
                         name_of);

/// An engine that is being stopped answers 404 for files that exist. The parameter is the number of
/// such answers.
class MissingFiles : public EngineFaults, public testing::WithParamInterface<int> {};

TEST_P(MissingFiles, outputs_that_a_stopping_engine_does_not_find_are_asked_for_again) {
  auto& attempt = step("exit 0");
  docker_cli("create -v /pipe --network none --name " + id() +
             " debian:bookworm-slim sh -c 'echo made > /pipe/outputs/f'");
  run_task(loop_, orchestrators::docker_engine::copy_in(engine_, attempt.attempt(), id()));
  docker_on("start -a");
  First calls{GetParam()};
  EngineProxy proxy([&](const std::string&, const std::string& target) {
    return target.find("/archive?") != target.npos && calls() ? Fault::missing : Fault::none;
  });
  setenv("DOCKER_HOST", proxy.url().c_str(), 1);
  docker::EngineApi engine(loop_, docker::find_endpoint());
  unsetenv("DOCKER_HOST");
  run_task(loop_, orchestrators::docker_engine::copy_out(engine, attempt.attempt(), id()));
  EXPECT_EQ(attempt.written("f"), "made\n");
}

TEST_P(MissingFiles, a_folder_that_a_stopping_engine_does_not_find_is_filled_later) {
  auto& attempt = step("exit 0");
  docker_cli("create -v /pipe --network none --name " + id() +
             " debian:bookworm-slim sh -c 'echo made > /pipe/outputs/f'");
  First calls{GetParam()};
  EngineProxy proxy([&](const std::string& method, const std::string& target) {
    const bool fails = method == "PUT" && target.find("/archive?") != target.npos && calls();
    return fails ? Fault::missing : Fault::none;
  });
  setenv("DOCKER_HOST", proxy.url().c_str(), 1);
  docker::EngineApi engine(loop_, docker::find_endpoint());
  unsetenv("DOCKER_HOST");
  run_task(loop_, orchestrators::docker_engine::copy_in(engine, attempt.attempt(), id()));
  docker_on("start -a");
  run_task(loop_, orchestrators::docker_engine::copy_out(engine_, attempt.attempt(), id()));
  EXPECT_EQ(attempt.written("f"), "made\n");
  EXPECT_THROW(
      run_task(loop_, orchestrators::docker_engine::copy_in(engine, attempt.attempt(), "no-such")),
      docker::EngineError);
}
// The engine answers as it should after the first request, or after the second.
INSTANTIATE_TEST_SUITE_P(EngineFaults, MissingFiles, testing::Values(1, 2));

TEST_F(EngineFaults, outputs_are_asked_for_again_if_the_engine_has_unmounted_them_meanwhile) {
  auto& attempt = step("exit 0");
  docker_cli("create -v /pipe --network none --name " + id() + " debian:bookworm-slim true");
  run_task(loop_, orchestrators::docker_engine::copy_in(engine_, attempt.attempt(), id()));
  docker_on("start -a");
  const auto file = attempt.folder.path() / "f";
  write(file, "made\n");
  First looks{1};
  EngineProxy proxy([&](const std::string& method, const std::string& target) {
    // copy_out() asks by HEAD, after the files have come, whether the volume is still mounted. The
    // first time it seems not to be, and `f`, which was not sent, is there on the next request.
    if (method != "HEAD" || target.find("/archive?") == target.npos || !looks()) return Fault::none;
    docker_cli("cp " + file.string() + " " + id() + ":/pipe/outputs/f");
    return Fault::missing;
  });
  setenv("DOCKER_HOST", proxy.url().c_str(), 1);
  docker::EngineApi engine(loop_, docker::find_endpoint());
  unsetenv("DOCKER_HOST");
  run_task(loop_, orchestrators::docker_engine::copy_out(engine, attempt.attempt(), id()));
  EXPECT_EQ(attempt.written("f"), "made\n");
}

TEST_F(EngineFaults, an_engine_that_hangs_ends_the_attempt_as_a_failure_of_the_infrastructure) {
  auto& attempt = step("echo ready; sleep 600");
  std::atomic<bool> hangs = false;
  EngineProxy proxy(
      [&](const std::string&, const std::string&) { return hangs ? Fault::hangs : Fault::none; });
  attempt.log.on_write = [&](const Log&) { hangs = true; };
  const auto result = run(proxy, "400ms");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::infrastructure);
  EXPECT_NE(result.failure->message.find("lost its engine"), std::string::npos)
      << result.failure->message;
}

TEST_F(EngineFaults, a_container_that_an_outage_leaves_is_gone_before_the_next_attempt_starts) {
  auto& attempt = step("echo ready; sleep 600");
  std::atomic<bool> is_away = false, is_alone = false;
  std::atomic<int> starts = 0;
  EngineProxy proxy([&](const std::string& method, const std::string& target) {
    if (is_away) return Fault::broken;
    if (is_start(method, target) && ++starts == 2) is_alone = nothing_runs();
    return Fault::none;
  });
  attempt.log.on_write = [&](const Log&) {
    is_away = true;
    proxy.cut_all();
  };
  const auto first = run(proxy);
  ASSERT_TRUE(first.failure);
  EXPECT_EQ(first.failure->kind, FailureKind::infrastructure) << first.failure->message;
  EXPECT_FALSE(nothing_runs());
  is_away = false;
  attempt.log.on_write = {};
  attempt.number = 2;
  attempt.step.command = shell("echo again");
  const auto second = run_task(loop_, orchestrator_->run(attempt.attempt()));
  run_task(loop_, orchestrator_->settle());
  EXPECT_FALSE(second.failure) << second.failure->message;
  EXPECT_EQ(starts, 2);
  EXPECT_TRUE(is_alone.load());
  EXPECT_EQ(containers(), 0U);
}

TEST_F(EngineFaults, a_container_that_an_outage_leaves_is_removed_at_the_end_of_the_run) {
  auto& attempt = step("echo ready; sleep 600");
  std::atomic<bool> is_away = false;
  EngineProxy proxy([&](const std::string&, const std::string&) {
    return is_away ? Fault::broken : Fault::none;
  });
  attempt.log.on_write = [&](const Log&) {
    is_away = true;
    proxy.cut_all();
  };
  run(proxy);
  EXPECT_EQ(containers(), 1U);
  is_away = false;
  run_task(loop_, orchestrator_->settle());
  EXPECT_EQ(containers(), 0U);
}

TEST_F(EngineFaults, an_engine_that_answers_500_from_a_creation_on_has_not_refused_it) {
  step("true");
  std::atomic<bool> is_away = false;
  EngineProxy proxy([&](const std::string& method, const std::string& target) {
    if (is_create(method, target)) is_away = true;
    return is_away ? Fault::broken : Fault::none;
  });
  const auto result = run(proxy);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::infrastructure) << result.failure->message;
}

TEST_F(EngineFaults, a_wait_that_is_never_answered_is_given_up_once_the_container_has_ended) {
  auto& attempt = step("echo ready; exit 5");
  First waits{1};
  EngineProxy proxy([&](const std::string&, const std::string& target) {
    return is_wait(target) && waits() ? Fault::lost_answer : Fault::none;
  });
  const auto result = run(proxy, "2s");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message, "ended with exit code 5");
  EXPECT_EQ(attempt.log.out, "ready\n");
}

TEST_F(EngineFaults, a_step_whose_container_cannot_be_attached_to_is_stopped_at_once) {
  auto& attempt = step("true");
  EngineProxy proxy([&](const std::string&, const std::string& target) {
    if (target.find("/attach?") == target.npos) return Fault::none;
    asio::post(loop_, [&attempt] { attempt.cancel.stop(core::StopLevel::graceful); });
    return Fault::refused;
  });
  const auto result = run(proxy);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled) << result.failure->message;
  const auto asked = proxy.asked();
  EXPECT_TRUE(std::ranges::none_of(
      asked, [](const std::string& each) { return each.ends_with("/start"); }));
  EXPECT_EQ(containers(), 0U);
}

TEST_F(EngineFaults, an_engine_that_does_not_report_the_end_of_a_killed_container_is_given_up) {
  auto& attempt = step("echo ready; sleep 100");
  std::atomic<bool> is_mute = false;
  std::atomic<int> looks = 0;
  EngineProxy proxy([&](const std::string&, const std::string& target) {
    const bool is_look = target.find("/containers/") != target.npos && target.ends_with("/json");
    if (!is_mute || (!is_look && !is_wait(target))) return Fault::none;
    looks += is_look;
    return Fault::hangs;
  });
  // The output can come before the answer to the start, whose loss would end the attempt at once.
  bool has_begun = false;
  const auto go_mute = [&] {
    if (!has_begun || attempt.log.out.empty() || is_mute.exchange(true)) return;
    proxy.cut_all();
    asio::post(loop_, [&attempt] { attempt.cancel.stop(core::StopLevel::immediate); });
  };
  attempt.on_began = [&](std::chrono::milliseconds) {
    has_begun = true;
    go_mute();
  };
  attempt.log.on_write = [&](const Log&) { go_mute(); };
  const auto result = run(proxy, "60s");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled) << result.failure->message;
  EXPECT_EQ(looks, 1) << "the engine is not asked again";
  EXPECT_EQ(containers(), 0U);
}

TEST_F(EngineFaults, a_call_that_the_engine_refuses_for_good_is_not_repeated) {
  auto& attempt = step("true");
  attempt.step.settings->docker.network = "no-such-network-" + attempt.run_id;
  EngineProxy proxy([](const std::string&, const std::string&) { return Fault::none; });
  const auto result = run(proxy);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  const auto asked = proxy.asked();
  EXPECT_EQ(std::ranges::count_if(asked, [](const auto& each) { return each.ends_with("/start"); }),
            1);
}

TEST_F(EngineFaults, an_engine_that_was_never_there_is_reported_at_once) {
  EngineProxy proxy([](const std::string&, const std::string&) { return Fault::refused; });
  auto endpoint = docker::find_endpoint();
  endpoint.url = proxy.url();
  docker::EngineApi engine(loop_, endpoint);
  EXPECT_THROW(run_task(loop_, engine.system_info()), core::EnvironmentError);
  EXPECT_EQ(proxy.asked().size(), 1U);
}

TEST_F(EngineFaults, five_steps_complete_though_three_of_ten_calls_fail) {
  const auto seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  const Fault faults[]{Fault::refused, Fault::lost_answer, Fault::broken, Fault::unavailable};
  bool is_known = false;  // The engine has answered once; an engine that never has is given up.
  EngineProxy proxy([&](const std::string&, const std::string& target) {
    is_known = is_known || target.ends_with("/version");
    if (!is_known || target.ends_with("/_ping") || target.ends_with("/version") ||
        random() % 10 >= 3)
      return Fault::none;
    return faults[random() % 4];
  });
  for (unsigned i = 0; i < 5; ++i) {
    auto& attempt =
        step("echo line >> /pipe/outputs/f; seq 100; exit " + std::to_string(i % 2 * 7));
    orchestrators::AttemptResult result;
    do {
      result = run(proxy);
      ++attempt.number;
    } while (result.failure && result.failure->kind == FailureKind::infrastructure &&
             attempt.number <= 4);
    --attempt.number;
    EXPECT_EQ(result.exit_code, i % 2 * 7) << (result.failure ? result.failure->message : "");
    EXPECT_NE(attempt.log.out.find("100\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace pipeline::test
