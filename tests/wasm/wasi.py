"""Runs a program for WASI on a folder: `python wasi.py PROGRAM DIR`."""

import sys

from wasmtime import Engine, ExitTrap, Linker, Module, Store, WasiConfig

program, folder = sys.argv[1:]
engine = Engine()
store = Store(engine)
host = WasiConfig()
host.argv = ["models", "compare", "/models"]
host.preopen_dir(folder, "/models")
host.inherit_stdout()
host.inherit_stderr()
store.set_wasi(host)
linker = Linker(engine)
linker.define_wasi()
instance = linker.instantiate(store, Module.from_file(engine, program))
try:
    instance.exports(store)["_start"](store)
except ExitTrap as ended:
    sys.exit(ended.code)
