"""What must be so of an order after a cut."""

from platform_sim.lab.sweep.stage import Aftermath

__all__ = ["receipt_was_sent"]


def receipt_was_sent(aftermath: Aftermath) -> None:
    """Require a receipt for every order that was accepted."""
    if aftermath.acknowledged:
        sent = aftermath.outside.payloads("receipts")
        assert "o-1" in sent, f"o-1 was accepted, and the receipts sent are {sent}"
