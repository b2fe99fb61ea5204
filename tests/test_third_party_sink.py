"""A third-party sink, installed from its own wheel, is found the same way as ours."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.canned_server import CannedServer, http
from support.cloudevents import batch
from support.third_party import environment, install

from bridge.plugins import Misconfigured
from bridge.plugins.formats import find_format
from bridge.plugins.sinks import find_sink

SENDS = """
import asyncio, sys
from pathlib import Path
from typing import Any
from bridge.plugins import Place
from bridge.plugins.sinks import find_sink
from support.cloudevents import batch, make

async def main(page):
    plugin = find_sink("notebook")
    settings = plugin.settings.model_validate({"type": "notebook", "page": page, "widest": 2000})
    print(settings.describe() == f"notes CloudEvents as JSON in {page}")
    async with plugin.open(settings, Place()) as send:
        print(await send([*batch(2), make(3, size=3000)]))

asyncio.run(main(sys.argv[1]))
"""
VALIDATES = """
from bridge.plugins.sinks import find_sink
find_sink("notebook").settings.model_validate({"type": "notebook", "pages": "a"})
"""
FORMATS = """
import asyncio, sys
from bridge.plugins import Place
from bridge.plugins.sinks import find_sink
from bridge.plugins.formats import installed_formats
from support.cloudevents import batch

async def main(kind, **keys):
    plugin = find_sink(kind)
    written = {"type": kind, "format": {"type": "gist", "between": "/"}, **keys}
    settings = plugin.settings.model_validate(written)
    async with plugin.open(settings, Place()) as send:
        assert list(await send(batch(2))) == [None, None]

assert {"gist", "cloudevents"} <= set(installed_formats())
asyncio.run(main("stdout"))
asyncio.run(main("notebook", page=sys.argv[1]))
"""
SEB = "import sys; from bridge.cli import main; sys.exit(main(sys.argv[1:]))"
PAGE = (Path(__file__).parents[1] / "docs" / "writing-a-sink.md").read_text(encoding="utf-8")
LISTS = "from bridge.plugins.sinks import installed_sinks; print(*sorted(installed_sinks()))"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return install(tmp_path_factory.mktemp("notebook"))


def run(site, program, *argv):
    command = [sys.executable, "-c", program, *map(str, argv)]
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=25,
        env=environment(site),
    )


def test_it_stands_beside_our_own(site):
    names = run(site, LISTS).stdout.split()
    assert {"notebook", "stdout", "file"} <= set(names)


def test_it_is_not_there_when_it_is_not_installed():
    with pytest.raises(
        Misconfigured, match=r"there is no sink type 'notebook'; choose from .*stdout"
    ):
        find_sink("notebook")


def test_it_is_found_described_and_sends(site, tmp_path):
    done = run(site, SENDS, tmp_path / "page")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n[None, None, Rejected('longer than 2000 bytes')]\n"
    lines = (tmp_path / "page").read_bytes().splitlines()
    assert [json.loads(line) for line in lines] == [sent.envelope for sent in batch(2)]


def test_a_third_party_format_works_in_its_own_sink_and_in_ours(site, tmp_path):
    done = run(site, FORMATS, tmp_path / "page")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Reboot/scheduled\nReboot/scheduled\n"
    assert (tmp_path / "page").read_text() == done.stdout


def test_a_format_is_not_there_when_it_is_not_installed():
    with pytest.raises(Misconfigured, match=r"there is no format type 'gist'; choose from .*slack"):
        find_format("gist")


def test_its_own_keys_are_validated(site):
    done = run(site, VALIDATES)
    assert done.returncode == 1
    assert "page\n  Field required" in done.stderr
    assert "pages\n  Extra inputs are not permitted" in done.stderr


def typed(kind, section="## A complete sink"):
    """The first block of that kind in a section of the page, as a reader would type it."""
    return PAGE.split(section)[1].split(f"```{kind}\n")[1].split("```")[0]


async def test_the_sink_in_the_docs_works_exactly_as_typed(tmp_path, endpoint):
    """Installed by its entry point as the page says, and run by the bridge."""
    project = tmp_path / "my-bell"
    project.mkdir()
    (project / "my_bell.py").write_text(typed("python"))
    (project / "pyproject.toml").write_text(typed("toml"))
    mine = {"source": {"endpoint": endpoint, "vm_name": "web-1"}, "http": {"listen": None}}
    config = tmp_path / "config.yaml"
    config.write_text(f"{yaml.dump({**mine, 'state_dir': str(tmp_path / 'state')})}{typed('yaml')}")
    site = await asyncio.to_thread(install, tmp_path / "built", project)
    done = await asyncio.to_thread(run, site, SEB, "run", "--once", "-c", config)
    assert done.returncode == 0, done.stderr
    kinds = ["scheduled", "source.snapshot"]
    assert sorted(done.stdout.splitlines()) == [
        f"dong azure.scheduledevents.{kind}.v1" for kind in kinds
    ]


def test_the_sink_in_the_docs_is_as_short_as_promised():
    assert sum(1 for line in typed("python").splitlines() if line.strip()) <= 16


def test_the_format_in_the_docs_works():
    code = typed("python", "## Writing a format")
    module: dict[str, Any] = {}
    exec(code, module)
    settings = module["plugin"].settings.model_validate({"type": "shout", "mark": "?"})
    form = module["plugin"].open(settings)
    [cloudevent] = batch(1)
    assert form.wants(cloudevent)
    assert form.encode(cloudevent) == b"REBOOT?"


@pytest.fixture
async def endpoint():
    """A metadata service that announces one scheduled event, and knows nothing else."""
    document = {
        "DocumentIncarnation": 1,
        "Events": [
            {
                "EventId": "602D9444-D2CD-49C7-8624-8643E7171297",
                "EventType": "Reboot",
                "EventStatus": "Scheduled",
                "ResourceType": "VirtualMachine",
                "Resources": ["web-1"],
                "NotBefore": "Sun, 15 Nov 2099 18:29:47 GMT",
            }
        ],
    }

    async def answer(request):
        known = request.target.startswith("/metadata/scheduledevents")
        return http(200, document) if known else http(404)

    async with CannedServer(handler=answer) as server:
        yield server.url


async def test_the_bridge_delivers_to_it(site, endpoint, tmp_path):
    config = {
        "source": {"endpoint": endpoint, "vm_name": "web-1"},
        "state_dir": str(tmp_path / "state"),
        "http": {"listen": None},
        "sinks": {
            "notes": {"type": "notebook", "page": str(tmp_path / "page")},
            "gists": {
                "type": "notebook",
                "page": str(tmp_path / "gists"),
                "format": {"type": "gist"},
            },
        },
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    argv = ("run", "--once", "-c", tmp_path / "config.yaml")
    done = await asyncio.to_thread(run, site, SEB, *argv)
    assert done.returncode == 0, done.stderr
    noted = [json.loads(line) for line in (tmp_path / "page").read_bytes().splitlines()]
    [scheduled] = [one for one in noted if one["type"] == "azure.scheduledevents.scheduled.v1"]
    assert scheduled["subject"] == "602D9444-D2CD-49C7-8624-8643E7171297"
    assert (tmp_path / "gists").read_text() == "Reboot scheduled\n", "a gist wants no snapshot"
