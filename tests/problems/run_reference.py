"""Runs a reference.py on cases that lie in folders.

    run_reference.py REFERENCE FOLDER...

FOLDER/case.json says what there is: {"shape": {...}, "tensors": [{"role", "name", "dtype", "dims", "file"}]}. Outputs are
written to the files that it names. Tensors are raw, little endian, row major; e4m3 comes as bytes where PyTorch has no such
type. Whatever is wrong with the reference's contract ends this with exit code 1 and a line that says so.
"""

import importlib.util
import json
import sys
from pathlib import Path

import torch

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp8_e4m3": getattr(torch, "float8_e4m3fn", torch.uint8),
    "uint8": torch.uint8,
    "int32": torch.int32,
    "int64": torch.int64,
}


def require(condition, message):
    if not condition:
        sys.exit(f"run_reference: {message}")


def load_module(path):
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bytes_of(tensor):
    return bytes(tensor.detach().contiguous().view(torch.uint8).flatten().tolist())


def read_tensor(folder, entry):
    content = bytearray((folder / entry["file"]).read_bytes())
    return torch.frombuffer(content, dtype=torch.uint8).view(DTYPES[entry["dtype"]]).view(entry["dims"])


def set_shape(module, shape):
    """A shape's numbers are constants of the module, under their own names or in capitals."""
    for name, value in shape.items():
        found = [spelling for spelling in (name, name.upper()) if hasattr(module, spelling)]
        require(found, f"no constant {name}")
        former = getattr(module, found[0])
        setattr(module, found[0], type(former)(value))


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and bytes_of(a) == bytes_of(b)


def check_inputs(module, given):
    """New inputs on every call, shaped like those given."""
    first, second = module.get_inputs(), module.get_inputs()
    require(len(first) == len(given), f"get_inputs gives {len(first)} tensors, expected {len(given)}")
    for i, (mine, theirs) in enumerate(zip(first, given)):
        require(mine.dtype == theirs.dtype, f"input {i} is {mine.dtype}, expected {theirs.dtype}")
        require(mine.shape == theirs.shape, f"input {i} is {tuple(mine.shape)}, expected {tuple(theirs.shape)}")
    require(not all(same(a, b) for a, b in zip(first, second)), "get_inputs gives the same data twice")


def named(state):
    """Without the public contract's placeholder, which holds nothing."""
    return {name: tensor for name, tensor in state.items() if name != "_dummy"}


def check_state(module, model, given):
    """New state in every object, shaped like that given."""
    mine, other = named(model.state_dict()), named(module.Model(*module.get_init_inputs()).state_dict())
    require(mine.keys() == given.keys(), f"state is {sorted(mine)}, expected {sorted(given)}")
    for name, tensor in given.items():
        require(mine[name].dtype == tensor.dtype, f"{name} is {mine[name].dtype}, expected {tensor.dtype}")
        require(mine[name].shape == tensor.shape, f"{name} is {tuple(mine[name].shape)}, expected {tuple(tensor.shape)}")
    require(not mine or not all(same(mine[name], other[name]) for name in mine), "two objects have the same state")


def run_case(module, folder):
    case = json.loads((folder / "case.json").read_text())
    entries = {role: [e for e in case["tensors"] if e["role"] == role] for role in ("state", "input", "output")}
    state = named({entry["name"]: read_tensor(folder, entry) for entry in entries["state"]})
    inputs = [read_tensor(folder, entry) for entry in entries["input"]]
    set_shape(module, case["shape"])
    model = module.Model(*module.get_init_inputs())
    if case.get("contract"):
        check_inputs(module, inputs)
        check_state(module, model, state)
    model.load_state_dict({**model.state_dict(), **state})

    before = [bytes_of(tensor) for tensor in inputs]
    with torch.no_grad():
        outputs = model(*inputs)
    require(before == [bytes_of(tensor) for tensor in inputs], "forward changes its inputs")
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    require(len(outputs) == len(entries["output"]), f"{len(outputs)} outputs, expected {len(entries['output'])}")
    for output, entry in zip(outputs, entries["output"]):
        require(output.dtype == DTYPES[entry["dtype"]], f"{entry['name']} is {output.dtype}, expected {entry['dtype']}")
        require(list(output.shape) == entry["dims"], f"{entry['name']} is {tuple(output.shape)}, expected {entry['dims']}")
        (folder / entry["file"]).write_bytes(bytes_of(output))


def main():
    torch.set_num_threads(1)
    module = load_module(sys.argv[1])
    for folder in sys.argv[2:]:
        run_case(module, Path(folder))


if __name__ == "__main__":
    main()
