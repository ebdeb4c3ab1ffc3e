#include "cli/common_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/one_of.hpp"
#include "cli/options.hpp"
#include "core/diagnostic.hpp"
#include "core/utf8.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "spec/parameters_file.hpp"

namespace pipeline::cli {

void add_output(CLI::App& app, Options& options) {
  app.add_option_function<std::string>(
         "--output", [&options](const std::string& format) { options.json = format == "json"; },
         "text, or json for programs")
      ->check(one_of({"text", "json"}))
      ->type_name("FORMAT");
}

void add_state(CLI::App& app, Options& options) {
  app.add_option("--state", options.state,
                 "Where runs and artifacts are kept (default: $PIPE_HOME, or .pipe beside the "
                 "pipeline file)")
      ->type_name("DIR");
  add_output(app, options);
}

void add_file_only(CLI::App& app, Options& options) {
  if (!options.program)
    app.add_option("FILE", options.file, "The pipeline file")->type_name("")->capture_default_str();
}

void add_file(CLI::App& app, Options& options) {
  add_file_only(app, options);
  app.add_option_function<std::vector<std::string>>(
         "-p,--param",
         [&options](const std::vector<std::string>& given) {
           for (const auto& parameter : given) {
             const auto equals = parameter.find('=');
             if (equals == parameter.npos || equals == 0)
               throw core::InputError("--param " + parameter + ": expected NAME=VALUE",
                                      "write --param NAME=VALUE");
             if (!core::is_utf8(parameter))
               throw core::InputError("--param " + core::printable(parameter) + " is not UTF-8",
                                      "write the value in UTF-8");
             const auto name = parameter.substr(0, equals);
             options.parameters[name] = parameter.substr(equals + 1);
             options.parameter_places.erase(name);
           }
         },
         "Set a parameter of the pipeline, or with STEP.NAME=VALUE of one step; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--params",
         [&options](const std::string& file) {
           auto found = spec::load_parameters(file);
           // A value of --param takes precedence, wherever it stands.
           for (auto& [name, value] : found.values)
             if (options.parameters.try_emplace(name, std::move(value)).second)
               options.parameter_places[name] = found.places[name];
         },
         "Set parameters from a YAML or JSON file, a map of names to values; --param takes "
         "precedence")
      ->type_name("FILE");
}

void add_profile(CLI::App& app, Options& options) {
  app.add_option("--profile", options.profile,
                 "Where steps run and what goes with it, by a name from profiles.yaml (default: "
                 "$PIPE_PROFILE)")
      ->type_name("NAME");
}

void add_cluster(CLI::App& app, Options& options) {
  for (const auto& entry : orchestrators::catalog())
    for (const auto& field : entry.connection)
      if (!field.option_help.empty())
        app.add_option_function<std::string>(
               "--" + field.name,
               [&options, name = field.name](const std::string& value) {
                 options.connection[name] = value;
               },
               field.option_help)
            ->type_name("NAME");
}

void add_orchestrator(CLI::App& app, Options& options) {
  app.add_option("-o,--orchestrator", options.orchestrator,
                 "Where steps run: " + orchestrators::describe_orchestrators())
      ->check(one_of(orchestrators::orchestrator_names()))
      ->type_name("NAME")
      ->capture_default_str();
  add_cluster(app, options);
  add_profile(app, options);
}

void add_step(CLI::App& app, Options& options, const char* help) {
  app.add_option("-s,--step", options.step, help)->type_name("STEP");
}

void add_until(CLI::App& app, Options& options, const char* help) {
  app.add_option("-s,--step,--until", options.step, help)->type_name("STEP");
}

void add_force(CLI::App& app, Options& options) {
  app.add_option("--force", options.force, "Run this step, though it has a result; may be repeated")
      ->type_name("STEP")
      ->allow_extra_args(false);
  app.add_option("--from", options.from,
                 "Run this step and all that depend on it, though they have results; may be "
                 "repeated")
      ->type_name("STEP")
      ->allow_extra_args(false);
}

void add_template_dir(CLI::App& app, Options& options) {
  app.add_option("--template-dir", options.template_dir,
                 "Folder with templates that override the built-in ones")
      ->type_name("DIR")
      ->check(CLI::Validator(CLI::ExistingDirectory).description(""));
}

void add_run(CLI::App& app, Options& options) {
  add_required_run(app, options);
  app.get_option("RUN")->required(false)->capture_default_str();
}

void add_required_run(CLI::App& app, Options& options) {
  app.add_option("RUN", options.run,
                 "A run: its identifier, a unique prefix of it, 'latest', 'latest-success' or "
                 "'PIPELINE@latest'")
      ->type_name("")
      ->required();
}

void add_attempt(CLI::App& app, Options& options, const char* help) {
  app.add_option("STEP", options.step, help ? help : "A step of that run")
      ->type_name("")
      ->required(!help);
  app.add_option("--attempt", options.attempt, "Number of the attempt (default: the last one)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1'000'000u).description(""));
}

void add_jobs(CLI::App& app, Options& options) {
  app.add_option("-j,--jobs", options.jobs,
                 "Steps at a time (default: the number of CPUs; on a cluster 100)")
      ->type_name("N")
      ->check(CLI::Range(1u, 100'000u).description(""));
}

void add_locked(CLI::App& app, Options& options) {
  app.add_flag("--locked", options.lock.frozen,
               "Fail if the lock file would change, as in CI: exit code 2 says how");
}

void add_verbosity(CLI::App& app, Options& options) {
  auto* verbose = app.add_flag("-v,--verbose", options.verbose,
                               "Show each metric that a step reports, not only its last values");
  app.add_flag("-q,--quiet", options.quiet, "Show only how it ended")->excludes(verbose);
}

void add_run_options(CLI::App& app, Options& options) {
  add_file(app, options);
  add_orchestrator(app, options);
  add_until(app, options, "Run only this step and what it needs");
  add_jobs(app, options);
  app.add_flag("--no-cache", options.no_cache, "Run every step, also those that have not changed");
  add_force(app, options);
  app.add_flag("--detach", options.detach,
               "Return once the run has begun: it continues in the background, without the "
               "terminal, or on a cluster driven from within");
  app.add_option("--service-account", options.service_account,
                 "Service account of the driver in a cluster")
      ->type_name("NAME")
      ->capture_default_str();
  add_verbosity(app, options);
  add_locked(app, options);
  app.add_option("--execution-mode", options.execution_mode,
                 "What happens to other steps when one has failed (default: the file's, or "
                 "continue_on_failure)")
      ->check(one_of({"fail_fast", "stop_on_failure", "continue_on_failure"}))
      ->type_name("MODE");
  add_template_dir(app, options);
  add_state(app, options);
}

}  // namespace pipeline::cli
