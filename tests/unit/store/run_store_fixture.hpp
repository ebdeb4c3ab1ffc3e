/// @file
/// A run store in a folder of its own, and records for it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <sqlite3.h>

#include "core/file.hpp"
#include "store/run_store.hpp"

namespace pipeline::store {

namespace fs = std::filesystem;

inline RunRecord run_record(const std::string& id, const std::string& pipeline = "digits") {
  RunRecord run{.id = id,
                .pipeline = pipeline,
                .orchestrator = "docker",
                .file = "/x/pipeline.yaml",
                .parameters = R"({"c":1.0})",
                .git_commit = "abc"};
  run.git_dirty = true;
  run.started = WallTime(std::chrono::milliseconds(1'700'000'000'123));
  run.driver.process = ProcessId::self();
  run.steps = 2;
  return run;
}

inline StepRecord step_record(const std::string& run, const std::string& name,
                              StepStatus status = StepStatus::succeeded) {
  StepRecord step{.run = run, .name = name, .status = status, .key = "k-" + name};
  step.started = WallTime(std::chrono::milliseconds(10));
  step.ended = WallTime(std::chrono::milliseconds(35));
  step.took = std::chrono::milliseconds(25);
  step.attempts = 2;
  step.image = "sha256:1";
  step.message = "müde";
  step.parameters = "{}";
  step.outputs = {{"data", "data.csv", core::sha256(name), false, 12},
                  {"model", "model", core::sha256("m" + name), true, 34}};
  return step;
}

/// Returns the result of a statement in a connection of its own, or the error.
/// @param vfs what writes the file; if null, SQLite by itself, which writes no checksums
inline std::string sql_of(const fs::path& file, const std::string& sql, const char* vfs = nullptr) {
  sqlite3* database = nullptr;
  std::string result;
  sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
  char* error = nullptr;
  sqlite3_exec(
      database, sql.c_str(),
      [](void* to, int, char** values, char**) {
        *static_cast<std::string*>(to) += values[0] ? values[0] : "";
        return 0;
      },
      &result, &error);
  if (error) result = error;
  sqlite3_free(error);
  sqlite3_close(database);
  return result;
}

class RunStoreTest : public ::testing::Test {
 protected:
  core::TemporaryFolder folder;
  fs::path state = folder.path() / "state";
  fs::path database = state / "pipe.db";
};

}  // namespace pipeline::store
