"""Measure the web interface in Chromium, on the server's own machine.

python -m bench.in_browser [DOCUMENTS]      default: 10,000
python -m bench.in_browser URL              a running server

Exit with 1 if a figure exceeds its limit.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from bench.pages import Engine
from tests.web.conftest import chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SIZE = 10_000
LOADS, QUESTIONS, FRAMES = 30, 120, 300
WORDS = ("boat", "harbour light", "heating of the house", "tide", "wind force", "lease", "cells", "flow over a wing")

MOST = {
    "wire_bytes": 100_000,
    "usable_p95_ms": 300,
    "beside_engine_p95_ms": 80,
    "first_drawn_ms": 1_500,
}
LEAST = {"frames_per_second": 50}

USABLE = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
WIRE = """return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
  .reduce((sum, each) => sum + each.transferSize, 0)"""
TYPED = """const [words, count, done] = arguments, field = document.querySelector("#q"), times = [];
const next = () => {
  if (times.length === count) return done(times);
  const begun = performance.now();
  const shown = () => { times.push(performance.now() - begun); setTimeout(next, 50); };
  addEventListener("kb:shown", () => requestAnimationFrame(shown), {once: true});
  field.value = words[times.length % words.length] + " " + times.length;
  field.dispatchEvent(new Event("input", {bubbles: true}));
}; next();"""
MAPPED = """const done = arguments[0];
const shown = () => done(performance.now());
document.querySelector(".map.drawn") ? shown() : addEventListener("kb:mapped", shown, {once: true});"""
PANNED = """const [frames, done] = arguments, canvas = document.querySelector("#map"), times = [];
const box = canvas.getBoundingClientRect();
const at = (kind, x, y) => {
  const place = {pointerId: 1, clientX: box.left + x, clientY: box.top + y, bubbles: true};
  canvas.dispatchEvent(new PointerEvent(kind, place));
};
canvas.setPointerCapture = () => {};
at("pointerdown", 400, 200);
let last = performance.now(), angle = 0;
const step = (now) => {
  times.push(now - last); last = now;
  if (times.length > frames) { at("pointercancel", 0, 0); return done(times.slice(1)); }
  angle += 0.05; at("pointermove", 400 + 150 * Math.sin(angle), 200 + 100 * Math.sin(2 * angle));
  requestAnimationFrame(step);
}; requestAnimationFrame(step);"""


def at(share: float, times: list[float]) -> float:
    """The time that so large a share of them is not above."""
    return sorted(times)[int(share * (len(times) - 1))]


def loads(driver: Chrome, url: str) -> dict[str, Any]:
    """The first page, each time by a browser that keeps nothing."""
    times, sizes = [], []
    driver.execute_cdp_cmd("Network.enable", {})
    for _ in range(LOADS):
        driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        driver.get(url)
        times.append(driver.execute_script(USABLE))
        sizes.append(driver.execute_script(WIRE))
    return {"usable_p50_ms": at(0.5, times), "usable_p95_ms": at(0.95, times), "wire_bytes": max(sizes)}


def questions(driver: Chrome, url: str) -> dict[str, Any]:
    """Return the time from the key to the picture, and the engine's share of it."""
    driver.get(url)
    driver.set_script_timeout(120)
    times = driver.execute_async_script(TYPED, list(WORDS), QUESTIONS)
    engine = []
    with httpx2.Client(base_url=f"{url}/api/v1/") as client:
        for number in range(QUESTIONS):
            begun = time.perf_counter()
            client.post("search", json={"query": f"{WORDS[number % len(WORDS)]} {number}", "top": 50})
            engine.append((time.perf_counter() - begun) * 1000)
    of_engine = statistics.median(engine)
    return {
        "shown_p50_ms": at(0.5, times),
        "shown_p95_ms": at(0.95, times),
        "engine_p50_ms": of_engine,
        "beside_engine_p95_ms": at(0.95, times) - of_engine,
    }


def chart(driver: Chrome, url: str) -> dict[str, Any]:
    """The map: until it is drawn, the first time and when the engine has it; and frames while it is moved."""
    drawn = []
    for _ in range(6):
        driver.get(f"{url}/map")
        drawn.append(driver.execute_async_script(MAPPED))
    frames = driver.execute_async_script(PANNED, FRAMES)
    return {
        "first_drawn_ms": drawn[0],
        "drawn_p50_ms": at(0.5, drawn[1:]),
        "frames_per_second": 1000 * len(frames) / sum(frames),
        "frame_p95_ms": at(0.95, frames),
    }


def judge(found: dict[str, float]) -> list[str]:
    """Return which figures are not within their limits, and by how much."""
    above = [f"{name} is {found[name]}, more than {most}" for name, most in MOST.items() if found.get(name, 0) > most]
    below = [
        f"{name} is {found[name]}, less than {least}" for name, least in LEAST.items() if found.get(name, least) < least
    ]
    return above + below


def main() -> int:
    """Print the figures; 0 if every one is within its limit."""
    wrong = []
    with ExitStack() as stack:
        if sys.argv[1:] and sys.argv[1].startswith("http"):
            url = sys.argv[1]
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            size = int(sys.argv[1]) if sys.argv[1:] else SIZE
            url = str(Engine(Path(folder, "data"), size, stack).http.base_url).removesuffix("/api/v1/")
        driver = stack.enter_context(chromium())
        for part in (loads, questions, chart):
            found = {name: round(value, 1) for name, value in part(driver, url).items()}
            print(json.dumps(found), flush=True)
            wrong += judge(found)
    for each in wrong:
        print(each)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
