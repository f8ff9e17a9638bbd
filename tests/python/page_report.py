"""A folder of rows for the report's page: honest ones, and one whose every text is an attack."""

import json
import subprocess
import sys

SUITE = {
    "format": "doppler-suite",
    "version": 1,
    "name": "small",
    "revision": 1,
    "summary": "for tests",
    "engine": "simulator",
    "seeds": [0, 1],
    "runs": 3,
    "first_luck": 1000000,
    "tiers": [{"evaluations": 1, "seconds": 20}, {"evaluations": 20, "seconds": 20}],
    "training": {"max_evaluations": 100, "max_seconds": 60, "held_out": False, "tasks": []},
    "tasks": [
        {"name": "exact", "task": "chainmm(n=1000,shards=2)@p100x4"},
        {
            "name": "lucky",
            "task": "ffnn(shards=2)@p100x4",
            "settings": {"choice": "random", "noise": 0.1},
        },
    ],
}
EVIL = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    '"\' onmouseover="window.hacked = 3" {{report}} <!-- \u202e'
)


def command(*arguments, exit_code=0):
    """Runs doppler-gym of the installed package; returns what it prints."""
    answer = subprocess.run(
        [sys.executable, "-c", "import sys, doppler_gym as dg; sys.exit(dg.main())", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == exit_code, answer.stderr
    return answer.stdout


def with_report(page, report):
    """The page's text with another report in it, escaped as the command does it."""
    text = json.dumps(report)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    begin = page.index('id="report">') + len('id="report">')
    return page[:begin] + text + page[page.index("</script>", begin) :]


def make_report(folder):
    """Rows of a small suite and their page; returns the page and what it holds."""
    suite = folder / "small.json"
    suite.write_text(json.dumps(SUITE))
    command("leaderboard", "suites", "--fill", str(suite))
    rows = folder / "rows"
    agents = "critical-path,heft,round-robin,annealing,rule-search"
    command("leaderboard", "run", "--suite", str(suite), "--agents", agents, "--rows", str(rows))
    row = json.loads(next((rows / "small").glob("annealing--20--*.json")).read_text())
    row |= {
        "agent": EVIL,
        "kind": "other",
        "parameters": {"name" + EVIL: EVIL},
        "authors": [EVIL, "B. Author"],
        "link": "https://example.org/'\"><script>window.hacked = 4</script>",
        "note": "javascript:window.hacked=5 " + EVIL,
        "code_version": EVIL,
        "command": EVIL,
        "hardware": {**row["hardware"], "processor": EVIL, "accelerator": EVIL},
    }
    (folder / "evil.json").write_text(json.dumps(row))
    command(
        *("leaderboard", "submit", str(folder / "evil.json"), "--suite", str(suite)),
        *("--rows", str(rows)),
    )
    wrong = {**row["results"][0], "task": EVIL}
    refused = {**row, "agent": "refused" + EVIL, "results": [wrong]}
    (rows / "small" / "refused.json").write_text(json.dumps(refused))
    failed = {
        "format": "doppler-failed-row",
        "version": 1,
        "suite": "small",
        "agent": EVIL,
        "kind": "other",
        "tier": 1,
        "task": "exact",
        "seed": 0,
        "reason": EVIL,
    }
    (rows / "small" / "evil.failed").write_text(json.dumps(failed))
    page, data = folder / "report.html", folder / "report.json"
    command(
        *("leaderboard", "report", "--suite", str(suite), "--rows", str(rows)),
        *("--html", str(page), "--json", str(data)),
    )
    return page, json.loads(data.read_text())
