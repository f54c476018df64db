"""What the parts of the GPU benchmark share: the device, how to time it, and what is predicted."""

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Final

import torch

from benchmarks.device_model import H200, PASS_SHARE, model_of
from benchmarks.device_trace import DeviceWork, read_trace
from benchmarks.harness import QUICK, Pace, Work, rates_in_turn
from benchmarks.net import matrix_flops_per_s
from benchmarks.report import Report
from chess_snn.nets import NetConfig
from chess_snn.nets.inference_neurons import InferenceNeurons, ReferenceNeurons, choose_neurons
from chess_snn.nets.model.neuron import lif, lif_on_gpu

_PACE: Final = Pace(rounds=5, turn_s=0.05)
_PACKAGES: Final = ("torch", "triton", "numpy", "numba")
_GPU_FACTS: Final = (
    "name,driver_version,clocks.max.sm,clocks.max.mem,pcie.link.gen.current,mig.mode.current"
)


class GpuBench:
    """One device, and the report that figures of it go to."""

    def __init__(
        self, report: Report, device: torch.device, quick: bool, traces: Path | None
    ) -> None:
        self.report, self.device, self.quick, self.traces = report, device, quick, traces
        self.on_gpu = device.type == "cuda"
        self.model = model_of(torch.cuda.get_device_name(device)) if self.on_gpu else H200
        self._peaks: tuple[float, float] | None = None

    @property
    def peaks(self) -> tuple[float, float]:
        """Operations/s of a product of matrices in bf16 and bytes/s of a copy, measured once."""
        if self._peaks is None:
            side, size = (256, 1 << 22) if self.quick else (8192, 1 << 31)
            flops = matrix_flops_per_s(torch.bfloat16, side, self.device, self.wait)
            source = torch.randn(size // 4, device=self.device)
            target = torch.empty_like(source)
            bytes_per_s = 2 * size * self.rate(lambda: target.copy_(source))
            self._peaks = flops, bytes_per_s
            self.add("matrix product, bf16", flops / 1e12, "TFLOP/s",
                     predicted=self.model.matrix_flops_per_s / 1e12)
            self.add("copy within the device", bytes_per_s / 1e9, "GB/s",
                     predicted=self.model.copy_bytes_per_s / 1e9)
        return self._peaks

    def add(
        self, name: str, value: float, unit: str, *,
        at_least: float | None = None, at_most: float | None = None,
        predicted: float | None = None,
    ) -> None:
        """Add one figure; a prediction is of :attr:`model`, so it is left out on a CPU."""
        self.report.add(name, value, unit, at_least=at_least, at_most=at_most,
                        predicted=predicted if self.on_gpu else None)

    def traced(
        self, name: str, call: Callable[[], object], times: int = 1
    ) -> list[DeviceWork]:
        """The device's work in ``times`` calls; the trace stays if the user named a folder."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = self.traces or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.trace.json"
            activities = [torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=activities) as profile:
                for _ in range(times):
                    call()
                self.wait()
            profile.export_chrome_trace(str(path))
            return read_trace(path)

    def rate(self, call: Callable[[], object]) -> float:
        """Calls a second, until the device has finished them."""
        return rates_in_turn({0: Work(call)}, QUICK if self.quick else _PACE, self.wait)[0]

    def wait(self) -> None:
        """Wait for the device."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def randn(self, *shape: int) -> torch.Tensor:
        """Random numbers on the device, bfloat16; zeros would be computed faster."""
        return torch.randn(shape, device=self.device).to(torch.bfloat16)

    def images(self, ticks: int, rows: int, channels: int) -> torch.Tensor:
        """Random currents [T, B, C, 8, 8] in channels-last memory."""
        folded = self.randn(ticks * rows, channels, 8, 8)
        folded = folded.contiguous(memory_format=torch.channels_last)
        return folded.view(ticks, rows, channels, 8, 8)


def facts(bench: GpuBench) -> None:
    """Note the machine and its software, and add the device's peaks."""
    installed = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    versions = ", ".join(f"{name} {installed.get(name, 'missing')}" for name in _PACKAGES)
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    bench.report.note(f"Python {platform.python_version()}, {versions}, cuDNN {cudnn}, "
                      f"C compiler {shutil.which('cc')}")
    if bench.on_gpu and shutil.which("nvidia-smi"):
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={_GPU_FACTS}", "--format=csv"], capture_output=True,
            text=True, check=False, timeout=30,
        )
        for line in (told.stdout or told.stderr).splitlines():
            bench.report.note(line)
    _ = bench.peaks


def neurons(bench: GpuBench) -> None:
    """Add the fused passes beside the bandwidth and the reference."""
    rows, channels = (64, 32) if bench.quick else (4096, 128)
    config = NetConfig(ticks=4)
    current, bias = bench.images(4, rows, channels), bench.randn(channels)
    shortcut = bench.images(4, rows, channels)
    size = current.numel() * current.element_size()
    _, bytes_per_s = bench.peaks
    fused, reference = choose_neurons(config, bench.device), ReferenceNeurons(config)
    bench.report.note(f"neurons: {fused.kind}")

    def fire(neurons: InferenceNeurons) -> object:
        return neurons.fire(current, bias)

    def add_and_fire(neurons: InferenceNeurons) -> object:
        return neurons.add_and_fire(shortcut, current, bias)

    for name, call, num_bytes in (
        ("fire", fire, 2 * size), ("add and fire", add_and_fire, 4 * size)
    ):
        rate = bench.rate(partial(call, fused))
        bench.add(f"{name}: of the bandwidth", num_bytes * rate / bytes_per_s, "share",
                  at_least=0.7, predicted=PASS_SHARE)
        bench.add(f"{name}: reference over fused",
                  rate / bench.rate(partial(call, reference)), "times")
    current.requires_grad_(True)
    for name, neuron in {"fused": lif_on_gpu() if bench.on_gpu else lif, "reference": lif}.items():
        spikes = neuron(current, 0.5, 0.5, 2.0)
        gradient = partial(
            torch.autograd.grad, spikes, current, torch.randn_like(spikes), retain_graph=True
        )
        bench.add(f"backward, {name}: of the bandwidth",
                  4 * size * bench.rate(gradient) / bytes_per_s, "share")
