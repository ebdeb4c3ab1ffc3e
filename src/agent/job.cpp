#include "agent/job.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace pipeline::agent {
namespace {

/// Beginnings of the variables that a step does not get: it does not know that its job is a task of
/// an array, and has no access token of the user's.
constexpr const char* removed[] = {"SLURM_ARRAY_", "SLURM_JWT"};
/// Beginnings of the variables that a step gets: Slurm describes the job's nodes and devices in
/// them. PIPE_NODE_MEETING comes from the batch script, for ranks.hpp.
constexpr const char* kept[] = {"SLURM_",
                                "SLURMD_",
                                "CUDA_",
                                "GPU_DEVICE_ORDINAL=",
                                "ROCR_VISIBLE_DEVICES=",
                                "ZE_AFFINITY_MASK=",
                                "PIPE_NODE_MEETING="};

template <std::size_t size>
bool begins_with(const char* text, const char* const (&beginnings)[size]) {
  for (const char* beginning : beginnings)
    if (strncmp(text, beginning, strlen(beginning)) == 0) return true;
  return false;
}

/// Prints errno as the reason why the path cannot be used. Returns the exit code.
int report_failure(const char* path) {
  fprintf(stderr, "pipe-agent: %s: %s\n", path, strerror(errno));
  return 1;
}

/// Unsets all variables but those of `kept` that are not in `removed`, and sets a default PATH.
void clean_variables() {
  char** to = environ;
  for (char** from = environ; *from; ++from)
    if (begins_with(*from, kept) && !begins_with(*from, removed)) *to++ = *from;
  *to = nullptr;
  setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
}

/// Reads the line with this number, counted from 0. @return false if the file has no such line
bool read_line(const char* path, long number, char (&line)[NAME_MAX + 2]) {
  FILE* file = fopen(path, "re");
  bool found = file != nullptr;
  for (long read = 0; found && read <= number; ++read)
    found = fgets(line, sizeof line, file) != nullptr;
  if (file) fclose(file);
  if (!found) return false;
  line[strcspn(line, "\n")] = '\0';
  return true;
}

/// Returns the variable's value; an empty text if it is not set.
const char* variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

/// Writes `ID NODE NAME`. ID is the number of Slurm's job, `JOB_TASK` for a task of a job array, or
/// in an allocation that of the step's shell process (PIPE_SLURM_ID); `name` is the name of the job
/// in Slurm.
bool write_begun(const char* path, const char* name) {
  char fresh[PATH_MAX + sizeof ".new"];
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE* file = fopen(fresh, "we");
  if (!file) return false;
  const char *id = variable("PIPE_SLURM_ID"), *array = variable("SLURM_ARRAY_JOB_ID");
  if (!*id) id = *array ? array : variable("SLURM_JOB_ID");
  fprintf(file, "%s%s%s %s %s\n", id, *array ? "_" : "",
          *array ? variable("SLURM_ARRAY_TASK_ID") : "", variable("SLURMD_NODENAME"), name);
  return fclose(file) == 0 && rename(fresh, path) == 0;
}

}  // namespace

int begin_job(char** arguments, int count) {
  const bool has_list = count == 4 && strcmp(arguments[2], "--list") == 0;
  if (count != 3 && !has_list) return 2;
  const char *jobs = arguments[0], *events = arguments[1], *name = arguments[2];
  char line[NAME_MAX + 2];
  if (has_list) {
    errno = 0;
    if (!read_line(arguments[3], strtol(variable("SLURM_ARRAY_TASK_ID"), nullptr, 10), line))
      return report_failure(arguments[3]);
    name = line;
  }
  char path[PATH_MAX], script[PATH_MAX], temporary[] = "/tmp/pipe-slurm-XXXXXX";
  snprintf(path, sizeof path, "%s/%s/claim", jobs, name);
  if (mkdir(path, 0700) != 0) return errno == EEXIST ? 0 : report_failure(path);
  snprintf(path, sizeof path, "%s/%s.begun", events, name);
  if (!write_begun(path, has_list ? variable("SLURM_JOB_NAME") : name)) return report_failure(path);
  if (!mkdtemp(temporary)) return report_failure(temporary);
  const std::string slurm_path = variable("PATH");
  clean_variables();
  setenv("PIPE_PATH", slurm_path.c_str(), 1);
  setenv("PIPE_TEMPORARY", temporary, 1);
  if (has_list) setenv("SLURM_JOB_NAME", name, 1);
  snprintf(script, sizeof script, "%s/%s/script", jobs, name);
  execl("/bin/sh", "sh", script, static_cast<char*>(nullptr));
  return report_failure("/bin/sh");
}

}  // namespace pipeline::agent
