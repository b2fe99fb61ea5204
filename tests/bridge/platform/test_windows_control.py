"""The service manager talks to the bridge from its own thread."""

from bridge.platform.windows_control import Controls


def test_a_stop_and_a_reload_reach_the_bridge():
    controls, heard = Controls(), []
    with controls.attached(lambda: heard.append("stop"), lambda: heard.append("reload")):
        controls.reload()
        controls.stop()
    assert heard == ["reload", "stop"]


def test_a_stop_before_the_bridge_runs_is_not_lost():
    controls, heard = Controls(), []
    controls.reload()
    controls.stop()
    with controls.attached(lambda: heard.append("stop"), lambda: heard.append("reload")):
        assert heard == ["stop"]


def test_nothing_is_asked_of_a_bridge_that_has_ended():
    controls, heard = Controls(), []
    with controls.attached(lambda: heard.append("stop"), lambda: heard.append("reload")):
        pass
    controls.reload()
    controls.stop()
    assert heard == []
