"""Who wrote what, and when: the systems and algorithms that the code, the documentation and the lessons cite."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKS = {
    "Panamera": ("Zhao", "2022", "PACT"), "ALCOP": ("Huang", "2023", "MLSys"), "FusionStitching": ("Zheng", "2020", ""),
    "AStitch": ("Zheng", "2022", "ASPLOS"), "DeepCuts": ("Jung", "2021", "PLDI"), "Stream-K": ("Osama", "2023", "PPoPP"),
    "FastTrack": ("Flanagan", "2009", "PLDI"), "decoupled look-back": ("Merrill", "2016", ""),
    "SplitMix64": ("Steele", "2014", "OOPSLA"),
    "running softmax": ("Milakov", "2018", ""), "online softmax": ("Milakov", "2018", ""),
    "xorshift64": ("Marsaglia", "2003", ""),
    "successive halving": ("Jamieson", "2016", "AISTATS"), "Schedule Trees": ("Verdoolaege", "2014", "IMPACT"),
}
"""First author, year, venue (empty: a report); Panamera: doi 10.1145/3559009.3569656, FusionStitching: arXiv 2009.10924."""
VENUES = "PACT|MLSys|ASPLOS|PLDI|PPoPP|OOPSLA|AISTATS|IMPACT|CACM|OSDI|SOSP|SC|CGO|ICS|TACO"


def texts() -> dict[str, str]:
    """What people read, by file: sources whole, notebooks without what their code shows."""
    found = {"README.md": (ROOT / "README.md").read_text()}
    for folder in ("explorer", "docs", "benchmarks", "examples", "notebooks"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in (".py", ".md", ".cuh", ".h", ".cpp", ".toml", ".js"):
                found[name] = path.read_text()
            elif path.suffix == ".ipynb" and ".ipynb_checkpoints" not in path.parts:
                found[name] = "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
    return found


def wrong(text: str) -> list[str]:
    """Citations beside the name of a work that are not the work's."""
    plain, found = re.sub(r"\s*\n\s*(?://|#|>)?\s*", " ", text).replace("**", ""), []
    for work, (author, year, venue) in WORKS.items():
        name = re.escape(work)
        for m in re.finditer(rf"\b{name}\b(?:'s[\w -]{{0,20}})? ?\(([^()]{{4,90}}?\d{{4}})\b|\b(\w+ et al\.) \({name}\)"
                             rf"|\({name}, ([^()]{{4,60}}?\d{{4}})\b", plain):
            said = next(filter(None, m.groups()))
            years, venues = re.findall(r"\b(?:19|20)\d\d\b", said), re.findall(rf"\b(?:{VENUES})\b", said)
            named = author in said or not (" et al" in said or " and " in said)
            if not named or any(y != year for y in years) or any(v != venue for v in venues):
                found.append(m[0])
    return found


def test_citations_are_right() -> None:
    every = texts()
    assert len(every) > 200
    assert {name: found for name, text in every.items() if (found := wrong(text))} == {}


def test_the_check_itself_sees_a_wrong_one() -> None:
    for text in ("Panamera (Zhu et al., PACT 2022)", "**Panamera**\n(Zhao et al., PLDI 2022)", "Zhu et al. (Panamera), PACT 2022",
                 "(FusionStitching, Zheng et al., ASPLOS 2022,\n", "FusionStitching (Zheng et al., ASPLOS 2022)",
                 "AStitch (Zheng et al., 2020)", "Stream-K's fix-up (Osama et al., 2022)"):
        assert wrong(text), text
    for text in ("Panamera (Zhao et al., PACT 2022)", "FusionStitching (Zheng et al., 2020: thread",
                 "AStitch (Zheng et al., ASPLOS 2022)", "(FusionStitching, Zheng et al., 2020:\n thread)"):
        assert not wrong(text), text
