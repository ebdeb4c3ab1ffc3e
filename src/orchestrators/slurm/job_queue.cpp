#include "orchestrators/slurm/job_queue.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "core/text.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

constexpr std::size_t queue_fields = 5;
constexpr std::size_t full_word_size = 4000;

unsigned number_of(std::string_view text) {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Returns the part after the array's number: `3` for `4711_3`; empty for a job alone.
std::string_view task_of(std::string_view id) {
  const auto array = array_of(id);
  return array.size() == id.size() ? std::string_view() : id.substr(array.size() + 1);
}

}  // namespace

std::vector<QueuedJob> parse_queue(std::string_view output) {
  std::vector<QueuedJob> jobs;
  for (const auto line : core::lines_of(output)) {
    auto fields = core::split(line, '|');
    if (fields.size() < queue_fields) continue;
    // A name may have any characters; it comes last.
    const auto name = line.substr(static_cast<std::size_t>(fields[4].data() - line.data()));
    jobs.push_back({std::string(fields[0]), std::string(fields[1]), std::string(fields[2]),
                    std::string(fields[3]), std::string(name)});
  }
  return jobs;
}

std::string_view array_of(std::string_view id) { return id.substr(0, id.find('_')); }

std::vector<std::string> shortened(const std::vector<std::string>& ids) {
  std::vector<std::string> words;
  std::map<std::string_view, std::set<unsigned>> arrays;
  for (const auto& id : ids) {
    const auto task = task_of(id);
    if (task.empty() || !core::all(task, core::is_digit))
      words.push_back(id);
    else
      arrays[array_of(id)].insert(number_of(task));
  }
  for (const auto& [array, tasks] : arrays) {
    std::string ranges;
    const auto finish = [&, &array = array] {
      if (!ranges.empty()) words.push_back(std::string(array) + "_[" + ranges + "]");
      ranges.clear();
    };
    for (auto task = tasks.begin(); task != tasks.end();) {
      const auto first = *task;
      auto last = first;
      while (++task != tasks.end() && *task == last + 1) last = *task;
      ranges += (ranges.empty() ? "" : ",") + std::to_string(first);
      if (last != first) ranges += "-" + std::to_string(last);
      if (ranges.size() > full_word_size) finish();
    }
    finish();
  }
  return words;
}

JobQueue::JobQueue(std::vector<QueuedJob> jobs) : jobs_(std::move(jobs)) {
  for (const auto& job : jobs_) {
    by_id_[job.id] = &job;
    auto tasks = task_of(job.id);
    if (tasks.empty()) continue;
    auto& known = arrays_[array_of(job.id)];
    if (!tasks.starts_with('[')) continue;
    tasks = tasks.substr(1, tasks.find_first_of("]%") - 1);
    for (const auto part : core::split(tasks, ',')) {
      // `3`, `3-9`, or `3-9:2` for 3, 5, 7 and 9.
      const auto dash = part.find('-'), colon = part.find(':');
      const auto first = number_of(part);
      const auto last = dash == part.npos ? first : number_of(part.substr(dash + 1));
      const auto step = colon == part.npos ? 1 : number_of(part.substr(colon + 1));
      known.push_back({first, last, std::max(step, 1U), &job});
    }
  }
}

const QueuedJob* JobQueue::find(const std::string& id) const {
  if (const auto found = by_id_.find(id); found != by_id_.end()) return found->second;
  const auto task = task_of(id);
  if (task.empty()) return nullptr;
  if (const auto array = arrays_.find(array_of(id)); array != arrays_.end())
    for (const auto& tasks : array->second)
      if (const auto number = number_of(task);
          tasks.first <= number && number <= tasks.last && (number - tasks.first) % tasks.step == 0)
        return tasks.job;
  // An array that was cancelled before its begin is listed like a job.
  const auto whole = by_id_.find(array_of(id));
  return whole == by_id_.end() ? nullptr : whole->second;
}

bool JobQueue::has_only_array_of(const std::string& id) const {
  return arrays_.contains(array_of(id)) && !find(id);
}

}  // namespace pipeline::orchestrators::slurm
