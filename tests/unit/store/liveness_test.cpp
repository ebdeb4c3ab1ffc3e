// Which runs have a driver, as several processes, containers and machines on one state folder see
// it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/run_store.hpp"

namespace pipeline::store {
namespace {

namespace fs = std::filesystem;

class LivenessTest : public testing::Test {
 protected:
  core::TemporaryFolder folder;
  fs::path state = folder.path() / "state";
};

RunRecord own_run(const std::string& id) {
  RunRecord run;
  run.id = id;
  run.pipeline = "digits";
  run.parameters = "{}";
  run.driver.process = ProcessId::self();
  return run;
}

constexpr int not_allowed = 77;

/// Runs `work` in a child with process identifiers and a boot identifier of its own, on the same
/// disk: as another machine that shares the folder. With `stays` the child sleeps after it.
class OtherMachine {
 public:
  OtherMachine(const std::function<int()>& work, bool stays) {
    std::ofstream(folder_.path() / "boot_id") << "00000000-1111-2222-3333-444444444444\n";
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return;
    outer_ = ::fork();
    if (outer_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      int answer = not_allowed;
      const auto boot_id = (folder_.path() / "boot_id").string();
      if (::unshare(CLONE_NEWNS | CLONE_NEWPID) == 0 &&
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
          ::mount(boot_id.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) ==
              0) {
        const pid_t inner = ::fork();
        if (inner == 0) {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
          if (::mount("proc", "/proc", "proc", 0, nullptr) == 0 &&
              ::mount(boot_id.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND,
                      nullptr) == 0) {
            try {
              answer = work();
            } catch (const std::exception&) {
              answer = 99;
            }
          }
          if (::write(ready[1], &answer, sizeof answer) == sizeof answer && stays) ::pause();
          ::_exit(0);
        }
        ::close(ready[1]);
        ::waitpid(inner, nullptr, 0);
        ::_exit(0);
      }
      if (::write(ready[1], &answer, sizeof answer) < 0) ::_exit(1);
      ::_exit(0);
    }
    ::close(ready[1]);
    if (::read(ready[0], &answer_, sizeof answer_) != sizeof answer_) answer_ = 98;
    ::close(ready[0]);
  }
  ~OtherMachine() { goes_down(); }
  int answer() const { return answer_; }
  /// Ends the machine; its driver is killed with it.
  void goes_down() {
    if (outer_ <= 0) return;
    ::kill(outer_, SIGKILL);
    ::waitpid(outer_, nullptr, 0);
    outer_ = -1;
  }

 private:
  core::TemporaryFolder folder_;
  pid_t outer_ = -1;
  int answer_ = 98;
};

TEST_F(LivenessTest, run_of_another_machine_lives_as_long_as_its_lock) {
  const auto begin = [&] {
    static RunStore theirs(state);
    theirs.runs().add(own_run("far"));
    return 0;
  };
  OtherMachine machine(begin, true);
  if (machine.answer() == not_allowed)
    GTEST_SKIP() << "this process may not create PID and mount namespaces";
  ASSERT_EQ(machine.answer(), 0);
  RunStore store(state);
  const auto run = store.runs().find("far").value();
  EXPECT_FALSE(run.driver.process.is_of_this_boot());
  EXPECT_EQ(store.drivers().liveness(run), Liveness::alive);
  EXPECT_TRUE(store.runs().mark_dead().empty());
  EXPECT_FALSE(store.remove_run("far", false));
  EXPECT_FALSE(store.drivers().hold("far"));
  EXPECT_EQ(store.runs().find("far")->status, RunStatus::running);
  machine.goes_down();
  std::vector<RunRecord> dead;
  for (int i = 0; i < 500 && dead.empty(); ++i) {
    dead = store.runs().mark_dead();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(dead.size(), 1u)
      << "the run's lock is gone, and no other kernel can hold one on this disk";
}

TEST_F(LivenessTest, another_machine_does_not_take_our_run_for_dead) {
  RunStore store(state);
  store.runs().add(own_run("mine"));
  const auto look = [&] {
    RunStore theirs(state);
    return theirs.runs().mark_dead().empty() &&
                   theirs.drivers().liveness(theirs.runs().find("mine").value()) == Liveness::alive
               ? 0
               : 1;
  };
  const OtherMachine machine(look, false);
  if (machine.answer() == not_allowed)
    GTEST_SKIP() << "this process may not create PID and mount namespaces";
  EXPECT_EQ(machine.answer(), 0);
  EXPECT_EQ(store.runs().find("mine")->status, RunStatus::running);
}

TEST_F(LivenessTest, run_whose_driver_cannot_be_seen_is_left_alone) {
  RunStore store(state);
  auto run = own_run("old");
  run.driver.process = {
      1,
      "00000000-1111-2222-3333-444444444444:pid:[4026531836]:77"};  // as an earlier version has it
  store.runs().add(run);
  EXPECT_EQ(store.drivers().liveness(*store.runs().find("old")), Liveness::unknown);
  EXPECT_TRUE(store.runs().mark_dead().empty());
  EXPECT_FALSE(store.remove_run("old", false));
  EXPECT_EQ(store.runs().find("old")->status, RunStatus::running);
  EXPECT_EQ(store.runs().mark_dead("old").size(), 1u) << "the user has said so";
  EXPECT_TRUE(store.remove_run("old", false));
}

TEST_F(LivenessTest, heartbeat_shows_life_and_a_missing_one_shows_nothing) {
  RunStore store(state);
  auto run = own_run("far");
  run.driver.process = {1, "00000000-1111-2222-3333-444444444444:pid:[4026531836]:77"};
  run.driver.probe = LivenessProbe::heartbeat;
  run.driver.host = "gpu-1";
  store.runs().add(run);
  run = store.runs().find("far").value();
  EXPECT_EQ(run.driver.probe, LivenessProbe::heartbeat);
  EXPECT_EQ(run.driver.host, "gpu-1");
  EXPECT_EQ(run.driver.process.started, "00000000-1111-2222-3333-444444444444:pid:[4026531836]:77");
  EXPECT_EQ(store.drivers().liveness(run), Liveness::unknown);
  fs::create_directories(state / "drivers");
  std::ofstream(state / "drivers/far") << "";
  EXPECT_EQ(store.drivers().liveness(run), Liveness::alive);
  fs::last_write_time(state / "drivers/far",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(store.drivers().liveness(run), Liveness::unknown);
}

TEST_F(LivenessTest, resuming_waits_for_the_removal_of_the_runs_rest) {
  RunStore store(state);
  auto run = own_run("r1");
  run.status = RunStatus::interrupted;
  store.runs().add(run);
  auto held = store.drivers().hold("r1");
  ASSERT_TRUE(held);
  std::atomic<bool> resumed = false;
  std::thread other([&] {
    RunStore driver(state);
    driver.runs().resume(run);
    resumed = true;
    while (resumed) std::this_thread::yield();
  });
  EXPECT_FALSE(resumed);
  held.reset();
  while (!resumed) std::this_thread::yield();
  EXPECT_FALSE(store.drivers().hold("r1"));
  EXPECT_EQ(store.drivers().liveness(*store.runs().find("r1")), Liveness::alive);
  resumed = false;
  other.join();
}

TEST_F(LivenessTest, artifacts_stay_while_any_process_needs_them) {
  const RunStore store(state), other(state);
  {
    const auto one = StateLock::keep_artifacts(store.folder()),
               two = StateLock::keep_artifacts(other.folder());
    EXPECT_FALSE(StateLock::hold_artifacts(other.folder()));
  }
  auto held = StateLock::hold_artifacts(other.folder());
  ASSERT_TRUE(held);
  EXPECT_FALSE(StateLock::hold_artifacts(store.folder()));
  bool has_waited = false;
  const auto kept = StateLock::keep_artifacts(store.folder(), [&] {
    has_waited = true;
    held.reset();
  });
  EXPECT_TRUE(has_waited);
}

TEST_F(LivenessTest, damage_in_the_database_is_found_by_its_check) {
  {
    RunStore store(state);
    for (int i = 0; i < 200; ++i) {
      auto run = own_run("r" + std::to_string(i));
      run.status = RunStatus::succeeded;
      store.runs().add(run);
    }
    EXPECT_TRUE(store.check().empty());
    store.share();
  }
  const auto size = fs::file_size(state / "pipe.db");
  std::fstream file(state / "pipe.db", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size) - 2000);
  file.put('\x5a');
  file.close();
  EXPECT_FALSE(RunStore(state).check().empty());
}

}  // namespace
}  // namespace pipeline::store
