"""Pictures: pure functions from a value to HTML, SVG or a Plotly figure.  The only user of Plotly."""
