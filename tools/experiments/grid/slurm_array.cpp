#include "tools/experiments/grid/slurm_array.h"

#include <fmt/format.h>

#include <iomanip>
#include <sstream>

#include "framework/core/shell_word.h"

namespace precast::tools {
namespace {

/// Quotes a value for an #SBATCH line. sbatch reads quotes and backslashes as a shell does.
std::string sbatch_value(const std::string& text) {
  std::ostringstream value;
  value << std::quoted(text);
  return value.str();
}

/// Escapes `text` for a file name of sbatch, in which % begins a placeholder.
std::string in_file_name(std::string text) {
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 2))
    text.insert(at, 1, '%');
  return text;
}

}  // namespace

std::string slurm_script(const Sweep& sweep, const std::filesystem::path& program) {
  const bool gpu = sweep.slots.devices != std::vector<std::string>{"cpu"};
  const std::filesystem::path folder = std::filesystem::absolute(sweep.folder);
  std::string text = "#!/bin/bash\n";
  text +=
      fmt::format("#SBATCH --job-name={}\n", sbatch_value("precast-" + sweep.path.stem().string()));
  text += fmt::format("#SBATCH --array=0-{}\n", sweep.trials.size() - 1);
  text += "#SBATCH --ntasks=1\n";
  if (sweep.slots.cores_per_slot > 0)
    text += fmt::format("#SBATCH --cpus-per-task={}\n", sweep.slots.cores_per_slot);
  if (gpu) text += "#SBATCH --gpus-per-task=1\n";
  text += "#SBATCH --requeue\n#SBATCH --open-mode=append\n";
  text +=
      "# Two minutes before the time limit, ask the trial to save.\n#SBATCH --signal=USR1@120\n";
  text += fmt::format("#SBATCH --output={}\n",
                      sbatch_value(in_file_name(folder.string()) + "/slurm-%a.out"));
  text += "# The trials when this script was written, by array index.\ntrials=(\n";
  for (const Trial& trial : sweep.trials) text += fmt::format("  {}\n", shell_word(trial.id));
  text += ")\n";
  text += fmt::format("cd {} || exit 5\n", shell_quoted(std::filesystem::current_path().string()));
  text += "# Since Slurm 22.05, srun does not inherit --cpus-per-task from sbatch.\n";
  std::string keys;
  for (const Setting& one : sweep.overrides)
    keys += " " + shell_word(fmt::format("--{}={}", one.key, one.value));
  text += fmt::format(
      "srun ${{SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}} {} grid {}{} "
      "--trial=\"${{trials[$SLURM_ARRAY_TASK_ID]}}\"\ncode=$?\n",
      shell_quoted(program.string()), shell_quoted(sweep.path.string()), keys);
  text += "# The trial has saved a checkpoint but has not finished: run it again.\n";
  text +=
      "[ $code = 85 ] && scontrol requeue \"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\"\n"
      "exit $code\n";
  return text;
}

}  // namespace precast::tools
