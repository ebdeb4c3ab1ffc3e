#include "store/run_store.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <random>

#include <sqlite3.h>
#include <sys/mount.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/checked_vfs.hpp"
#include "store/received_store.hpp"
#include "unit/store/processes.hpp"
#include "unit/store/run_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(RunStoreTest, killed_writer_loses_nothing_that_was_committed) {
  for (int round = 0; round < 30; ++round) {
    int committed[2];
    ASSERT_EQ(::pipe(committed), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      end_after(std::chrono::milliseconds(5 + 2 * round));
      try {
        RunStore store(state);
        for (int i = 0;; ++i) {
          const auto id = std::to_string(round) + "-" + std::to_string(i);
          store.transaction([&] {
            store.runs().add(run_record(id));
            for (int step = 0; step < 20; ++step)
              store.runs().put_step(step_record(id, "s" + std::to_string(step)));
          });
          if (::write(committed[1], &i, sizeof i) != sizeof i) break;
        }
      } catch (const std::exception&) {
      }
      ::_exit(1);
    }
    ::close(committed[1]);
    EXPECT_EQ(wait_for(child), 1000 + SIGPROF);
    int last = -1;
    for (int i = 0; ::read(committed[0], &i, sizeof i) == sizeof i;) last = i;
    ::close(committed[0]);
    RunStore store(state);
    for (int i = 0; i <= last; ++i)
      ASSERT_EQ(store.runs().steps(std::to_string(round) + "-" + std::to_string(i)).size(), 20u)
          << round;
    for (const auto& run : store.runs().list(3))
      ASSERT_EQ(store.runs().steps(run.id).size(), 20u) << "a transaction is whole";
  }
  EXPECT_EQ(sql_of(database, "PRAGMA integrity_check"), "ok");
}

/// Everything that can be read, as one text.
std::string content_of(RunStore& store) {
  std::string text;
  for (const auto& run : store.runs().list()) {
    text += run.id + run.pipeline + run.parameters + std::to_string(run.took.count());
    for (const auto& step : store.runs().steps(run.id)) {
      text += step.name + step.key + step.message;
      for (const auto& output : step.outputs) text += output.name + output.digest.hex();
      for (const auto& attempt : store.attempts().list(run.id, step.name)) text += attempt.log;
      if (const auto entry = store.cache().find(step.key))
        text += entry->run + entry->outputs.at(0).digest.hex();
      if (const auto parts = store.cache().last_key_parts("digits", step.name))
        text += parts->second.at(0).value;
    }
  }
  return text + store.key_values().find("plan", "x").value_or("none");
}

TEST_F(RunStoreTest, flipped_bits_are_an_error_or_change_nothing) {
  std::string expected;
  {
    RunStore store(state);
    for (int r = 0; r < 3; ++r) {
      const auto id = "r" + std::to_string(r);
      store.runs().add(run_record(id));
      for (int s = 0; s < 8; ++s) {
        const auto name = "step" + std::to_string(s);
        store.runs().put_step(step_record(id, name));
        store.attempts().put({.run = id, .step = name, .log = id + "/" + name});
        store.cache().add({"k-" + name, id, name, {{"o", "o", core::sha256(id), false, 1}}},
                          "digits", {{"command", id}});
      }
    }
    store.key_values().put("plan", "x", std::string(20'000, 'p'));
    expected = content_of(store);
  }
  // What is still in the log has checksums of SQLite's; here it is put into the database.
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, "pipe-checked"),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(handle);
  fs::remove(database.string() + "-wal");
  const auto good = core::read_file(database);
  std::mt19937 random(20261121);
  int noticed = 0;
  constexpr int rounds = 500;
  for (int round = 0; round < rounds; ++round) {
    auto damaged = good;
    const auto bit = round < 300 ? static_cast<std::size_t>(round) * 800 / 300
                                 : random() % (good.size() * 8);  // the header thoroughly
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    fs::remove(database.string() + "-wal");
    fs::remove(database.string() + "-shm");
    core::write_file_atomically(database, damaged);
    try {
      RunStore store(state);
      EXPECT_EQ(content_of(store), expected) << "bit " << bit;
    } catch (const core::EnvironmentError& error) {
      ++noticed;
      EXPECT_NE(std::string(error.what()).find(database.string()), std::string::npos)
          << error.what();
      EXPECT_FALSE(error.advice().empty()) << "bit " << bit << ": " << error.what();
    }
  }
  EXPECT_GT(noticed, rounds / 2);
}

TEST_F(RunStoreTest, database_that_is_cut_off_or_no_database_is_an_error_with_advice) {
  {
    RunStore store(state);
    for (int i = 0; i < 200; ++i) store.runs().add(run_record("r" + std::to_string(i)));
  }
  ASSERT_FALSE(sql_of(database, "PRAGMA wal_checkpoint(TRUNCATE)").empty());
  fs::remove(database.string() + "-wal");
  const auto good = core::read_file(database);
  for (const auto& content : {good.substr(0, good.size() / 2), good.substr(0, 100),
                              std::string("no database at all, but some text that is long enough") +
                                  std::string(5000, 'x')}) {
    core::write_file_atomically(database, content);
    try {
      RunStore store(state);
      store.runs().list();
      ADD_FAILURE() << content.size();
    } catch (const core::EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
      EXPECT_FALSE(error.advice().empty());
    }
  }
}

TEST_F(RunStoreTest, damaged_log_gives_an_earlier_state_and_never_a_wrong_one) {
  {
    RunStore store(state);
    for (int i = 0; i < 10; ++i) store.runs().add(run_record("r" + std::to_string(i)));
  }
  const auto log = database.string() + "-wal";
  const auto good = core::read_file(log), main = core::read_file(database);
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    auto damaged = good;
    const auto bit = random() % (good.size() * 8);
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    core::write_file_atomically(database, main);
    core::write_file_atomically(log, damaged);
    fs::remove(database.string() + "-shm");
    try {
      RunStore store(state);
      auto runs = store.runs().list();
      for (std::size_t i = 0; i < runs.size(); ++i)
        ASSERT_EQ(runs[runs.size() - 1 - i].id, "r" + std::to_string(i)) << "bit " << bit;
    } catch (const core::EnvironmentError&) {
    }
  }
}

TEST_F(RunStoreTest, of_another_user_must_have_our_exact_tables_and_types) {
  const auto is_plain = [&] {
    try {
      require_received_store(database, "r1");
      return true;
    } catch (const core::EnvironmentError&) {
      return false;
    }
  };
  const auto create = [&] {
    fs::remove_all(state);
    RunStore store(state);
    store.runs().add(run_record("r1"));
    store.runs().put_step(step_record("r1", "zeta"));
    store.attempts().put({.run = "r1", .step = "zeta", .log = "r1/zeta.1.log"});
    store.share();
  };
  for (const auto* value :
       {"UPDATE runs SET status = 9", "UPDATE steps SET name = x'00'",
        "UPDATE steps SET took = 1e300", "UPDATE runs SET tags = '{'",
        "UPDATE attempts SET usage = '['", "UPDATE attempts SET number = 'many'",
        "INSERT INTO metrics VALUES ('r1', 'zeta', 1, 'loss', 0, 1, x'00', x'00')"}) {
    create();
    EXPECT_TRUE(is_plain());
    EXPECT_EQ(sql_of(database, value, checked_vfs()), "");
    EXPECT_FALSE(is_plain()) << value;
  }
  const std::string rows_without_end =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
  for (const auto& metrics :
       {"VIEW metrics AS " + rows_without_end,
        std::string("TABLE metrics (run TEXT CHECK (length(hex(zeroblob(400000000))) > 0))"),
        std::string("TABLE metrics (run TEXT DEFAULT (hex(zeroblob(400000000))))"),
        std::string("INDEX more ON runs (hex(note))"),
        std::string("TRIGGER after_runs AFTER INSERT ON runs BEGIN SELECT 1; END"),
        std::string("TABLE metrics (run TEXT, x AS (hex(zeroblob(400000000))))"),
        std::string("VIRTUAL TABLE metrics USING rtree (id, least, most)")}) {
    create();
    EXPECT_TRUE(is_plain());
    const std::string drop = metrics.find("metrics") == metrics.npos ? "" : "DROP TABLE metrics; ";
    EXPECT_EQ(sql_of(database, drop + "CREATE " + metrics, checked_vfs()), "");
    EXPECT_FALSE(is_plain()) << metrics;
  }
}

TEST_F(RunStoreTest, damaged_usage_of_an_attempt_is_an_error) {
  RunStore store(state);
  store.runs().add(run_record("r1"));
  store.runs().put_step(step_record("r1", "zeta"));
  store.attempts().put({.run = "r1", .step = "zeta", .log = "r1/zeta.1.log"});
  for (const auto* usage : {"{", "[]", R"({"code": "x"})", R"({"gpus": [1]})"}) {
    const auto change = std::string("UPDATE attempts SET usage = '") + usage + "'";
    EXPECT_EQ(sql_of(database, change, checked_vfs()), "");
    EXPECT_THROW(store.attempts().list("r1"), core::EnvironmentError) << usage;
  }
}

TEST_F(RunStoreTest, log_has_a_limited_size) {
  for (int i = 0; i < 4; ++i) {
    RunStore store(state);
    store.key_values().put("k", "v", std::string(3'000'000, 'x'));
  }
  EXPECT_LT(fs::file_size(database.string() + "-wal"), 100'000u);
  EXPECT_EQ(RunStore(state).key_values().find("k", "v")->size(), 3'000'000u);
}

TEST_F(RunStoreTest, other_programs_may_read_it_even_after_a_crash) {
  const pid_t child = ::fork();
  if (child == 0) {
    RunStore store(state);
    for (int i = 0; i < 100; ++i) store.runs().add(run_record("r" + std::to_string(i)));
    ::kill(::getpid(), SIGKILL);
  }
  wait_for(child);
  EXPECT_EQ(sql_of(database, "SELECT count(*) FROM runs"), "100");
  RunStore store(state);
  EXPECT_EQ(store.runs().list().size(), 100u);
}

/// Returns 0 if this process can read run `r` of the store, and each write is refused with advice.
int refusals_of_reader(const fs::path& state) {
  const auto is_refused = [](auto write) {
    try {
      write();
      return false;
    } catch (const core::EnvironmentError& error) {
      return !error.advice().empty() &&
             std::string(error.what()).find("ermission denied") != std::string::npos;
    }
  };
  try {
    RunStore store(state);
    if (!store.is_read_only()) return 1;
    if (!store.runs().find("r") || store.runs().steps("r").size() != 1) return 2;
    if (!is_refused([&] { store.require_writable(); })) return 3;
    if (!is_refused([&] { store.runs().add(run_record("new")); })) return 4;
    if (!is_refused([&] { store.key_values().put("kind", "key", "value"); })) return 5;
    return store.runs().find("r") ? 0 : 6;
  } catch (const core::EnvironmentError&) {
    return 7;
  }
}

TEST_F(RunStoreTest, of_another_user_can_be_read_and_each_write_is_an_error_with_advice) {
  {
    RunStore store(state);
    store.runs().add(run_record("r"));
    store.runs().put_step(step_record("r", "one"));
  }
  // The other user must be able to reach it before it looks.
  fs::permissions(folder.path(), fs::perms(0755));
  const auto check = [&] { return refusals_of_reader(state); };
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(9);
    ::_exit(check());
  }
  if (::geteuid() == 0) {
    EXPECT_EQ(wait_for(child), 0);
  } else {
    wait_for(child);
  }
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THROW(RunStore(folder.path() / "file" / "state"), core::EnvironmentError);
}

/// A journal of SQLite that changes nothing and names a super-journal, as in section 3 of
/// https://www.sqlite.org/fileformat.html.
std::string journal_with(const std::string& super_journal, std::uintmax_t pages) {
  constexpr std::size_t sector = 512, page = 4096, pending_page = 0x40000000 / page + 1;
  const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  const auto number = [](std::size_t value) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  auto text = magic + number(0) + number(0) + number(pages) + number(sector) + number(page);
  text.resize(sector);
  std::size_t sum = 0;
  for (const char c : super_journal) sum += static_cast<unsigned char>(c);
  return text + number(pending_page) + super_journal + number(super_journal.size()) + number(sum) +
         magic;
}

TEST_F(RunStoreTest, of_another_user_names_no_file_that_is_removed) {
  {
    RunStore store(state);
    store.runs().add(run_record("r"));
    store.share();
  }
  const auto precious = folder.path() / "precious";
  core::write_file_atomically(precious, "a key\n");
  core::write_file_atomically(database.string() + "-journal",
                              journal_with(precious, fs::file_size(database) / 4096));
  EXPECT_THROW(RunStore(state).runs().list(), core::EnvironmentError);
  EXPECT_TRUE(fs::exists(precious));
  EXPECT_TRUE(RunStore(state).runs().find("r"));
}

TEST_F(RunStoreTest, of_another_user_loses_nothing_behind_a_link_with_its_runs) {
  const auto theirs = folder.path() / "theirs";
  core::make_folders(theirs / "papers");
  for (const char* place : {"logs", "failed", "detached", "drivers"}) {
    RunStore store(state);
    auto run = run_record("papers");
    run.status = RunStatus::succeeded;
    store.runs().add(run);
    fs::create_directory_symlink(theirs, state / place);
    EXPECT_THROW(store.remove_run(run.id, false), core::EnvironmentError) << place;
    EXPECT_TRUE(fs::exists(theirs / "papers")) << place;
    fs::remove(state / place);
  }
}

TEST_F(RunStoreTest, of_another_user_must_have_no_triggers) {
  { RunStore(state).runs().add(run_record("r")); }
  ASSERT_EQ(
      sql_of(database, "CREATE TRIGGER theirs AFTER UPDATE ON runs BEGIN DELETE FROM runs; END",
             checked_vfs()),
      "");
  RunStore store(state);
  store.runs().set_note("r", "x");
  EXPECT_TRUE(store.runs().find("r"));
}

TEST_F(RunStoreTest, of_another_user_must_have_no_view_in_the_place_of_a_table) {
  { RunStore(state).runs().add(run_record("r")); }
  ASSERT_EQ(sql_of(database,
                   "PRAGMA foreign_keys=OFF; ALTER TABLE steps RENAME TO kept; CREATE VIEW steps "
                   "AS SELECT * FROM kept",
                   checked_vfs()),
            "");
  EXPECT_THROW(RunStore(state).runs().steps("r"), core::EnvironmentError);
}

TEST_F(RunStoreTest, full_disk_is_an_error_with_advice_and_the_database_stays_whole) {
  fs::create_directory(state);
  if (::mount("tmpfs", state.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "cannot mount a small tmpfs: " << std::strerror(errno);
  std::size_t committed = 0;
  try {
    RunStore store(state);
    for (;; ++committed) {
      store.transaction([&] {
        store.runs().add(run_record("r" + std::to_string(committed)));
        for (int i = 0; i < 10; ++i)
          store.runs().put_step(
              step_record("r" + std::to_string(committed), "step" + std::to_string(i)));
      });
    }
  } catch (const core::EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos)
        << error.what();
    EXPECT_FALSE(error.advice().empty());
  }
  EXPECT_GT(committed, 5u);
  ASSERT_EQ(::mount("tmpfs", state.c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  {
    RunStore store(state);
    EXPECT_EQ(store.runs().list().size(), committed);
    EXPECT_EQ(store.runs().steps("r0").size(), 10u);
    store.runs().add(run_record("after"));
  }
  ::umount(state.c_str());
}

}  // namespace
}  // namespace pipeline::store
