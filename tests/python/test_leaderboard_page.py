"""The leaderboard's page in headless Chromium."""

import copy
import json
import os
import pathlib
import re
import shutil

import pytest

import page_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here (Debian's package chromium)"
)
COLUMNS = ("rank", "agent", "kind", "score", "gap", "evaluations", "seconds", "learnt")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return page_report.make_report(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens a page. Whatever it reports or asks of the network fails the test at its end."""
    seen, contexts = [], []

    def open_page(path, *, width=1200, height=900, hash="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("dialog", lambda dialog: seen.append(f"dialog: {dialog.message}"))
        own = pathlib.Path(path).as_uri()
        page.on(
            "request",
            lambda request: (
                None
                if request.url.split("#")[0] == own or request.url == "data:,"
                else seen.append(f"request: {request.url}")
            ),
        )
        page.goto(own + hash)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert seen == []


@pytest.fixture
def page(visit, made):
    page = visit(made[0])
    page.select_option("#tier", "20")
    return page


def entries_of(report, evaluations, suite=0):
    return next(
        tier["ranking"]
        for tier in report["suites"][suite]["tiers"]
        if tier["evaluations"] == evaluations
    )


def files(page):
    rows = page.locator("#ranking-table tbody tr[data-file]")
    return rows.evaluate_all("rows => rows.map(row => row.dataset.file)")


def test_the_ranking_is_the_reports(page, made):
    entries = entries_of(made[1], 20)
    assert files(page) == [entry["file"] for entry in entries]
    cells = page.locator('td[data-column="score"] .value').all_text_contents()
    assert cells == [f"{entry['score']['value']:.4f}" for entry in entries]
    assert page.locator("#shown").text_content() == f"{len(entries)} rows"
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_sorts(page, made, column):
    value = {
        "rank": lambda entry: entry["rank"],
        "agent": lambda entry: entry["agent"],
        "kind": lambda entry: entry["kind"],
        "score": lambda entry: entry["score"]["value"],
        "gap": lambda entry: entry["gap"],
        "evaluations": lambda entry: entry["evaluations"],
        "seconds": lambda entry: entry["seconds"],
        "learnt": lambda entry: len(entry["training"]["tasks"]),
    }[column]
    by_file = {entry["file"]: value(entry) for entry in entries_of(made[1], 20)}
    head = page.locator(f'th[data-column="{column}"]')
    if column == "rank":  # the order that the page begins with
        assert head.get_attribute("aria-sort") == "ascending"
        page.locator('th[data-column="agent"] button').click()
    for direction in ("ascending", "descending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        values = [by_file[file] for file in files(page)]
        known = [item for item in values if item is not None]
        assert values == known + [None] * (len(values) - len(known))
        if column != "agent":  # whose order is that of the language
            assert known == sorted(known, reverse=direction == "descending")
    others = page.locator('th[aria-sort="none"]')
    assert others.count() == len(COLUMNS) - 1
    if column == "agent":
        names = [by_file[file] for file in files(page)]
        plain = [name for name in names if name != page_report.EVIL]
        assert plain == sorted(plain, reverse=True)


def test_filters_by_tier_kind_and_name(page, made):
    report = made[1]
    page.select_option("#tier", "1")
    assert files(page) == [entry["file"] for entry in entries_of(report, 1)]
    page.select_option("#tier", "20")
    page.get_by_label("search", exact=True).uncheck()
    expected = [e["file"] for e in entries_of(report, 20) if e["kind"] != "search"]
    assert files(page) == expected
    assert page.locator("#task-cards article").first.locator("tbody tr").count() == len(expected)
    page.get_by_label("search", exact=True).check()
    page.get_by_label("Agent", exact=True).fill("HEFT")
    assert files(page) == [e["file"] for e in entries_of(report, 20) if e["agent"] == "heft"]
    assert "1 of" in page.locator("#shown").text_content()
    page.get_by_label("Agent", exact=True).fill("nobody")
    assert files(page) == []
    assert page.locator(".chart").first.text_content() == "No curve is shown."


def test_filters_by_suite(visit, made, tmp_path):
    report = copy.deepcopy(made[1])
    second = copy.deepcopy(report["suites"][0])
    second["name"] = "second"
    for tier in second["tiers"]:
        tier["ranking"] = tier["ranking"][:2]
        tier["improvement"] = [row[:2] for row in tier["improvement"][:2]]
        for entry in tier["ranking"]:
            entry["file"] = entry["file"].replace("small/", "second/")
    report["suites"].append(second)
    for row in copy.deepcopy(report["rows"]):
        row["suite"], row["file"] = "second", row["file"].replace("small/", "second/")
        report["rows"].append(row)
    path = tmp_path / "two.html"
    path.write_text(page_report.with_report(made[0].read_text(), report))
    page = visit(path)
    assert page.locator("#suite option").all_text_contents() == ["small", "second"]
    page.select_option("#suite", "second")
    page.select_option("#tier", "20")
    expected = [entry["file"] for entry in entries_of(report, 20, suite=1)]
    assert files(page) == expected
    assert page.locator(".suite-name").first.text_content() == "second"
    # What is shown is in the address.
    again = visit(path, hash="#" + page.url.split("#")[1])
    assert files(again) == expected
    assert again.locator("#suite").input_value() == "second"


def test_a_schedule_opens_beside_another(page, made):
    report = made[1]
    heft = next(row for row in report["rows"] if row["agent"] == "heft")
    page.locator(f'tr[data-file="{heft["file"]}"]').get_by_role("button", name="Schedule").click()
    assert page.locator("#schedule-a").input_value() == heft["file"]
    assert page.evaluate("document.activeElement.id") == "schedules"
    other = next(row for row in report["rows"] if row["agent"] == "rule-search")
    page.select_option("#schedule-b", other["file"])
    for task in ("exact", "lucky"):
        page.select_option("#schedule-task", task)
        ends, lengths = [], []
        for panel, row in (("#gantt-a", heft), ("#gantt-b", other)):
            schedule = next(t for t in row["tasks"] if t["task"] == task)["schedule"]
            timeline = report["timelines"][schedule["timeline"]]
            nodes = page.locator(f"{panel} rect.node")
            assert nodes.count() == len(timeline["start"])
            boxes = nodes.evaluate_all(
                "all => all.map(r => [+r.dataset.node, +r.getAttribute('x'),"
                " +r.getAttribute('x') + +r.getAttribute('width'), +r.getAttribute('y')])"
            )
            ends.append(max(box[2] for box in boxes))
            lengths.append(timeline["makespan"])
            height = min(box[3] for box in boxes if box[3] > 0)
            for node, x, _, y in boxes:
                assert round(y / height) == timeline["device"][node]
                assert x == pytest.approx(timeline["start"][node] * ends[-1] / 1e5, abs=0.6)
        # One scale of time.
        assert ends[0] / ends[1] == pytest.approx(lengths[0] / lengths[1], rel=5e-3)
    page.get_by_role("button", name="Swap").click()
    assert page.locator("#schedule-b").input_value() == heft["file"]
    page.locator("#zoom").fill("2")
    wide = page.locator("#gantt-a svg").evaluate("svg => svg.getBoundingClientRect().width")
    assert wide == pytest.approx(4 * max(ends), rel=0.01)


def test_the_keyboard_reaches_and_does_everything(page, made):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    order = []
    for _ in range(200):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate(
                "(() => { const e = document.activeElement; return e.id || e.closest('th')"
                "?.dataset.column || e.className.baseVal || e.className || e.tagName; })()"
            )
        )
        if order[-1] == "BODY":
            break
    places = [order.index(name) for name in ("suite", "tier", "find", *COLUMNS, "open-schedule")]
    assert places == sorted(places)
    assert order.index("curve-task") < order.index("schedule-task") < order.index("schedule-a")
    # Nothing that reacts to a click is out of reach, and nothing jumps the queue.
    assert page.locator("[onclick], div[role=button], span[role=button]").count() == 0
    assert page.locator("[tabindex]").evaluate_all("all => all.every(e => e.tabIndex <= 0)")
    # Every control has a name.
    unnamed = page.locator("select, input, button").evaluate_all(
        "all => all.filter(e => !(e.labels?.length || e.textContent.trim() ||"
        " e.getAttribute('aria-label'))).length"
    )
    assert unnamed == 0

    page.locator('th[data-column="seconds"] button').focus()
    page.keyboard.press("Enter")
    assert page.locator('th[data-column="seconds"]').get_attribute("aria-sort") == "ascending"
    assert page.evaluate("document.activeElement.closest('th').dataset.column") == "seconds"
    toggle = page.locator("button.agent").first
    assert toggle.get_attribute("aria-expanded") == "false"
    toggle.focus()
    page.keyboard.press("Space")
    assert toggle.get_attribute("aria-expanded") == "true"
    assert page.locator("#" + toggle.get_attribute("aria-controls")).is_visible()

    timelines = made[1]["timelines"]
    row = next(r for r in made[1]["rows"] if r["file"] == page.locator("#schedule-a").input_value())
    timeline = timelines[row["tasks"][0]["schedule"]["timeline"]]
    page.locator("#gantt-a svg").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#gantt-a rect.marked").get_attribute("data-node")
    page.keyboard.press("ArrowRight")
    second = page.locator("#gantt-a rect.marked").get_attribute("data-node")
    assert timeline["device"][int(first)] == timeline["device"][int(second)]
    assert timeline["start"][int(second)] >= timeline["end"][int(first)]
    page.keyboard.press("ArrowDown")
    third = page.locator("#gantt-a rect.marked").get_attribute("data-node")
    assert timeline["device"][int(third)] == timeline["device"][int(first)] + 1
    name = made[1]["graphs"][made[1]["suites"][0]["tasks"][0]["hash"]]["nodes"][int(third)]
    assert name in page.locator("#gantt-node").text_content()


def test_texts_of_rows_are_shown_as_they_are(page, made):
    evil = page_report.EVIL
    assert page.locator("button.agent").filter(has_text=evil).count() == 1
    page.locator("button.agent").filter(has_text=evil).click()
    details = page.locator("tr.details:visible dl")
    assert evil in details.text_content()
    for box in page.locator("details:not([hidden]) > summary").all():
        box.click()
    assert page.locator("#failed li").count() == 1
    assert evil in page.locator("#refused").text_content()
    page.locator("#find").fill("script")
    page.locator("#curve-legend button").first.hover()
    page.select_option("#schedule-a", label=f"{evil} · 20")
    page.locator("#gantt-a rect.node").first.hover()
    assert evil in page.locator("#gantt-node").text_content()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("main script").count() == 0
    assert page.locator("[onerror], [onmouseover]").count() == 0
    (link,) = page.locator("main a").evaluate_all("all => all.map(a => a.href)")
    assert re.fullmatch(r"https://example\.org/[^<>\"]*", link)


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("https://example.org/", True),
        ("HTTP://example.org/", True),
        ("javascript:window.hacked=6//https://example.org", False),
        (" javascript:window.hacked=6", False),
        ("java\nscript:window.hacked=6", False),
        ("data:text/html,<script>window.hacked=6</script>", False),
        ("//example.org", False),
        ("https:example.org", False),
        ("file:///etc/passwd", False),
    ],
)
def test_only_addresses_of_the_web_are_links(visit, made, tmp_path, address, is_link):
    report = copy.deepcopy(made[1])
    for tier in report["suites"][0]["tiers"]:
        for entry in tier["ranking"]:
            entry["link"] = address
    path = tmp_path / "links.html"
    path.write_text(page_report.with_report(made[0].read_text(), report))
    page = visit(path)
    page.locator("button.agent").first.click()
    details = page.locator("tr.details:visible")
    assert address in details.text_content()
    assert details.locator("a").count() == int(is_link)
    if not is_link:
        details.get_by_text(address.strip(), exact=False).last.click()
        assert page.evaluate("window.hacked") is None


def luminance(page, name):
    colour = page.evaluate(f"getComputedStyle(document.body).{name}")
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit, made, scheme):
    page = visit(made[0], color_scheme=scheme)
    back, front = luminance(page, "backgroundColor"), luminance(page, "color")
    assert (back > front) == (scheme == "light")
    light, dark = max(back, front), min(back, front)
    assert (light + 0.05) / (dark + 0.05) > 7  # WCAG AAA


@pytest.mark.parametrize("width", [320, 360, 768, 1200])
def test_nothing_is_wider_than_the_window(visit, made, width):
    page = visit(made[0], width=width, height=740)
    for button in page.locator("button.agent").all():
        button.click()
    for box in page.locator("details:not([hidden]) > summary").all():
        box.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 768:  # what a finger is to hit
        heights = page.locator("#filters select, #ranking-table button").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).filter(r => r.width).map(r => r.height)"
        )
        assert min(heights) >= 24


def test_curves_are_those_of_the_rows(page, made):
    report = made[1]
    page.select_option("#curve-task", "exact")
    page.locator("#curve-values summary").click()
    rows = page.locator("#curve-values tbody tr")
    shown = {
        row.locator("th").text_content(): row.locator("td").all_text_contents()
        for row in rows.all()
    }
    task = report["suites"][0]["tasks"][0]
    for row in report["rows"]:
        if row["agent"] != "rule-search" or row["tier"] != 20:
            continue
        runs = row["tasks"][0]["runs"]
        for column, place in enumerate((1, 20)):
            best = [min(y for x, _, y in run["curve"] if x <= place) for run in runs]
            expected = sum(best) / len(best) / task["critical_path"]
            assert float(shown["rule-search"][column]) == pytest.approx(expected, abs=6e-5)
    legend = page.locator("#curve-legend button").filter(has_text="rule-search")
    curves = page.locator("#curve-evaluations path.curve")
    before = curves.count()
    legend.click()
    assert legend.get_attribute("aria-pressed") == "false"
    assert curves.count() == before - 1


def test_it_prints(page, tmp_path):
    page.emulate_media(media="print")
    assert not page.locator("#filters").is_visible()
    assert page.locator("#ranking-table").is_visible()
    paper = tmp_path / "page.pdf"
    page.pdf(path=str(paper), format="A4")
    assert paper.read_bytes().startswith(b"%PDF")
    assert page.locator("details[open]").count() == 0  # closed again afterwards


def test_a_report_without_rows_says_so(visit, made, tmp_path):
    empty = {**made[1], "suites": [], "rows": [], "timelines": {}, "graphs": {}}
    path = tmp_path / "empty.html"
    path.write_text(page_report.with_report(made[0].read_text(), empty))
    page = visit(path)
    assert page.locator("#shown").text_content() == "There are no verified rows yet."
    assert page.locator("#submit").is_visible()


def test_the_page_holds_the_report(made):
    text = made[0].read_text()
    begin = text.index('id="report">') + len('id="report">')
    assert json.loads(text[begin : text.index("</script>", begin)]) == made[1]
    assert len(re.findall(r"https?://", text[:begin])) == 1  # the example of how to submit
