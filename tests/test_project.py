"""What the files around the code say agrees: versions, Pythons, dependencies, and who has addresses."""

import ast
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import yaml
from packaging.version import Version

import onepass

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
_SKIPS = ("skip", "skipif", "importorskip")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def loaded(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere() -> None:
    assert str(loaded("CITATION.cff")["version"]) == onepass.__version__
    assert loaded("conda/recipe.yaml")["context"]["version"] == onepass.__version__


def test_the_newest_release_of_the_changelog_is_this_one_or_earlier_and_dated() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [one for one in re.findall(r"^## (.*)$", changes, re.MULTILINE) if one != "Unreleased"]
    version, _, date = headings[0].partition(" - ")
    assert Version(version) <= Version(onepass.__version__)
    if version == onepass.__version__:
        assert date == str(loaded("CITATION.cff")["date-released"])


def test_the_citation_names_the_paper_and_a_date() -> None:
    citation = loaded("CITATION.cff")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(citation["date-released"]))
    assert "Bayesian Perceptron" in citation["references"][0]["title"]


def test_the_licence_is_the_same_everywhere() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    (author,) = PROJECT["authors"]
    assert text.startswith("MIT License")
    assert f"Copyright (c) 2026 {author['name']}" in text
    assert PROJECT["license"] == loaded("CITATION.cff")["license"] == loaded("conda/recipe.yaml")["about"]["license"]
    assert loaded("CITATION.cff")["authors"] == [author]


def test_links_of_the_description_on_pypi_are_addresses_of_the_same_files() -> None:
    project_description = run_path(str(ROOT / "build_backend.py"))["project_description"]
    source = PROJECT["urls"]["Source"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    given, made = (re.findall(r"\]\(([^)]+)\)", text) for text in (readme, project_description("1.2.3")))
    relative = [link for link in given if "://" not in link]
    assert relative
    assert [link for link in made if "://" not in link] == []
    for old, new in zip(given, made, strict=True):
        assert new == old or re.fullmatch(re.escape(source) + "/(blob|raw)/v1[.]2[.]3/" + re.escape(old), new), old
    assert f"]({source}/raw/v1.2.3/docs/images/playground.gif)" in project_description("1.2.3")


def test_figures_of_the_front_pages_are_the_measured_ones() -> None:
    speed = {one["name"]: one for one in json.loads((ROOT / "benchmarks" / "results.json").read_text())}
    calls, rows = (speed[f"d = 20, {way}: rate over River logistic"] for way in ("one call", "row by row"))
    committee = json.loads((ROOT / "benchmarks" / "uci-10.json").read_text())
    covered = sum(one["coverage_mean"] for one in committee) / len(committee)
    evidence = {page.stem: " ".join(page.read_text().split()) for page in (ROOT / "docs" / "evidence").glob("*.md")}
    assert "most 0.01 less accurate than batch logistic regression on 7 of 7 sets" in evidence["real-data"]
    assert "lower RMSE than published deep ensembles on 6 of 6 sets and a higher log-likelihood on 5" in evidence["uci"]
    figures = [f"{1e6 * calls['ours']:.2f} µs", f"{1e6 * rows['ours']:.2f} µs", f"{covered:.1f} %"]
    figures += [f"{calls['ratio']:.0f} and {rows['ratio']:.0f} times as fast"]
    for path in ("README.md", "docs/index.md"):
        text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert [figure for figure in figures if figure not in text] == [], path
    adaptive = "93.8 to 96.2 % of the targets in every window of 500 rows"
    assert adaptive in evidence["intervals"]
    assert adaptive in " ".join((ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split())


def test_everything_that_installs_the_package_uses_its_published_name() -> None:
    """`onepass` itself can't be registered, so a requirement such as `onepass[cli]` would install something else."""
    assert PROJECT["name"] == loaded("conda/recipe.yaml")["package"]["name"] == "onepass-learn"
    tracked = [
        path for folder in ("src", "docs", "deploy", "scripts", ".github") for path in (ROOT / folder).rglob("*")
    ]
    for path in [*tracked, *ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        if path.is_file() and path.suffix in {".py", ".md", ".rst", ".yml", ".toml", ".service", ""}:
            text = path.read_text(encoding="utf-8")
            assert not re.findall(r"(?<![\w.-])onepass\[[a-z{]|pip install onepass(?!-learn)", text), path


def test_changes_are_added_changed_or_fixed() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (.*)$", changes, re.MULTILINE)) <= {"Added", "Changed", "Fixed", "Removed"}


def test_every_python_of_the_classifiers_is_tested_and_built() -> None:
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tests = loaded(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert tests["python"] == pythons
    assert tests["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    built = re.findall(r"cp3(\d+)-", SETTINGS["tool"]["cibuildwheel"]["build"])
    assert [f"3.{minor}" for minor in built] == pythons
    assert PROJECT["requires-python"] == f">={pythons[0]}"


def test_conda_needs_what_the_core_and_the_command_line_need() -> None:
    run = [one.replace(" ", "") for one in loaded("conda/recipe.yaml")["requirements"]["run"]]
    assert sorted(set(run) - {"python"}) == sorted(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["cli"])


def test_addresses_of_the_project_are_in_one_place() -> None:
    texts = [*ROOT.glob("*.md"), ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.yml"), *(ROOT / "paper").glob("*")]
    texts += [ROOT / "conda" / "recipe.yaml", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").iterdir()]
    hosts = {url.split("/")[2] for url in PROJECT["urls"].values()}
    for path in texts:
        text = path.read_text(encoding="utf-8")
        assert not [host for host in hosts if host in text], path.name


def test_the_paper_cites_what_its_bibliography_has_each_with_a_doi() -> None:
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    entries = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8").split("\n@")
    found = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    assert set(re.findall(r"@([a-z]+\d{4})", text)) == set(found)
    assert [name for name, entry in found.items() if "doi = {10." not in entry] == []


def test_workflows_may_read_only_unless_they_publish() -> None:
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path.name
        more = {name for name, job in workflow["jobs"].items() if "permissions" in job}
        assert more <= {"publish", "deploy"}, path.name


@pytest.mark.skipif(shutil.which("zizmor") is None, reason="needs zizmor")
def test_workflows_are_safe() -> None:
    command = ["zizmor", "--offline", "--no-progress", "--config", ".github/zizmor.yml", ".github/workflows"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("check-jsonschema") is None, reason="needs check-jsonschema")
def test_workflows_have_the_keys_of_their_schema() -> None:
    command = ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_packages_are_published_without_a_password_and_after_all_checks() -> None:
    jobs = loaded(".github/workflows/wheels.yml")["jobs"]
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert (publish["needs"], jobs["check"]["needs"]) == (["check"], ["wheels", "sdist"])
    assert publish["environment"] == "pypi"
    assert "secrets." not in (ROOT / ".github/workflows/wheels.yml").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="needs actionlint")
def test_workflows_are_sound() -> None:
    done = subprocess.run(["actionlint", *map(str, WORKFLOWS)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def _skip_reason(call: ast.Call) -> str:
    """The words of a skip; of a package that can't be imported, its name."""
    given = [one.value for one in call.keywords if one.arg == "reason"] or call.args[:1]
    return str(ast.literal_eval(given[0]))


def test_every_reason_to_skip_a_test_is_listed() -> None:
    text = (ROOT / "docs" / "explanation" / "development.md").read_text(encoding="utf-8")
    section = text.partition("## Skipped tests")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    skips = {
        _skip_reason(node)
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SKIPS
    }
    assert skips == set(re.findall("`([^`]+)`", " ".join(cells)))


def test_exports_and_the_service_use_no_private_part_of_models() -> None:
    found = []
    for path in [*Path("src/onepass/export").rglob("*.py"), *Path("src/onepass/service/served").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                names = [] if ast.unparse(node.value) == "super()" else [node.attr]
            else:
                continue
            found += [
                f"{path.name}: {name}"
                for name in names
                if re.match(r"_[a-z]", name) and name not in ("_asdict", "_replace")
            ]
    assert not found
