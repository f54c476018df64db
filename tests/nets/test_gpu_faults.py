"""Faults of a GPU: errors of the real compilers, and a device that computes wrongly."""

import subprocess
import uuid

import pytest
import torch

from chess_snn.devices import SIMULATED_GPUS, Device, processor
from chess_snn.nets.gpu import gpu_faults
from chess_snn.nets.gpu.gpu_faults import device_fault_of, explain, gpu_fault


def launcher_error(monkeypatch, **environment) -> BaseException:
    """Return the error that Triton raises when it builds a launcher."""
    build = pytest.importorskip("triton.runtime.build")
    for name in ("CC", "PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((RuntimeError, subprocess.CalledProcessError)) as error:
        build.compile_module_from_src(f"// {uuid.uuid4()}", "launcher")
    return error.value


def test_no_compiler(monkeypatch):
    fault = explain(launcher_error(monkeypatch, PATH="/nowhere"))
    assert "compiler" in fault.fact
    assert "gcc" in fault.remedy


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    error = launcher_error(monkeypatch, CC="/bin/false")
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert "gcc" in explain(error).remedy
    (tmp_path / "Python.h").unlink()
    fault = explain(error)
    assert "Python.h" in fault.fact
    assert "python3-dev" in fault.remedy


def test_a_kernel_that_does_not_compile():
    errors = pytest.importorskip("triton.compiler.errors")
    fault = explain(errors.CompilationError(None, None, "no such instruction"))
    assert fault.fact.startswith("Triton cannot compile a kernel: ")
    assert "pip check" in fault.remedy


@pytest.mark.parametrize(("text", "remedy"), [
    ("The NVIDIA driver on your system is too old (found version 11040). Please update", "driver"),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.\nmore", "driver"),
    ("CUDA error: no kernel image is available for execution on the device", "torch"),
    ("CUDA error: all CUDA-capable devices are busy or unavailable", "compute-mode"),
    ("CUDA error: out of memory", "nvidia-smi"),
    ("CUDA error: system not yet initialized", "fabricmanager"),
    ("CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be", "--gpus"),
])
def test_what_cuda_says(text, remedy):
    fault = explain(RuntimeError(text))
    assert fault.fact == text.partition("\n")[0]
    assert remedy in fault.remedy
    assert str(fault) == f"{fault.fact}; {fault.remedy}"


def test_other_errors_are_told_as_they_are():
    assert str(explain(OSError("disk full"))) == "disk full"
    assert str(explain(ZeroDivisionError())) == "ZeroDivisionError"


# Here the kernel runs in Triton's interpreter, on the CPU.


def test_a_device_that_computes():
    assert gpu_fault("cpu") is None


def test_a_device_that_computes_wrongly(monkeypatch):
    monkeypatch.setattr(gpu_faults, "lif_on_gpu", lambda: lambda currents, *_: currents > 0.5)
    assert "wrongly" in gpu_fault("cpu").fact


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device of this test does not exist")
def test_a_device_that_is_not_there(monkeypatch):
    assert gpu_fault("cuda:0").remedy
    assert device_fault_of(processor()) == ""
    made_up = Device("cuda", 1, "1", "made up", 1 << 30)
    assert device_fault_of(made_up)
    monkeypatch.setenv(SIMULATED_GPUS, "2")
    assert device_fault_of(made_up) == ""
