"""What the shell says, where it is more than a line of a table."""

from __future__ import annotations

from ..storage.spaces import Deployment


def deployment_lines(deployment: Deployment) -> list[str]:
    """What a deployment would do, file by file."""
    lines = [f"Would {'make' if deployment.creates else 'update'} the Space {deployment.space_id}:"]
    lines += [f"  {change.action:<7}{change.size:>10,}  {change.path}" for change in deployment.changes]
    return [*lines, *deployment_note(deployment), "Nothing was done."]


def deployment_note(deployment: Deployment) -> list[str]:
    """How much is sent, and what costs money."""
    sent = [change for change in deployment.changes if change.action != "delete"]
    same = "" if deployment.changes else "Nothing has changed. "
    note = f"{same}{len(sent)} files to send, {sum(change.size for change in sent) / 1e6:.1f} MB."
    if idle := deployment.sleep_seconds:
        note += f" {deployment.hardware} is paid by the minute until it sleeps, after {idle // 60} idle minutes."
    return [note]
