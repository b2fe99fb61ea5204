import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from support.certificates import issue
from support.command_line import parse
from support.ports import free_ports
from support.third_party_source import register
from support.voting_bridge import write_config

from bridge.cli.commands import check
from bridge.metadata.discovery import Attempt, Candidate
from bridge.plugins import SinkPlugin, SinkSettings, Unavailable
from bridge.simulator import VM, Scenario, Simulator


@pytest.fixture
async def simulator():
    async with Simulator(Scenario(vms=[VM(name="web-7")])) as made:
        yield made


@pytest.fixture
def seb_check(tmp_path, simulator, capsys):
    """Check a configuration in a separate thread: exit code, stdout and stderr."""

    async def run(*words, **changes):
        keys = {
            "source": {"endpoint": simulator.endpoint},
            "state_dir": str(tmp_path),
            "sinks": {"log": {"type": "file", "path": str(tmp_path / "{vm_name}.jsonl")}},
            **changes,
        }
        file = write_config(tmp_path / "config.yaml", **keys)
        args = parse(check, "-c", str(file), *words)
        code = await asyncio.to_thread(check.run, args)
        return code, *capsys.readouterr()

    return run


async def test_it_says_in_sentences_what_will_happen(seb_check, simulator):
    code, out, err = await seb_check()
    assert (code, err) == (0, "")
    assert simulator.endpoint in out
    assert "log" in out
    assert simulator.truth == []


async def test_a_bad_file_is_78_and_prints_no_description(seb_check):
    code, out, err = await seb_check(sinks={"log": {"type": "file"}})
    assert (code, out) == (78, "")
    assert "sinks.log" in err
    assert "path" in err


async def test_connect_proves_the_endpoint_and_every_sink(seb_check, tmp_path):
    code, out, err = await seb_check("--connect")
    assert (code, err) == (0, "")
    good = [line for line in out.splitlines() if line.startswith("ok ")]
    assert [word in " ".join(good) for word in ("configured", "scheduled events", "instance")]
    assert good[-1].startswith("ok      sink log: ")
    assert "FAILED" not in out


async def test_connect_says_which_sink_cannot_be_reached(seb_check, tmp_path):
    (tmp_path / "blocked").touch()
    sinks = {
        "bad": {"type": "file", "path": str(tmp_path / "blocked" / "x")},
        "good": {"type": "stdout"},
    }
    code, out, _ = await seb_check("--connect", sinks=sinks)
    assert code == 1
    assert [line[:6] for line in out.splitlines() if "sink bad: " in line] == ["FAILED"]
    assert [line[:6] for line in out.splitlines() if "sink good: " in line] == ["ok    "]


async def test_connect_says_what_the_endpoint_answers(seb_check, simulator):
    simulator.world.fault("status", status=500, paths=["scheduledevents", "instance"])
    code, out, _ = await seb_check("--connect")
    assert code == 1
    failed = [line for line in out.splitlines() if line.startswith("FAILED")]
    assert failed[0].startswith("FAILED  scheduled events: The metadata service answered 500")
    assert failed[1].startswith("FAILED  instance metadata: The metadata service answered 500")
    assert failed[2] == "FAILED  sink log: {vm_name} is not known yet"


async def test_connect_calls_no_endpoint_ok_where_nothing_answers(seb_check):
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    code, out, _ = await seb_check("--connect", source={"endpoint": endpoint})
    assert code == 1
    assert f"FAILED  endpoint {endpoint} (configured): nothing answers there\n" in out
    assert f"ok      endpoint {endpoint}" not in out


async def test_connect_says_what_was_tried_when_no_endpoint_is_found(seb_check, monkeypatch):
    nobody = Candidate("http://169.254.169.254", "well-known")

    async def discover(_, *, configured):
        assert configured is None
        return None, [Attempt(nobody, "not the endpoint: silence.", chosen=False)]

    monkeypatch.setattr(check, "discover", discover)
    code, out, _ = await seb_check(
        "--connect", source={"endpoint": "auto"}, sinks={"out": {"type": "stdout"}}
    )
    assert code == 1
    lines = out.splitlines()
    asked = (
        "FAILED  no metadata service was found: is this an Azure VM? "
        "If it is elsewhere, set source.endpoint"
    )
    first = "FAILED  endpoint http://169.254.169.254 (well-known): not the endpoint: silence."
    assert lines.index(asked) < lines.index(first)
    assert lines[-1].startswith("ok      sink out")


async def test_candidates_before_the_right_one_are_not_failures(seb_check, simulator, monkeypatch):
    wrong, right = Candidate("http://127.0.0.1:1", "lease"), Candidate(simulator.endpoint, "route")

    async def discover(*_, **__):
        tried = [Attempt(wrong, "no", chosen=False), Attempt(right, "yes", chosen=True)]
        return right, tried

    monkeypatch.setattr(check, "discover", discover)
    code, out, _ = await seb_check("--connect")
    assert code == 0
    assert "(lease): no" in out


@pytest.fixture
def tail():
    """Approval sources that read the lines of a file."""
    undo = register()
    yield
    undo()


async def test_connect_enters_every_approval_source(seb_check, tmp_path, tail):
    (tmp_path / "votes").touch()
    sources = {
        name: {"type": "tail", "path": str(tmp_path / name), "trust": "transport"}
        for name in ("votes", "nowhere")
    }
    code, out, _ = await seb_check("--connect", approvals={"from": sources})
    assert code == 1
    assert "ok      approvals from votes: can be read" in out.splitlines()
    gone = f"FAILED  approvals from nowhere: there is no {tmp_path / 'nowhere'}"
    assert gone in out.splitlines()


async def test_connect_reads_tokens_and_other_secrets_from_their_files(seb_check, tmp_path):
    (tmp_path / "good").write_text("s3cret")
    (tmp_path / "empty").touch()
    tokens = [{"name": each, "token": {"file": str(tmp_path / each)}} for each in ("good", "empty")]
    late = tmp_path / "late"
    allow = [{"approver": "orders", "keys": [{"hmac": {"file": str(late)}}]}]
    keys = {"http": {"tokens": tokens}, "approvals": {"allow": allow}}
    code, out, _ = await seb_check("--connect", **keys)
    lines = [line for line in out.splitlines() if "can be read from" in line or "FAILED" in line]
    assert code == 1
    assert "s3cret" not in out
    assert lines == [
        f"FAILED  approvals.allow.0.keys.0.hmac cannot be read from {late}: No such file or directory",
        f"ok      http.tokens.0.token can be read from {tmp_path / 'good'}",
        f"FAILED  http.tokens.1.token is empty in {tmp_path / 'empty'}",
    ]


async def test_connect_loads_the_certificate_of_the_server(seb_check, tmp_path):
    files = issue(tmp_path)
    tls = {"certificate": str(files.server.certificate), "key": str(files.server.key)}
    code, out, _ = await seb_check("--connect", http={"tls": tls})
    assert code == 0
    assert "ok      http.tls: the certificate and its key can be used" in out.splitlines()
    tls["key"] = str(files.client.key)
    code, out, _ = await seb_check("--connect", http={"tls": tls})
    assert code == 1
    assert "FAILED  http.tls: " in out


def plugin(check_it=None, enter=lambda: None) -> SinkPlugin:
    @asynccontextmanager
    async def open_it(settings, place):
        enter()
        yield None

    return SinkPlugin(SinkSettings, open_it, check_it)


async def prove(monkeypatch, made: SinkPlugin) -> tuple[bool, str]:
    monkeypatch.setattr(check, "find_sink", lambda _: made)
    settings = SinkSettings.model_validate({"type": "fake", "retry": {"timeout": "50ms"}})
    return await check._sink("bus", settings, check.place("vm", check.Instance()))


async def test_a_sink_with_its_own_check_is_checked(monkeypatch):
    async def proof(_, place):
        return f"topic exists for {place.sink}"

    assert await prove(monkeypatch, plugin(proof)) == (True, "sink bus: topic exists for bus")


async def test_a_sink_without_its_own_check_is_connected(monkeypatch):
    assert await prove(monkeypatch, plugin()) == (True, "sink bus: can be reached")


async def test_a_check_that_fails_says_why(monkeypatch):
    async def proof(*_):
        raise Unavailable("no such topic")

    assert await prove(monkeypatch, plugin(proof)) == (False, "sink bus: no such topic")


async def test_a_check_that_fails_immediately_says_why(monkeypatch):
    def proof(*_):
        raise OSError("no library")

    assert await prove(monkeypatch, plugin(proof)) == (False, "sink bus: no library")


async def test_a_check_that_takes_too_long_says_so(monkeypatch):
    async def proof(*_):
        await asyncio.sleep(60)

    assert await prove(monkeypatch, plugin(proof)) == (False, "sink bus: no answer within 0.05 s")


async def test_the_file_may_be_given_without_an_option_but_only_once(tmp_path, capsys):
    file = write_config(tmp_path / "my.yaml", state_dir=str(tmp_path))
    assert check.run(parse(check, str(file))) == 0
    assert capsys.readouterr().out.startswith(f"{file} is valid.\n\nSource\n- ")
    assert check.run(parse(check, str(file), "-c", str(file))) == 2


async def test_quiet_prints_only_what_is_wrong(seb_check):
    assert await seb_check("--quiet") == (0, "", "")
    code, out, err = await seb_check("--quiet", http={"tokens": ["short"]})
    assert (code, err) == (0, "")
    assert all(line.startswith("Warning: ") for line in out.splitlines())
    gone = {"log": {"type": "webhook", "url": "http://127.0.0.1:9/"}}
    code, out, err = await seb_check("--quiet", "--connect", sinks=gone)
    assert (code, out.count("\n"), out.startswith("FAILED  sink log: ")) == (1, 1, True)


async def test_json_is_one_object_with_the_same_sentences(seb_check):
    code, out, _ = await seb_check("--json", "--connect", http={"tokens": ["short"]})
    found = json.loads(out)
    assert (code, found["valid"], found["problems"]) == (0, True, [])
    assert any("fewer than 16 characters" in one for one in found["warnings"])
    assert all(one["ok"] for one in found["connections"])
    assert {"source", "sinks", "approvals", "http", "journal", "sha256"} <= set(found)
    code, out, err = await seb_check("--json", sinks={"log": {"type": "file"}})
    assert (code, json.loads(out)["valid"], err) == (78, False, "")
    assert "path: is missing" in json.loads(out)["problems"][0]
