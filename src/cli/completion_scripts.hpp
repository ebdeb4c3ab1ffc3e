/// @file
/// The scripts that `pipe completion` prints. A test compares their commands and options with those
/// of the command line.
#pragma once

#include <string_view>

namespace pipeline::cli {

inline constexpr std::string_view bash_completion = R"SH(# bash completion for pipe
_pipe() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "run validate plan graph render build lock runs show metrics compare tag note report serve advise why used export sbom logs code shell artifacts attach cancel resume verify import init doctor gpus clean instances kubernetes profiles schema completion help --help --version" -- "$cur"))
    return
  fi
  case $prev in
    --state | --template-dir) COMPREPLY=($(compgen -d -- "$cur")); return ;;
    --copy | --out | --params) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --orchestrator) COMPREPLY=($(compgen -W "docker local kubernetes" -- "$cur")); return ;;
    -o)
      case $command in
        run | plan | render | build | lock) COMPREPLY=($(compgen -W "docker local kubernetes" -- "$cur")) ;;
        report | export | code) COMPREPLY=($(compgen -f -- "$cur")) ;;
      esac
      return ;;
    --output) COMPREPLY=($(compgen -W "text json" -- "$cur")); return ;;
    --format)
      case $command in
        graph) words="mermaid dot svg" ;;
        sbom) words="cyclonedx spdx provenance" ;;
        export) words="ro-crate openlineage slsa" ;;
      esac
      COMPREPLY=($(compgen -W "$words" -- "$cur"))
      return ;;
    --execution-mode) COMPREPLY=($(compgen -W "fail_fast stop_on_failure continue_on_failure" -- "$cur")); return ;;
    --profile | --bucket) COMPREPLY=($(compgen -W "$(pipe __complete profiles 2>/dev/null)" -- "$cur")); return ;;
    --step | -s | --until | --force | --from) COMPREPLY=($(compgen -W "$(pipe __complete steps 2>/dev/null)" -- "$cur")); return ;;
    --param | -p | --jobs | -j | --context | --namespace | --subject | --limit | --keep | --attempt | --pipeline | --tag | --where | --sort | --columns | --remove) return ;;
  esac
  case $command in
    run) words="--param --params --orchestrator --context --namespace --profile --step --until --jobs --no-cache --force --from --detach --service-account --execution-mode --locked --template-dir --state --output" ;;
    validate) words="--param --params --output" ;;
    graph) words="--param --params --format --output" ;;
    plan) words="--param --params --orchestrator --context --namespace --profile --step --until --no-cache --force --from --verbose --locked --template-dir --state --output" ;;
    render) words="--param --params --orchestrator --context --namespace --profile --step --template-dir --output" ;;
    lock) words="--param --params --orchestrator --context --namespace --profile --upgrade --check --diff --template-dir --state --output" ;;
    build) words="--param --params --orchestrator --context --namespace --profile --step --locked --template-dir --state --output" ;;
    runs) words="--pipeline --tag --where --sort --columns --limit --state --output" ;;
    metrics) words="--csv --state --output" ;;
    compare) words="--all --state --output" ;;
    tag) words="--remove --state --output" ;;
    report) words="--out --state --output" ;;
    serve) words="--port --host --bucket --state --output" ;;
    advise) words="--param --params --patch --state --output" ;;
    why|used) words="--state --output" ;;
    sbom) words="--format --state --output" ;;
    export) words="--format --out --license --state --output" ;;
    code) words="--attempt --copy --state --output" ;;
    shell) words="--attempt --state --output" ;;
    note) words="--state --output" ;;
    show) words="--wide --state --output" ;;
    logs) words="--follow --attempt --state --output" ;;
    artifacts) words="--copy --name --promote --demote --publish --profile --state --output" ;;
    attach) words="--state --output" ;;
    cancel) words="--now --force --state --output" ;;
    resume) words="--jobs --detach --state --output" ;;
    verify) words="--state --output" ;;
    import) words="--out" ;;
    init | gpus) words="--output" ;;
    instances) words="--gpus --class --gpu-memory --compute-capability --memory --cpus --arch --output" ;;
    doctor) words="--state --output" ;;
    clean) words="--containers --images --environments --runs --keep --keep-storage --all --dry-run --state --output" ;;
    kubernetes) words="rbac --namespace --subject" ;;
    profiles | schema) words="--output" ;;
    completion) words="bash zsh fish" ;;
    help) words="run validate plan graph render build lock runs show metrics compare tag note report serve advise why used export sbom logs code shell artifacts attach cancel resume verify import init doctor gpus clean instances kubernetes profiles schema completion" ;;
  esac
  if [[ $cur != -* ]]; then
    case $command in
      run | validate | plan | graph | render | build | lock | advise | profiles) COMPREPLY=($(compgen -f -X '!*.y?(a)ml' -- "$cur") $(compgen -d -- "$cur")); return ;;
      import) COMPREPLY=($(compgen -f -X '!*.json' -- "$cur") $(compgen -d -- "$cur")); return ;;
      init) COMPREPLY=($(compgen -d -- "$cur")); return ;;
      why | used) COMPREPLY=($(compgen -f -- "$cur")); return ;;
      metrics | compare | tag | note | report | attach | cancel | resume | verify) words=$(pipe __complete runs 2>/dev/null) ;;
      show | logs | code | shell | sbom | artifacts | export)
        if ((COMP_CWORD == 2)); then words=$(pipe __complete runs 2>/dev/null)
        elif [[ $command != artifacts && $command != export ]]; then words=$(pipe __complete steps "${COMP_WORDS[2]}" 2>/dev/null)
        else words=$(pipe __complete artifacts "${COMP_WORDS[2]}" 2>/dev/null); fi ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
shopt -s extglob
complete -o filenames -F _pipe pipe
)SH";

inline constexpr std::string_view zsh_completion = R"SH(#compdef pipe
# zsh completion for pipe
_pipe_runs() { local -a runs; runs=(${(f)"$(pipe __complete runs 2>/dev/null)"}); compadd -a runs }
_pipe_steps() { local -a steps; steps=(${(f)"$(pipe __complete steps ${words[2]:-latest} 2>/dev/null)"}); compadd -a steps }
_pipe_all_steps() { local -a steps; steps=(${(f)"$(pipe __complete steps 2>/dev/null)"}); compadd -a steps }
_pipe_profiles() { local -a found; found=(${(f)"$(pipe __complete profiles 2>/dev/null)"}); compadd -a found }
_pipe_artifacts() { local -a found; found=(${(f)"$(pipe __complete artifacts ${words[2]:-latest} 2>/dev/null)"}); compadd -a found }
_pipe() {
  local -a commands file profile orchestrator step upto force template state output
  commands=(
    'run:build what is missing and run the pipeline' 'validate:check a pipeline file' 'plan:say what a run would do'
    'graph:print the graph for Mermaid or Graphviz'
    'render:print the Dockerfile of each step' 'build:make the environments of all steps' 'lock:write the lock file' 'runs:list runs' 'show:show a run'
    'metrics:show the metrics of a run' 'compare:compare runs' 'tag:add tags to a run' 'note:write a note to a run'
    'report:write a run as one HTML file' 'serve:show runs as a live page' 'advise:say what the steps should ask for' 'why:say what made a file' 'used:say what was made with a file' 'export:write a run for other programs' 'sbom:print what an image is made of' 'logs:print what steps printed' 'code:list the code that a step ran' 'shell:open a shell as a step had it' 'artifacts:list outputs, or copy one out' 'attach:show a detached run' 'cancel:stop a run'
    'resume:continue a run whose process was killed' 'verify:look for damaged artifacts' 'init:write a pipeline to start from'
    'import:write the pipeline file of an ECS task definition' 'gpus:list GPUs and who holds them' 'instances:list EC2 instance types that fit'
    'doctor:check this machine' 'clean:remove what pipe has left' 'schema:print the JSON Schema of pipeline files'
    'kubernetes:print the Role that a cluster takes' 'profiles:list named places to run in' 'completion:print a completion script' 'help:explain a command')
  file=('*'{-p,--param}'[set a parameter]:NAME=VALUE: ' '--params[set them from a file]:file:_files' '::file:_files -g "*.y(a|)ml"')
  profile=('--profile[named place to run in]:name:_pipe_profiles')
  orchestrator=({-o,--orchestrator}'[where steps run]:name:(docker local kubernetes)' '--context[of the kubeconfig]:name: ' '--namespace[in the cluster]:name: ' $profile)
  step=({-s,--step}'[only this step]:step:_pipe_all_steps')
  upto=('--until[run only this step and what it needs]:step:_pipe_all_steps')
  force=($upto '*--force[run this step again]:step:_pipe_all_steps' '*--from[and all that depend on it]:step:_pipe_all_steps')
  template=('--template-dir[templates of your own]:folder:_files -/')
  state=('--state[state folder]:folder:_files -/')
  output=('--output[format]:format:(text json)')
  if ((CURRENT == 2)); then _describe command commands; return; fi
  local command=${words[2]}
  shift words; ((CURRENT--))
  case $command in
    run) _arguments $file $orchestrator $step $force $template $state $output {-j,--jobs}'[steps at a time]:N: ' '--no-cache[run every step]' '--locked[fail if the lock file would change]' \
      '--detach[continue in the background, or in the cluster]' '--service-account[as which it acts]:NAME: ' \
      '--execution-mode[when a step fails]:mode:(fail_fast stop_on_failure continue_on_failure)' ;;
    validate) _arguments $file $output ;;
    graph) _arguments $file $output '--format[language]:name:(mermaid dot svg)' ;;
    plan) _arguments $file $orchestrator $step $force $template $state $output '--no-cache[plan for --no-cache]' '--locked[fail if the lock file would change]' {-v,--verbose}'[list code files and key parts]' ;;
    render) _arguments $file $orchestrator $step $template $output ;;
    lock) _arguments $file $orchestrator $template $state $output '--upgrade[take newer versions]:PACKAGE: ' '--check[fail if the file would change]' '--diff[say what would change]' ;;
    build) _arguments $file $orchestrator $step $template $state $output '--locked[fail if the lock file would change]' ;;
    runs) _arguments $state $output '--pipeline[only of this pipeline]:name: ' '--tag[only with this tag]:tag: ' '--where[only runs for which this holds]:expression: ' '--sort[by this value]:value: ' '--columns[show these values]:values: ' {-n,--limit}'[at most]:N: ' ;;
    show) _arguments $state $output '--wide[also phases and usage]' ':run:_pipe_runs' ':step:_pipe_steps' ;;
    metrics) _arguments $state $output '--csv[every value]' ':run:_pipe_runs' ':step:_pipe_steps' ;;
    compare) _arguments $state $output '--all[also what is equal]' '*:run:_pipe_runs' ;;
    tag) _arguments $state $output '*--remove[a tag]:tag: ' ':run:_pipe_runs' '*:tag: ' ;;
    note) _arguments $state $output ':run:_pipe_runs' ':text: ' ;;
    advise) _arguments $file $state $output '--patch[only the patch of the file]' ;;
    why|used) _arguments $state $output ':file:_files' ;;
    shell) _arguments $state $output '--attempt[which]:N: ' ':run:_pipe_runs' ':step:_pipe_steps' '*:command: ' ;;
    code) _arguments $state $output '--attempt[which]:N: ' {-o,--copy}'[copy it into this folder]:folder:_files -/' ':run:_pipe_runs' ':step:_pipe_steps' ;;
    sbom) _arguments $state $output '--format[of the document]:format:(cyclonedx spdx provenance)' ':run:_pipe_runs' ':step:_pipe_steps' ;;
    export) _arguments $state $output '--format[of the export]:format:(ro-crate openlineage slsa)' {-o,--out}'[where to write it]:path:_files' '--license[of the content]:license' ':run:_pipe_runs' ':artifact:_pipe_artifacts' ;;
    report) _arguments $state $output {-o,--out}'[write to]:file:_files' ':run:_pipe_runs' ;;
    serve) _arguments $state $output '--port[the port]:port:' '--host[the address to listen on]:address:' '--bucket[a profile, whose bucket is shown]:profile:_pipe_profiles' ;;
    logs) _arguments $state $output {-f,--follow}'[until the step ends]' '--attempt[which one]:N: ' ':run:_pipe_runs' ':step:_pipe_steps' ;;
    artifacts) _arguments $profile $state $output '--copy[copy out]:destination:_files' '--name[of what is published]:name: ' '--promote[make current]:version: ' '--demote[make the one before current]' '--publish[under a name]:name: ' ':run:_pipe_runs' ':artifact:_pipe_artifacts' ;;
    attach) _arguments $state $output ':run:_pipe_runs' ;;
    cancel) _arguments $state $output '--now[kill at once]' '--force[its driver is gone]' ':run:_pipe_runs' ;;
    verify) _arguments $state $output ':run:_pipe_runs' ;;
    resume) _arguments $state $output {-j,--jobs}'[steps at a time]:N: ' '--detach[continue in the background]' ':run:_pipe_runs' ;;
    init) _arguments $output ':folder:_files -/' ;;
    import) _arguments '--out[write to]:file:_files' ':file:_files -g "*.json"' ;;
    gpus) _arguments $output ;;
    instances) _arguments $output '--gpus[at least]:N: ' '--class[of the GPUs]:model: ' '--gpu-memory[of each]:size: ' \
      '--compute-capability[at least]:version: ' '--memory[at least]:size: ' '--cpus[at least]:N: ' '--arch[of the processor]:name:(x86_64 arm64)' ;;
    doctor) _arguments $state $output ;;
    clean) _arguments $state $output '--containers[of dead runs]' '--images[that pipe has built]' '--environments[of local steps]' '--runs[with logs and artifacts]' '--keep[the newest]:N: ' '--keep-storage[of artifacts or images]:SIZE: ' \
      '--all[all of these]' {-n,--dry-run}'[only say what]' ;;
    kubernetes) _arguments '--namespace[of the Role]:name: ' '--subject[whom it is bound to]:KIND\:NAME: ' ':what:(rbac)' ;;
    profiles) _arguments $output '::file:_files' ;;
    schema) _arguments $output ;;
    completion) _arguments ':shell:(bash zsh fish)' ;;
    help) _describe command commands ;;
  esac
}
_pipe "$@"
)SH";

inline constexpr std::string_view fish_completion = R"SH(# fish completion for pipe
set -l commands run validate plan graph render build lock runs show metrics compare tag note report serve advise why used export sbom logs code shell artifacts attach cancel resume verify import init doctor gpus clean instances kubernetes profiles schema completion help
complete -c pipe -f
complete -c pipe -n "not __fish_seen_subcommand_from $commands" -a "$commands"
complete -c pipe -n "not __fish_seen_subcommand_from $commands" -l version -l help
complete -c pipe -n "__fish_seen_subcommand_from run validate plan graph render build lock advise profiles why used" -F
complete -c pipe -n "__fish_seen_subcommand_from run validate plan graph render build lock advise" -s p -l param -x -d "set a parameter"
complete -c pipe -n "__fish_seen_subcommand_from run validate plan graph render build lock advise" -l params -r -F -d "set them from a file"
complete -c pipe -n "__fish_seen_subcommand_from graph" -l format -x -a "mermaid dot svg"
complete -c pipe -n "__fish_seen_subcommand_from run plan" -l force -l from -l until -x -a "(pipe __complete steps 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from run plan render build lock" -s o -l orchestrator -x -a "docker local kubernetes"
complete -c pipe -n "__fish_seen_subcommand_from run plan render build lock" -l context -l namespace -x
complete -c pipe -n "__fish_seen_subcommand_from run plan render build lock artifacts" -l profile -x -a "(pipe __complete profiles 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from kubernetes" -a rbac
complete -c pipe -n "__fish_seen_subcommand_from kubernetes" -l namespace -l subject -x
complete -c pipe -n "__fish_seen_subcommand_from run plan render build" -s s -l step -x -a "(pipe __complete steps 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from run plan render build lock" -l template-dir -r
complete -c pipe -n "__fish_seen_subcommand_from run plan build" -l locked -d "fail if the lock file would change"
complete -c pipe -n "__fish_seen_subcommand_from lock" -l upgrade -x -d "take newer versions"
complete -c pipe -n "__fish_seen_subcommand_from lock" -l check -d "fail if the file would change"
complete -c pipe -n "__fish_seen_subcommand_from lock" -l diff -d "say what would change"
complete -c pipe -n "__fish_seen_subcommand_from run plan" -l no-cache -d "run every step"
complete -c pipe -n "__fish_seen_subcommand_from run resume" -l detach -d "continue in the background, or in the cluster"
complete -c pipe -n "__fish_seen_subcommand_from run" -l service-account -x -d "as which it acts"
complete -c pipe -n "__fish_seen_subcommand_from run resume" -s j -l jobs -x -d "steps at a time"
complete -c pipe -n "__fish_seen_subcommand_from run" -l execution-mode -x -a "fail_fast stop_on_failure continue_on_failure"
complete -c pipe -n "__fish_seen_subcommand_from plan" -s v -l verbose -d "list code files and key parts"
complete -c pipe -n "__fish_seen_subcommand_from show metrics compare tag note report export sbom logs code shell artifacts attach cancel resume verify" -a "(pipe __complete runs 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from show logs code shell sbom" -a "(pipe __complete steps 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from artifacts export" -a "(pipe __complete artifacts 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from runs" -l pipeline -x
complete -c pipe -n "__fish_seen_subcommand_from runs" -l tag -x
complete -c pipe -n "__fish_seen_subcommand_from runs" -l where -x
complete -c pipe -n "__fish_seen_subcommand_from runs" -l sort -x
complete -c pipe -n "__fish_seen_subcommand_from runs" -l columns -x
complete -c pipe -n "__fish_seen_subcommand_from show" -l wide
complete -c pipe -n "__fish_seen_subcommand_from metrics" -l csv
complete -c pipe -n "__fish_seen_subcommand_from compare" -l all
complete -c pipe -n "__fish_seen_subcommand_from advise" -l patch
complete -c pipe -n "__fish_seen_subcommand_from tag" -l remove -x
complete -c pipe -n "__fish_seen_subcommand_from report export" -s o -l out -r -F
complete -c pipe -n "__fish_seen_subcommand_from code" -s o -l copy -x -a "(__fish_complete_directories)"
complete -c pipe -n "__fish_seen_subcommand_from serve" -l port -x
complete -c pipe -n "__fish_seen_subcommand_from serve" -l host -x
complete -c pipe -n "__fish_seen_subcommand_from serve" -l bucket -x -a "(pipe __complete profiles 2>/dev/null)"
complete -c pipe -n "__fish_seen_subcommand_from runs" -s n -l limit -x
complete -c pipe -n "__fish_seen_subcommand_from logs" -s f -l follow
complete -c pipe -n "__fish_seen_subcommand_from sbom" -l format -x -a "cyclonedx spdx provenance"
complete -c pipe -n "__fish_seen_subcommand_from export" -l format -x -a "ro-crate openlineage slsa"
complete -c pipe -n "__fish_seen_subcommand_from export" -l license -x
complete -c pipe -n "__fish_seen_subcommand_from logs code shell" -l attempt -x
complete -c pipe -n "__fish_seen_subcommand_from artifacts" -l copy -r -F
complete -c pipe -n "__fish_seen_subcommand_from artifacts" -l name -x
complete -c pipe -n "__fish_seen_subcommand_from artifacts" -l promote -x
complete -c pipe -n "__fish_seen_subcommand_from artifacts" -l demote
complete -c pipe -n "__fish_seen_subcommand_from artifacts" -l publish -x
complete -c pipe -n "__fish_seen_subcommand_from cancel" -l now
complete -c pipe -n "__fish_seen_subcommand_from cancel" -l force
complete -c pipe -n "__fish_seen_subcommand_from init import" -F
complete -c pipe -n "__fish_seen_subcommand_from import" -l out -r -F
complete -c pipe -n "__fish_seen_subcommand_from instances" -l gpus -l class -l gpu-memory -l compute-capability -l memory -l cpus -x
complete -c pipe -n "__fish_seen_subcommand_from instances" -l arch -x -a "x86_64 arm64"
complete -c pipe -n "__fish_seen_subcommand_from clean" -l containers -l images -l environments -l keep-storage -l runs -l all
complete -c pipe -n "__fish_seen_subcommand_from clean" -l keep -x
complete -c pipe -n "__fish_seen_subcommand_from clean" -s n -l dry-run
complete -c pipe -n "__fish_seen_subcommand_from run plan build lock runs show metrics compare tag note report serve advise why used export sbom logs code shell artifacts attach cancel resume verify doctor clean" -l state -r
complete -c pipe -n "__fish_seen_subcommand_from run validate plan graph render build lock runs show metrics compare tag note report serve advise why used export sbom logs code shell artifacts attach cancel resume verify init doctor gpus clean instances profiles schema" -l output -x -a "text json"
complete -c pipe -n "__fish_seen_subcommand_from completion" -a "bash zsh fish"
complete -c pipe -n "__fish_seen_subcommand_from help" -a "$commands"
)SH";

}  // namespace pipeline::cli
