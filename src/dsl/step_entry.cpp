#include "dsl/step_entry.hpp"

#include <cxxabi.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"
#include "dsl/array_folder.hpp"
#include "dsl/declaration.hpp"

namespace pipeline::dsl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Returns the value of a variable that the orchestrator sets. Throws std::runtime_error if it is
/// not set.
std::string required(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (!value)
    throw std::runtime_error("the variable " + name +
                             " is not set: the step was not started by a run");
  return value;
}

/// The arguments, results and context of the step that this process executes.
class ProcessStep final : public detail::StepRun {
 public:
  ProcessStep(const detail::Declaration& declaration, std::stop_token stop)
      : declaration_(declaration) {
    pipeline_ = core::variable("PIPE_PIPELINE");
    step_ = core::variable("PIPE_STEP_NAME");
    run_id_ = core::variable("PIPE_RUN_ID");
    attempt_ =
        static_cast<unsigned>(std::max(1, std::atoi(core::variable("PIPE_ATTEMPT").c_str())));
    code_ = fs::current_path();
    scratch_ = fs::path(core::variable("PIPE_FAILURE_FILE")).parent_path();
    checkpoint_ = core::variable("PIPE_CHECKPOINT");
    if (!core::variable("PIPE_NODE_COUNT").empty()) read_nodes();
    stop_ = std::move(stop);
  }

  std::string input(std::size_t i) const override {
    return required(core::variable_name("PIPE_INPUT_", declaration_.arguments.at(i).name));
  }

  std::vector<std::string> inputs(std::size_t i) const override {
    const fs::path folder = input(i);
    std::vector<std::string> paths;
    const auto index = detail::read_json(folder / "index.json");
    for (const auto& entry : *index)
      if (!entry.at("file").is_null())
        paths.push_back((folder / entry.at("file").get<std::string>()).string());
    return paths;
  }

  Json parameter(std::size_t i, bool is_text) const override {
    const auto text =
        required(core::variable_name("PIPE_PARAM_", declaration_.arguments.at(i).name));
    if (is_text) return text;
    auto value = core::parse_json(text);
    return value.is_discarded() ? Json(text) : Json(value);
  }

  std::string output(std::size_t i) const override {
    const auto& name = declaration_.outputs.at(i).name;
    // The processes of a node share the folder of its outputs.
    if (local_rank_ > 0) return scratch_ + "/discarded-" + std::to_string(local_rank_) + "-" + name;
    return required(core::variable_name("PIPE_OUTPUT_", name));
  }

  void doing(const char* what, std::size_t index) override {
    doing_ = what;
    index_ = index;
  }

  /// Returns `while reading its argument 'data'`, or an empty text while the function itself runs.
  std::string while_doing() const {
    if (!*doing_) return {};
    const bool is_result = std::string_view(doing_).find("result") != std::string_view::npos;
    const auto& name =
        is_result ? declaration_.outputs.at(index_).name : declaration_.arguments.at(index_).name;
    return std::string("while ") + doing_ + " '" + name + "'";
  }

 private:
  void read_nodes() {
    const auto number = [](const char* name) {
      return static_cast<unsigned>(std::max(0, std::atoi(required(name).c_str())));
    };
    rank_ = number("RANK");
    world_size_ = number("WORLD_SIZE");
    local_rank_ = number("LOCAL_RANK");
    node_rank_ = number("PIPE_NODE_RANK");
    port_ = number("MASTER_PORT");
    const auto all = required("PIPE_NODE_ADDRESSES");
    for (const auto address : core::split(all, ',')) addresses_.emplace_back(address);
  }

  const detail::Declaration& declaration_;
  const char* doing_ = "";
  std::size_t index_ = 0;
};

/// Returns the name of a type as users write it.
std::string demangled(const char* name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                              std::free);
  auto type = detail::tidy_type(status == 0 ? text.get() : name);
  // The type that std::throw_with_nested throws.
  constexpr std::string_view nested = "std::_Nested_exception<";
  if (type.starts_with(nested) && type.ends_with('>'))
    type = type.substr(nested.size(), type.size() - nested.size() - 1);
  return type;
}

std::string type_of_current_exception() {
  const auto* type = abi::__cxa_current_exception_type();
  return type ? demangled(type->name()) : "an unknown type";
}

/// Appends type and message of the exception and of the exceptions nested in it, the outermost
/// first.
void unroll(const std::exception_ptr& error, json& list) {
  constexpr std::size_t max_causes = 20;
  if (list.size() == max_causes) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    list.push_back({{"type", demangled(typeid(e).name())}, {"message", e.what()}});
    try {
      std::rethrow_if_nested(e);
    } catch (...) {
      unroll(std::current_exception(), list);
    }
  } catch (const std::string& text) {
    list.push_back({{"type", "std::string"}, {"message", text}});
  } catch (const char* text) {
    list.push_back({{"type", "const char*"}, {"message", text ? text : ""}});
  } catch (const std::nested_exception& nested) {
    list.push_back({{"type", type_of_current_exception()}, {"message", ""}});
    if (const auto inner = nested.nested_ptr()) unroll(inner, list);
  } catch (...) {
    list.push_back({{"type", type_of_current_exception()}, {"message", ""}});
  }
}

/// The step that this process executes, for the report of a failure.
struct CurrentStep {
  const ProcessStep* process = nullptr;  ///< Null until the function is called.
  const detail::Declaration* declaration = nullptr;
} current;

/// Writes the failure to the log and to PIPE_FAILURE_FILE.
/// @param how verb of the message, such as `threw`
void report_failure(const std::exception_ptr& error, const char* how) {
  json all = json::array();
  unroll(error, all);
  const auto doing = current.process ? current.process->while_doing() : std::string();
  const auto& declaration = *current.declaration;
  json failure = all[0];
  failure["how"] = how;
  const auto declared_at = fs::path(declaration.where.file_name()).filename().string() + ":" +
                           std::to_string(declaration.where.line());
  failure["where"] = doing + (doing.empty() ? "" : ", ") + "step '" + declaration.options.name +
                     "' at " + declared_at;
  failure["causes"] = json::array();
  for (std::size_t i = 1; i < all.size(); ++i) failure["causes"].push_back(all[i]);

  std::string text;
  for (const auto& each : all) {
    const auto message = each["message"].get<std::string>();
    text += (text.empty() ? std::string(how) + " " : "  caused by ") +
            each["type"].get<std::string>() + (message.empty() ? "" : ": ") + message + "\n";
  }
  text += "  " + failure["where"].get<std::string>() + "\n";
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
  const auto file = core::variable("PIPE_FAILURE_FILE");
  if (file.empty()) return;
  try {
    core::write_file_atomically(file, failure.dump(-1, ' ', false, json::error_handler_t::replace));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "  (cannot write %s: %s)\n", file.c_str(), e.what());
  }
}

/// Reports an exception that is not caught, in a thread or from a noexcept function.
[[noreturn]] void on_terminate() {
  if (const auto error = std::current_exception())
    report_failure(error, "was ended by an uncaught exception,");
  std::abort();
}

/// Prints the stack of a crash, as far as that is possible without debug symbols; then ends the
/// process with the signal.
void on_crash(int signal) {
  void* frames[64];
  const auto count = ::backtrace(frames, 64);
  const char* name = ::sigabbrev_np(signal);
  for (const char* part : {"crashed: SIG", name ? name : "?", "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::backtrace_symbols_fd(frames, count, STDERR_FILENO);
  ::raise(signal);  // SA_RESETHAND has restored the default action, which ends the process.
}

/// Makes on_crash() the handler of the signals that crashes raise.
void catch_crashes() {
  void* frame;
  ::backtrace(&frame, 1);  // Loads its libraries now, which a signal handler must not do.
  // The handler has a stack of its own, because a thread's may have overflowed.
  static char stack[64 * 1024];
  stack_t handler_stack{};
  handler_stack.ss_sp = stack;
  handler_stack.ss_size = sizeof stack;
  ::sigaltstack(&handler_stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    ::sigaction(signal, &action, nullptr);
}

int stop_pipe = -1;  ///< Write end of the pipe that wakes the thread of stop_on_signal().

/// Requests a stop of the function on SIGTERM and SIGINT. The thread lives as long as the process.
void stop_on_signal(std::stop_source source) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  stop_pipe = ends[1];
  std::thread([source, read_end = ends[0]]() mutable {
    char byte;
    while (::read(read_end, &byte, 1) < 0 && errno == EINTR) {
    }
    source.request_stop();
  }).detach();
  struct sigaction action {};
  action.sa_handler = [](int) {
    const char byte = 0;
    constexpr int exit_code = 143;  // 128 + SIGTERM, as a shell reports a killed process.
    if (::write(stop_pipe, &byte, 1) < 0) ::_exit(exit_code);
  };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

/// Returns the value of an option of this process, from its command line: the arguments of `main`
/// are not known here, and their positions differ if a loader has started the program.
std::optional<std::string> option_of_process(std::string_view name) {
  const auto line = core::read_file("/proc/self/cmdline");
  const auto option = '\0' + std::string(name) + '\0';
  const auto at = line.find(option);
  if (at == line.npos) return std::nullopt;
  return line.substr(at + option.size(), line.find('\0', at + option.size()) - at - option.size());
}

/// Returns false if the run has declared another function for this step than this process.
bool is_function_of_run(const detail::Declaration& step) {
  const auto wanted = option_of_process("--pipe-function");
  const auto declared = detail::address_of(step);
  return !wanted || declared.empty() || *wanted == declared;
}

/// Returns the function step of this name. Throws InputError if the pipeline has none, or if its
/// function is not that of the run.
const detail::Declaration& find_step(const Pipeline& pipeline, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& step : pipeline.steps()) {
    if (step.options.name == name && step.entry) {
      if (is_function_of_run(step)) return step;
      throw core::InputError(
          "step '" + name + "' of pipeline '" + pipeline.name() +
          "' is another function here than in the run: what a program declares must not depend on "
          "variables, files or arguments that its steps lack, and pipelines of one program need "
          "names of their own, or enter_steps() with all of them before the first run()");
    }
    if (step.entry) names.push_back(step.options.name);
  }
  throw core::InputError("this program has no function step '" + name + "'",
                         core::did_you_mean(name, names));
}

}  // namespace

std::optional<std::string> step_to_enter() { return option_of_process("--pipe-step"); }

bool has_step_to_enter(const Pipeline& pipeline) {
  const auto name = step_to_enter();
  return name && std::ranges::any_of(pipeline.steps(), [&](const detail::Declaration& step) {
           return step.entry && step.options.name == *name && is_function_of_run(step);
         });
}

int enter_step(const Pipeline& pipeline, const std::string& name) {
  try {
    const auto& declaration = find_step(pipeline, name);
    current.declaration = &declaration;
    std::set_terminate(on_terminate);
    catch_crashes();
    std::stop_source source;
    if (std::ranges::find(declaration.arguments, detail::Slot::context, &detail::Argument::slot) !=
        declaration.arguments.end())
      stop_on_signal(source);
    if (!declaration.outputs.empty())
      detail::make_arrays_in(
          fs::path(core::variable(core::variable_name("PIPE_OUTPUT_", declaration.outputs[0].name)))
              .parent_path());
    ProcessStep process(declaration, source.get_token());
    current.process = &process;
    try {
      declaration.entry(declaration.function, process);
    } catch (...) {
      report_failure(std::current_exception(), "threw");
      return 1;
    }
    std::fflush(stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

}  // namespace pipeline::dsl
