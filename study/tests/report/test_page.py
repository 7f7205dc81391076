"""The page is whole, closed to the network, and shows data as text."""

import base64
import hashlib
import html.parser
import json
import re
import subprocess

import pytest

from pullback_study.report.page import _SCRIPTS, bundle, embedded, render
from pullback_study.report.write import find_benchmarks, write
from report.folders import NASTY
from report.nodes import ASSETS, NODE, needs_node

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Parsed(html.parser.HTMLParser):
    """Elements and their text; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.content = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        self.content.setdefault(attributes.get("id") or tag, []).append(data)

    def text(self, key):
        return "".join(self.content[key])


@pytest.fixture(scope="module")
def page(data):
    return render({**data, "made": "today"})


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


def test_the_page_is_well_formed_and_has_every_section(parsed):
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"results", "table1", "table2", "curves", "steps", "claims", "trees", "mechanics", "performance"} <= set(ids)
    links = [attributes["href"] for tag, attributes in parsed.elements if tag == "a"]
    assert all(link[0] == "#" and link[1:] in ids for link in links)


def test_links_of_claims_lead_somewhere(parsed, data):
    ids = {attributes.get("id") for _, attributes in parsed.elements}
    assert {link["to"] for claim in data["claims"] for link in claim["links"]} <= ids


def test_the_page_asks_for_nothing(parsed, page):
    for _, attributes in parsed.elements:
        assert not {"src", "srcset", "data", "action", "style", "onclick", "onload"} & set(attributes)
    assert not [tag for tag, _ in parsed.elements if tag in ("link", "iframe", "object", "embed", "base", "form")]
    markup = page.replace(embedded(NASTY)[1:-1], "")
    assert set(re.findall(r"https?://[^\"' ]*", markup)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(", parsed.text("style"))


def test_the_policy_allows_this_style_and_this_script_alone(parsed):
    (policy,) = [attributes["content"] for _, attributes in parsed.elements
                 if attributes.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for key, name in (("style", "style-src"), ("script", "script-src")):
        digest = base64.b64encode(hashlib.sha256(parsed.text(key).encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"


def test_a_live_page_may_ask_its_own_server(data):
    assert "connect-src 'self'" in render({**data, "made": ""}, live=True)


def test_hostile_data_stays_inside_the_data(page, parsed, data):
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    assert "<script>alert" not in page
    assert json.loads(parsed.text("data")) == json.loads(json.dumps({**data, "made": "today"}))
    assert NASTY in json.loads(parsed.text("data"))["runs"]["open"][0]["error"]


@pytest.mark.parametrize(
    "text", [NASTY, "{{script}} {{data}} \\1 \\g<0>", "\u2028\u2029", "]]>", "&lt;", "\U0001f600 é", "\ud800"]
)
def test_any_text_survives_the_embedding(text):
    inside = embedded({"key": [text]})
    assert json.loads(inside) == {"key": [text]}
    assert not set(inside) & set("<>&\u2028\u2029")
    page = Parsed(render({"key": [text], "made": ""}).encode().decode())
    assert json.loads(page.text("data"))["key"] == [text]


def test_the_scripts_never_write_markup():
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser", bundle())


def test_each_module_comes_after_those_it_imports():
    assert sorted(_SCRIPTS) == sorted(path.stem for path in ASSETS.glob("*.mjs"))
    for i, name in enumerate(_SCRIPTS):
        imported = re.findall(r'from "\./(\w+)\.mjs"', (ASSETS / f"{name}.mjs").read_text())
        assert set(imported) <= set(_SCRIPTS[:i]), name


@needs_node
def test_the_bundle_is_a_program(tmp_path):
    (tmp_path / "bundle.js").write_text(bundle())
    subprocess.run([str(NODE), "--check", str(tmp_path / "bundle.js")], check=True, capture_output=True)
    assert not re.search(r"^(import|export) ", bundle(), re.MULTILINE)


def test_the_file_is_small_and_written_whole(tmp_path, folder):
    out = tmp_path / "new" / "report.html"
    size = write(out, folder, [])
    assert size == out.stat().st_size < 3_000_000
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_mistakes_get_a_message(tmp_path):
    with pytest.raises(ValueError, match="is a folder; name a file"):
        write(tmp_path, tmp_path, [])
    with pytest.raises(ValueError, match="python -m benchmarks --json"):
        find_benchmarks(tmp_path, [tmp_path / "none.json"])
