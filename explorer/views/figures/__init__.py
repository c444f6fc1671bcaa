"""Pictures of a schedule: its iteration space, memory accesses, pipeline, roofline, occupancy, dependences.

Each figure is computed exactly from the schedule (no run needed) and is plain data: a Plotly spec, a static SVG and a
table of the same content.  :data:`FIGURES` lists them; :func:`picture` draws one.
"""

from .picture import Picture
from .registry import FIGURES, Entry, Measured, figure_data, picture

__all__ = ["FIGURES", "Entry", "Measured", "Picture", "figure_data", "picture"]
