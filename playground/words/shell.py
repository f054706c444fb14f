"""What the shell says, where it is more than a line of a table."""

from __future__ import annotations

from ..storage.spaces import Deployed, Deployment
from .hub import explain


def deployment_lines(deployment: Deployment) -> list[str]:
    """What a deployment would do, file by file."""
    begin = {True: "Would make the Space", False: "Would update the Space", None: "Would make or update the Space"}
    lines = [f"{begin[deployment.creates]} {deployment.space_id} on {_hardware(deployment)}:"]
    lines += [f"  {change.action:<7}{change.size:>10,}  {change.path}" for change in deployment.changes]
    sent, size = len(deployment.sent), sum(change.size for change in deployment.sent)
    lines.append(f"{sent} of {len(deployment.changes)} files, {size / 1e6:.1f} MB, would be sent. Nothing was done.")
    return [*lines, *deployment_notes(deployment)]


def deployment_notes(deployment: Deployment) -> list[str]:
    """What to know before a deployment: what could not be looked at, and what costs money."""
    notes = []
    if deployment.unreachable:
        notes.append(
            f"The Space could not be looked at, so every file counts as new: {explain(deployment.unreachable)}."
        )
    if idle := deployment.sleep_seconds:
        notes.append(f"{deployment.hardware} is paid by the minute until it sleeps, after {idle // 60} idle minutes.")
    return notes


def deployed(event: Deployed, deployment: Deployment) -> str:
    """One step of a deployment."""
    sent, size = len(deployment.sent), sum(change.size for change in deployment.sent)
    uploaded = f"Sent {sent} files, {size / 1e6:.1f} MB." if sent else "Nothing has changed, nothing was sent."
    return {
        "created": f"Made the Space {deployment.space_id}.",
        "uploaded": uploaded,
        "requested": f"Hardware: {_hardware(deployment)}.",
        "waiting": f"{str(event.stage).replace('_', ' ').capitalize()} …",
        "running": f"It runs: {event.address}",
    }[event.event]


def _hardware(deployment: Deployment) -> str:
    idle = deployment.sleep_seconds
    return deployment.hardware + (f", asleep after {idle // 60} idle minutes" if idle else "")
