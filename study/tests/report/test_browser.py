"""The page in a real browser: Debian's `chromium`, where it is installed."""

import json
import threading

import pytest

from pullback_study.report import serve
from pullback_study.report.write import write
from pullback_study.synthetic.plans import table_cell
from report.browser import CHROMIUM, Browser
from report.folders import NASTY, publish
from report.settings import RECIPES, in_library, random_settings
from report.test_mechanics import NAMES, assert_agree

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    try:
        browser = Browser(tmp_path_factory.mktemp("profile"))
    except (AssertionError, OSError) as error:
        pytest.skip(f"{CHROMIUM} is installed and does not start: {error}")
    with browser:
        yield browser


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    write(out, folder, [])
    return out.as_uri()


@pytest.fixture
def page(browser, address):
    """The page at the width of a desk, fresh; it makes no errors and asks for nothing but itself."""
    browser.problems.clear()
    browser.requests.clear()
    browser.size(1200, 900)
    browser.media(prefers_color_scheme="light")
    browser.open(address)
    yield browser
    assert browser.problems == []
    assert set(browser.requests) == {address}


def texts(page, selector):
    return page.run(f"[...document.querySelectorAll({selector!r})].map((element) => element.textContent.trim())")


def click(page, selector):
    page.run(f"document.querySelector({json.dumps(selector)}).click()")


def change(page, name, value, event):
    """Give a control a value as a reader would."""
    control = f"Object.assign(document.getElementById({json.dumps(name)}), {{ value: {json.dumps(value)} }})"
    page.run(f"{control}.dispatchEvent(new Event({json.dumps(event)}))")


def centre(page, selector):
    script = f"""(async () => {{
        const element = document.querySelector({selector!r});
        element.scrollIntoView({{ block: "center", behavior: "instant" }});
        await new Promise((done) => setTimeout(done, 100));
        const box = element.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    }})()"""
    return page.run(script)


TABLE = "#table1-body table.results"


def rows(page, part):
    """The cells of each row of one part of table 1, by the row's name."""
    script = f"""[...document.querySelectorAll({TABLE!r})].find((table) => table.caption.textContent === {part!r})"""
    return page.run(f"[...{script}.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()))")


def test_the_tables_show_the_numbers(page, data):
    found = {row[0]: row[1:] for row in rows(page, "10 clusters") if len(row) > 1}
    assert found["Softmax"][:3] == ["90.50 ±0.65", "86.45 ±0.33", "+4.05 ≠"]
    assert found["SPIGOT"][4:7] == ["25.00 ±0.00", "29.24 ±2.24", "−4.24 ≠"]
    assert found["STE-S"][:3] == ["not run", "75.95 ±1.10", ""]
    assert found["SPIGOT-CE"][0] == "not run"


def test_a_table_sorts_by_a_click_and_by_the_keyboard(page):
    def column():
        return [row[1].split()[0] for row in rows(page, "10 clusters") if len(row) > 1 and "±" in row[1]]

    def button():
        found = f"[...document.querySelectorAll({TABLE + ' thead th[aria-sort] button'!r})]"
        return f"{found}.filter((each) => each.dataset.key === 'sort:10 clusters:accuracy.value')[0]"

    own = column()
    page.run(f"{button()}.click()")
    assert column() == sorted(own, key=float, reverse=True)
    assert page.run(f"{button()}.parentElement.getAttribute('aria-sort')") == "descending"
    page.run(f"{button()}.focus()")
    page.key("Enter")
    assert column() == sorted(own, key=float)
    assert page.run(f"document.activeElement === {button()}")
    page.key("Enter")
    assert column() == own


def test_the_runs_behind_a_number_are_shown_on_focus_and_go_with_escape(page, data):
    page.run(f"document.querySelector({TABLE + ' button.number'!r}).focus()")
    tip = texts(page, "#tip")[0]
    assert "seed 0" in tip
    assert "seed 3" in tip
    assert page.run("document.activeElement.getAttribute('aria-describedby')") == "tip"
    page.key("Escape")
    assert page.run("document.getElementById('tip').hidden")


def test_a_pointer_shows_the_runs_too(page):
    x, y = centre(page, f"{TABLE} button.number")
    page.move(x, y)
    page.wait_for("!document.getElementById('tip').hidden")


def test_a_method_is_switched_off_and_on(page):
    drawn = """document.querySelectorAll("#curves-body [data-method='marginals']").length"""
    others = """document.querySelectorAll("#curves-body [data-method='spigot']").length"""
    entry = "#curves-body [data-key='curves-10:marginals']"
    page.wait_for(f"{drawn} === 2 && {others} === 2")
    click(page, entry)
    page.wait_for(f"{drawn} === 0 && {others} === 2")
    assert page.run(f"document.querySelector({json.dumps(entry)}).ariaPressed") == "false"
    click(page, entry)
    page.wait_for(f"{drawn} === 2")


def test_a_chart_is_read_with_the_arrow_keys(page):
    page.run("document.querySelector('#curves-body .chart svg').focus()")
    page.key("ArrowRight")
    page.key("ArrowRight")
    reading = texts(page, "#curves-body .chart .readout")[0]
    assert reading.startswith("Steps 1,000")
    assert "Softmax 80.0" in reading
    page.key("Escape")
    assert texts(page, "#curves-body .chart .readout")[0] == ""


def test_a_claim_opens_from_a_link_and_shows_what_it_rests_on(page):
    page.run("location.hash = '#claim-1'")
    page.wait_for("document.getElementById('claim-1').open")
    text = texts(page, "#claim-1")[0]
    assert "not decided" in text
    assert "runs missing" in text
    assert "pullback reproduce table1 --grid" in text
    assert page.run("document.querySelectorAll('details.claim').length") == 11


def test_a_sentence_is_picked_and_a_hostile_one_is_text(page):
    assert "An intelligent" in texts(page, "#sentence option")[0]
    assert page.run("document.querySelectorAll('.card > .scroll > svg.tree, .card > .scroll > svg.heat').length") == 2
    click(page, "[data-key='after']")
    assert texts(page, ".card > .scroll > svg.tree text") == ["A", "fascinating", "and", "fun", "film", "."]
    click(page, "[data-key='after']")
    click(page, "[data-key='after']")
    assert texts(page, ".card > .scroll > svg.tree text")[0] == NASTY.split(" ")[0]
    assert page.run("document.querySelectorAll('script').length") == 2


def test_errors_of_runs_are_text(page):
    assert NASTY in page.run("document.querySelector('#runs-body pre').textContent")


def test_the_explorer_agrees_with_the_library(page):
    for name in [*NAMES, "own"]:
        settings = random_settings(len(RECIPES) if name == "own" else 8, seed=100 + len(name))
        for each in settings:
            found = page.run(f"pullback.evaluate({name!r}, {json.dumps(each)})")
            assert_agree(found, in_library(name, each))


def shown_scores(page):
    cells = page.run("[...document.querySelectorAll('.vectors tr:first-child td')].map((cell) => cell.textContent)")
    return [float(cell.replace("−", "-")) for cell in cells]


def test_the_scores_are_dragged(page):
    before = shown_scores(page)
    x, y = centre(page, "[data-handle=scores] .grip")
    page.drag((x, y), (x + 60, y))
    after = shown_scores(page)
    assert after[2] > before[2]
    assert after[1] < before[1]
    assert after[0] == pytest.approx(before[0], abs=0.02)
    moved = centre(page, "[data-handle=scores] .grip")
    assert moved[0] == pytest.approx(x + 60, abs=1.5)


def test_a_handle_stays_in_the_picture(page):
    for handle in ("scores", "loss"):
        for corner in ((0, 0), (1199, 899)):
            x, y = centre(page, f"[data-handle={handle}] .grip")
            page.drag((x, y), corner)
            inside = """((grip, picture) => grip.left >= picture.left && grip.right <= picture.right
                && grip.top >= picture.top && grip.bottom <= picture.bottom)"""
            boxes = f"document.querySelector('[data-handle={handle}] .grip'), document.querySelector('svg.explorer')"
            assert page.run(f"{inside}(...[{boxes}].map((element) => element.getBoundingClientRect()))")


def test_a_finger_drags_the_scores_and_not_the_page(page):
    page.size(360, 800, touch=True)
    page.wait_for("innerWidth === 360")
    x, y = centre(page, "[data-handle=scores] .grip")
    before, place = shown_scores(page), page.run("scrollY")
    page.touch_drag((x, y), (x, y + 40))
    assert shown_scores(page)[0] < before[0] - 0.1
    assert page.run("scrollY") == place


def test_the_scores_move_with_the_arrow_keys(page):
    before = shown_scores(page)
    page.run("document.querySelector('[data-handle=scores]').focus()")
    for _ in range(4):
        page.key("ArrowUp")
    assert shown_scores(page)[0] > before[0] + 0.1
    assert page.run("document.activeElement.dataset.handle") == "scores"


def test_an_estimator_is_chosen_and_the_loss_changes(page):
    click(page, "[data-estimator=ste-i]")
    assert texts(page, ".side h3") == ["STE-I"]
    change(page, "loss", "linear", "change")
    assert texts(page, "[data-handle=loss] text") == ["gradient of L"]
    change(page, "inner-steps", 7, "input")
    assert "Decoder calls: 7." in texts(page, ".numbers p")[0]
    click(page, "[data-estimator=own]")
    assert not page.run("document.querySelector('.controls fieldset').hidden")


def test_a_served_page_follows_the_runs(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "_ASK_EVERY", 0.2)
    monkeypatch.setattr(serve, "_REST", 0.0)
    reporter = serve.Reporter(tmp_path)
    reporter._took = 0.0
    with serve.ReportServer(reporter, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        browser.problems.clear()
        browser.requests.clear()
        browser.open(server.address)
        assert texts(browser, "#summary") == ["Runs: 0 done."]
        click(browser, "[data-key='Setting:best']")
        for config in table_cell("linear", 3, grid=False).configs:
            publish(tmp_path, config, 60.0, 0.0)
        assert reporter.refresh()
        browser.wait_for("document.getElementById('summary').textContent === 'Runs: 4 done.'")
        assert browser.run("document.querySelector(\"[data-key='Setting:best']\").ariaPressed") == "true"
        assert rows(browser, "3 clusters")[1][1] == "61.50 ±0.65"
        assert set(browser.requests) <= {server.address, f"{server.address}data.json", f"{server.address}favicon.ico"}
        server.shutdown()
        thread.join()
    browser.open("about:blank")


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_the_page_is_never_wider_than_the_screen(page, width):
    page.size(width, 800, touch=width == 360)
    page.wait_for(f"innerWidth === {width}")
    page.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.wait_for("document.documentElement.scrollWidth <= innerWidth")


def test_light_and_dark(page):
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.run(background)
    page.media(prefers_color_scheme="dark")
    dark = page.run(background)
    assert light != dark
    click(page, "#theme")
    assert page.run("document.documentElement.dataset.theme") == "light"
    assert page.run(background) == light
    click(page, "#theme")
    page.media(prefers_color_scheme="light")
    assert page.run(background) == dark
    click(page, "#theme")


def test_every_control_has_a_name(page):
    nameless = page.run("""[...document.querySelectorAll("button, select, input, [role=slider], [role=img]")]
        .filter((element) => !element.textContent.trim() && !element.ariaLabel && !element.labels?.length)
        .filter((element) => element.ariaHidden !== "true")
        .map((element) => element.outerHTML)""")
    assert nameless == []
