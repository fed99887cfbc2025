"""Serves a model with llama.cpp until it is killed. Runs in an interpreter of its own, which has `xllamacpp`.

    python llama_server.py MODEL TEMPLATE WINDOW

Prints the address once it listens.
"""

import sys
import threading

import xllamacpp  # pyright: ignore[reportMissingImports] -- only in that interpreter

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
with open(sys.argv[2]) as file:
    parameters.chat_template = file.read()
parameters.n_ctx = int(sys.argv[3])
parameters.port = 0
parameters.n_parallel = 1
parameters.use_jinja = True
parameters.ctx_shift = False
parameters.endpoint_slots = True
parameters.cpuparams.n_threads = 1  # on a machine with other work to do, more wait for each other
parameters.sampling.temp = 0.0
server = xllamacpp.Server(parameters)
sys.stdout.write(f"listening at {server.listening_address}\n")
sys.stdout.flush()
threading.Event().wait()
