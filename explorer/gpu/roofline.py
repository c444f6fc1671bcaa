"""The least time a kernel could take on a GPU: its traffic over the bandwidth, or its arithmetic over the peak rate.

After S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass

from .spec import Gpu

_PEAKS = {"f16": "f16_tensor_flops_per_s", "bf16": "f16_tensor_flops_per_s", "f32": "f32_flops_per_s", "f64": "f64_flops_per_s"}
_MEASURED = {"f16": "measured_f16_tensor_flops_per_s", "bf16": "measured_f16_tensor_flops_per_s"}


@dataclass(frozen=True)
class Roofline:
    """Where a kernel stands under the roof.

    Attributes
    ----------
    floor_us : float
        The larger of the two times, in microseconds; no launch overhead in it.
    bound : str
        ``"memory"`` or ``"compute"``.
    memory_us, compute_us : float
        The two times.
    intensity : float
        Operations per byte (infinite without traffic).
    ridge : float
        The intensity at which the two times are equal; infinite where the GPU has no peak for the type.
    bandwidth_bytes_per_s, peak_flops_per_s : float
        The two rates used; peak 0 where there is none.
    measured_bandwidth, measured_peak : bool
        Whether that rate is a measured one or the datasheet's.
    """

    floor_us: float
    bound: str
    memory_us: float
    compute_us: float
    intensity: float
    ridge: float
    bandwidth_bytes_per_s: float
    peak_flops_per_s: float
    measured_bandwidth: bool
    measured_peak: bool

    def share(self, time_us: float) -> float:
        """How much of the floor a measured time reaches: 1.0 is the limit."""
        return self.floor_us / time_us

    def attainable_flops_per_s(self, intensity: float) -> float:
        """The roof above an intensity (operations per byte)."""
        slope = intensity * self.bandwidth_bytes_per_s
        return min(slope, self.peak_flops_per_s) if self.peak_flops_per_s else slope


def roofline(gpu: Gpu, bytes: float, flops: float, dtype: object = "f32", *, measured: bool = True) -> Roofline:
    """The floor of a computation.

    Parameters
    ----------
    gpu : Gpu
    bytes : float
        Traffic to and from global memory; the compulsory one (each input once, each output once) gives the true floor.
    flops : float
        Operations, a fused multiply-add counted as two.
    dtype : DType or str
        The type of the *arithmetic*. f16 and bf16 mean tensor cores: element-wise work on f16 arrays is done in f32, so
        pass ``"f32"`` for it. Types without a peak in the catalogue (the integers) count traffic alone.
    measured : bool
        Use measured rates where the catalogue has them (a floor that can be reached) rather than the datasheet's.
    """
    name = str(dtype)
    faster = gpu.measured_bandwidth_bytes_per_s if measured else None
    tuned = getattr(gpu, _MEASURED[name]) if measured and name in _MEASURED else None
    bandwidth = faster or gpu.memory_bandwidth_bytes_per_s
    peak = tuned or (getattr(gpu, _PEAKS[name]) if name in _PEAKS else 0.0)
    memory_us = bytes / bandwidth * 1e6
    compute_us = flops / peak * 1e6 if peak else 0.0
    return Roofline(
        floor_us=max(memory_us, compute_us),
        bound="compute" if compute_us > memory_us else "memory",
        memory_us=memory_us,
        compute_us=compute_us,
        intensity=flops / bytes if bytes else float("inf"),
        ridge=peak / bandwidth if peak else float("inf"),
        bandwidth_bytes_per_s=bandwidth,
        peak_flops_per_s=peak,
        measured_bandwidth=faster is not None,
        measured_peak=tuned is not None,
    )
