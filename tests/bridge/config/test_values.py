import pytest

from bridge.config.values import Listen


def test_a_relative_state_directory_is_made_absolute(read, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert read("state_dir: state").state_dir == tmp_path / "state"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source: {endpoint: 127.0.0.1}", "write auto, or a URL like http://127.0.0.1:8081"),
        ("source: {endpoint: 'http://127.0.0.1:99999'}", "write auto, or a URL like"),
        ("source: {endpoint: 'http://a:b@127.0.0.1'}", "write auto, or a URL like"),
        ("source: {endpoint: 'http://[::1'}", "write auto, or a URL like"),
        ("source: {endpoint: 'http://h/metadata/scheduledevents'}", "write only http://h"),
        ("source: {api_version: 2017-02-28}", "write a date, 2017-03-01 or later"),
        ("source: {api_version: 2020-02-30}", "write a date, 2017-03-01 or later"),
        ("source: {api_version: latest}", "write a date, 2017-03-01 or later"),
        ("source: {api_version: 2020}", "write a date, 2017-03-01 or later"),
        ("source: {vm_name: ''}", "must be one line of text, not empty"),
        ("cloudevents: {source: a b}", "cloudevents.source: must be a URI reference, such as"),
        ("state_dir: ~/state", "~ is not expanded; write the full path"),
        ("control_group: no-such-group-here", "there is no group 'no-such-group-here'"),
        ("http: {listen: 17245}", "write HOST:PORT"),
        ("http: {listen: ':17245'}", "write HOST:PORT"),
        ("http: {listen: '::1:80'}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1:70000}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1}", "write HOST:PORT"),
        ("http: {listen: 127.0.0.1:80/x}", "write HOST:PORT"),
    ],
)
def test_a_wrong_value_is_explained(problems, text, said):
    [found] = problems(text)
    assert said in found
    assert found.startswith(":1: ")


@pytest.mark.parametrize(
    ("text", "listen"),
    [
        ("127.0.0.1:80", Listen("127.0.0.1", 80)),
        ("[::1]:0", Listen("::1", 0)),
        ("vm.example:17245", Listen("vm.example", 17245)),
    ],
)
def test_an_address_is_read_and_written_the_same_way(text, listen):
    assert Listen.parse(text) == listen
    assert str(listen) == text


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.2", True), ("::1", True), ("localhost", True), ("::", False), ("a.example", False)],
)
def test_an_address_knows_whether_it_is_loopback(host, loopback):
    assert Listen(host, 80).is_loopback is loopback
