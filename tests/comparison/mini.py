"""Runs mini-swe-agent as its own benchmark does (run/benchmarks/swebench.py), but in the directories of the projects.

`mini.py URL OUT NAME=DIRECTORY…` runs each task in its directory and writes what it submitted to OUT/NAME.patch.
"""

import sys
from pathlib import Path

import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.config import builtin_config_dir
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

from tasks import TASKS

url, out = sys.argv[1], Path(sys.argv[2])
config = yaml.safe_load((builtin_config_dir / "benchmarks/swebench.yaml").read_text())
for argument in sys.argv[3:]:
    name, directory = argument.split("=", 1)
    settings = dict(config["model"], model_name="openai/scripted", cost_tracking="ignore_errors")
    settings["model_kwargs"] = dict(settings.get("model_kwargs", {}), api_base=url + "/v1", api_key="none")
    environment = dict(config["environment"], cwd=directory)
    # As in the benchmark's images, no start-up file of the person is read.
    environment["env"].pop("BASH_ENV", None)
    environment = {key: environment[key] for key in ("cwd", "env", "timeout")}
    agent = DefaultAgent(LitellmModel(**settings), LocalEnvironment(**environment),
                         output_path=out / (name + ".traj.json"), **config["agent"])
    info = agent.run(TASKS[name].prompt(name))
    # The patch is written byte for byte. If bytes are missing, the agent has lost them earlier.
    (out / (name + ".patch")).write_bytes(info["submission"].encode())
    (out / (name + ".steps")).write_text(str(agent.n_calls))
