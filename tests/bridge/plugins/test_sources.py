"""The keys that all approval sources have, and how they are found."""

import pytest
from pydantic import ValidationError
from support.third_party_source import TYPE, register

from bridge.plugins import ApprovalPlugin, ApprovalSettings, Delivery, Misconfigured, SinkSettings
from bridge.plugins.sources import find_approvals, installed_approvals


def test_our_own_approval_sources_are_installed_like_any_others():
    assert {"kafka", "mqtt"} <= set(installed_approvals())
    for kind in ("kafka", "mqtt"):
        assert isinstance(find_approvals(kind), ApprovalPlugin)


def test_the_error_for_an_unknown_approval_source_lists_all_types():
    with pytest.raises(
        Misconfigured, match=r"no approval source type 'kafak'; choose from .*kafka"
    ):
        find_approvals("kafak")


def test_an_approval_source_of_another_package_is_found():
    undo = register()
    try:
        assert TYPE in installed_approvals()
        assert isinstance(find_approvals(TYPE), ApprovalPlugin)
    finally:
        undo()


def test_trust_has_no_default():
    with pytest.raises(ValidationError, match="trust"):
        ApprovalSettings.model_validate({"type": "any"})


def test_a_source_without_a_description_is_described_by_its_type():
    settings = ApprovalSettings(type="any", trust="signed")
    assert settings.describe() == "come from a source of type any"
    assert not settings.overlaps(SinkSettings(type="any"))
    assert settings.SHARED == ()


def test_a_delivery_needs_no_more_than_its_body():
    delivery = Delivery(b"{}")
    assert (delivery.headers, delivery.ack, delivery.identity) == ((), None, None)
    assert (delivery.position, delivery.checkpoint, delivery.unread) == (None, None, None)
