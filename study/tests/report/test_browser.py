"""The pages in a real browser: Debian's `chromium`, where it is installed."""

import json

import pytest

from report.browser import CHROMIUM, Browser
from report.settings import in_library, random_settings
from report.test_mechanics import DETERMINISTIC, PRESETS, assert_agree

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    try:
        browser = Browser(tmp_path_factory.mktemp("profile"))
    except (AssertionError, OSError) as error:
        pytest.skip(f"{CHROMIUM} is installed and does not start: {error}")
    with browser:
        yield browser


def opened(browser, path):
    """A page at the width of a desk, fresh; it makes no errors and requests nothing but itself."""
    browser.problems.clear()
    browser.requests.clear()
    browser.size(1200, 900)
    browser.media(prefers_color_scheme="light")
    browser.open(path.as_uri())
    yield browser
    assert browser.problems == []
    assert {request for request in browser.requests if not request.startswith("data:image/svg+xml")} == {path.as_uri()}


@pytest.fixture
def page(browser, pages):
    yield from opened(browser, pages[0])


@pytest.fixture
def explorer(browser, pages):
    yield from opened(browser, pages[1])


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


TABLE = "#synthetic .group[open] table"


def test_a_table_sorts_by_a_click_and_by_the_keyboard(page):
    def column():
        return [float(cell.split("±")[0]) for cell in texts(page, f"{TABLE} tbody td:nth-child(2)") if "±" in cell]

    heading = f"document.querySelectorAll({TABLE + ' thead th'!r})[1]"
    page.run(f"document.querySelectorAll({TABLE!r}).forEach((table, i) => i && table.remove())")
    own = column()
    page.run(f"{heading}.firstChild.click()")
    assert column() == sorted(own, reverse=True) != own
    assert page.run(f"{heading}.ariaSort") == "descending"
    assert "not run" in texts(page, f"{TABLE} tbody tr:last-child td")[0]
    page.run(f"{heading}.firstChild.focus()")
    page.key("Enter")
    assert column() == sorted(own)
    page.key("Enter")
    assert column() == own


def test_the_first_group_with_runs_is_open_and_others_open_on_a_click(page):
    assert texts(page, "#synthetic .group[open] > summary") == ["The table, at the paper's settings"]
    click(page, "#synthetic .group + .group > summary")
    assert texts(page, "#synthetic .group[open] > summary")[1].startswith("The table, at the settings")


def test_a_number_opens_to_the_runs_behind_it(page):
    page.run(f"document.querySelector({TABLE + ' td summary'!r}).focus()")
    page.key("Enter")
    behind = texts(page, f"{TABLE} td details[open] pre")[0]
    assert "seed 0: 60.00" in behind
    assert "seed 3" in behind


def test_runs_are_filtered(page):
    page.run("""(() => {
        const group = [...document.querySelectorAll("#runs .group")].find((each) => /Synth.*every run/.test(each.textContent));
        [group.id, group.open] = ["listed", true];
        const input = group.querySelector(".filter");
        input.value = "spigot-ce stopped";
        input.dispatchEvent(new Event("input"));
    })()""")
    shown = [row for row in texts(page, "#listed tbody tr:not([hidden])") if row]
    assert len(shown) == 1
    assert "55.50" in shown[0]


def test_a_claim_shows_that_it_opens(page):
    style = "getComputedStyle(document.querySelector('#claim-1 > summary'))"
    assert page.run(f"[{style}.display, {style}.listStyleType]") == ["list-item", "disclosure-closed"]
    click(page, "#claim-1 > summary")
    assert page.run(f"{style}.listStyleType") == "disclosure-open"


def test_the_navigation_bar_is_opaque(page):
    assert page.run("getComputedStyle(document.querySelector('nav')).backgroundColor") == "rgb(253, 253, 252)"
    page.media(prefers_color_scheme="dark")
    assert page.run("getComputedStyle(document.querySelector('nav')).backgroundColor") == "rgb(22, 24, 28)"


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_a_page_is_as_wide_as_its_window_and_wide_tables_scroll(page, width):
    page.size(width, 800, touch=width < 500)
    page.wait_for(f"innerWidth === {width}")
    page.wait_for("document.documentElement.scrollWidth <= innerWidth")


def test_the_explorer_agrees_with_the_library(explorer):
    for name in [*DETERMINISTIC, "own"]:
        for each in random_settings(3, seed=100 + len(name)):
            estimator = PRESETS.get(name, each["recipe"])
            found = explorer.run(f"pullback.evaluate({json.dumps(estimator)}, {json.dumps(each)})")
            assert_agree(found, in_library(name, each))


def test_the_explorer_offers_what_it_can_evaluate(explorer):
    offered = explorer.run("[...document.querySelectorAll('#estimator option')].map((option) => option.value)")
    assert set(DETERMINISTIC) < set(offered)
    for name in offered:
        change(explorer, "estimator", name, "change")
        assert texts(explorer, "#title") == [PRESETS[name]["title"] if name in PRESETS else "Your own"]


def shown_scores(page):
    cells = page.run("[...document.querySelectorAll('#vectors tr:first-child td')].map((cell) => cell.textContent)")
    return [float(cell.replace("−", "-")) for cell in cells]


def test_the_scores_are_dragged(explorer):
    before = shown_scores(explorer)
    x, y = centre(explorer, "#scores .grip")
    explorer.drag((x, y), (x + 60, y))
    after = shown_scores(explorer)
    assert after[2] > before[2]
    assert after[1] < before[1]
    assert after[0] == pytest.approx(before[0], abs=0.02)
    assert centre(explorer, "#scores .grip")[0] == pytest.approx(x + 60, abs=1.5)


def test_a_handle_stays_in_the_picture(explorer):
    for handle in ("scores", "loss"):
        for corner in ((0, 0), (1199, 899)):
            x, y = centre(explorer, f"#{handle} .grip")
            explorer.drag((x, y), corner)
            inside = """((grip, picture) => grip.left >= picture.left && grip.right <= picture.right
                && grip.top >= picture.top && grip.bottom <= picture.bottom)"""
            boxes = f"document.querySelector('#{handle} .grip'), document.getElementById('picture')"
            assert explorer.run(f"{inside}(...[{boxes}].map((element) => element.getBoundingClientRect()))")


def test_a_finger_drags_the_scores_and_not_the_page(explorer):
    explorer.size(360, 800, touch=True)
    explorer.wait_for("innerWidth === 360")
    x, y = centre(explorer, "#scores .grip")
    before, place = shown_scores(explorer), explorer.run("scrollY")
    explorer.touch_drag((x, y), (x, y + 40))
    assert shown_scores(explorer)[0] < before[0] - 0.1
    assert explorer.run("scrollY") == place


def test_the_scores_move_with_the_arrow_keys(explorer):
    before = shown_scores(explorer)
    explorer.run("document.getElementById('scores').focus()")
    for _ in range(4):
        explorer.key("ArrowUp")
    assert shown_scores(explorer)[0] > before[0] + 0.1
    assert explorer.run("document.activeElement.id") == "scores"


def test_an_estimator_is_chosen_and_the_loss_changes(explorer):
    change(explorer, "estimator", "ste-i", "change")
    assert texts(explorer, "#title") == ["STE-I"]
    change(explorer, "downstream", "linear", "change")
    assert texts(explorer, "#loss text") == ["gradient of L"]
    change(explorer, "inner-steps", 7, "input")
    assert "Decoder calls: 7." in texts(explorer, "#losses")[0]
    change(explorer, "estimator", "own", "change")
    assert not explorer.run("document.getElementById('own').hidden")
    change(explorer, "own-update", "Mirror", "change")
    assert explorer.run("document.getElementById('own-start').value") == "FromMarginals"
    change(explorer, "situation", "The same, with cross-entropy", "change")
    assert texts(explorer, "#title") == ["SPIGOT-CE"]
