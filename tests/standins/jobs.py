"""The stand-in Hub's compute jobs: submitted, looked at, their logs read. Nothing is run.

hub.jobs.script(["step 1 loss 2.0", "saved"], stage="COMPLETED")    # what the next job will say and how it ends
hub.jobs.submitted[0]                                               # the specification as it was sent
"""

import json
from typing import Any


class Jobs:
    """All jobs, in the order of their submission."""

    def __init__(self) -> None:
        self.submitted: list[dict[str, Any]] = []
        self.flavors = ["cpu-basic", "cpu-upgrade", "t4-small", "t4-medium", "a10g-small", "l4x1", "a100-large"]
        self._scripts: list[tuple[list[str], str, str | None]] = []
        self._jobs: dict[str, dict[str, Any]] = {}

    def script(self, log: list[str], stage: str = "COMPLETED", message: str | None = None) -> None:
        """What the next job to be submitted will log, and how it ends."""
        self._scripts.append((log, stage, message))

    def answer(self, request: Any, path: str, query: dict, body: bytes, who: Any) -> None:
        """Answer `request` for a path below /api/jobs/."""
        if path == "hardware":
            costs = {"unitCostMicroUSD": 10_000, "unitCostUSD": 0.01, "unitLabel": "minute"}
            offer = {"cpu": "2 vCPU", "ram": "16 GB", "accelerator": None, **costs}
            return request._json([{"name": name, "prettyName": name, **offer} for name in self.flavors])
        if who is None:
            return request._json({"error": "Invalid username or password."}, 401)
        namespace, *rest = path.split("/")
        if namespace != who.name:
            return request._json({"error": "Forbidden"}, 403)
        if not rest:
            return request._json(self._submit(json.loads(body), who.name) if body else list(self._jobs.values()))
        job = self._jobs.get(rest[0])
        if job is None:
            return request._json({"error": "Job not found"}, 404)
        if rest[1:] == ["logs"]:
            return self._logs(request, job)
        return request._json({k: v for k, v in job.items() if not k.startswith("_")})

    def _submit(self, spec: dict[str, Any], owner: str) -> dict[str, Any]:
        self.submitted.append(spec)
        log, stage, message = self._scripts.pop(0) if self._scripts else ([], "COMPLETED", None)
        job = {
            "id": f"job{len(self.submitted):021d}",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "owner": {"id": "1" * 24, "name": owner, "type": "user"},
            "command": spec["command"],
            "arguments": spec["arguments"],
            "environment": spec["environment"],
            "flavor": spec["flavor"],
            "dockerImage": spec.get("dockerImage"),
            "labels": spec.get("labels"),
            "status": {"stage": "SCHEDULING", "message": None},
            "_log": log,
            "_end": {"stage": stage, "message": message},
        }
        self._jobs[job["id"]] = job
        return {k: v for k, v in job.items() if not k.startswith("_")}

    def _logs(self, request: Any, job: dict[str, Any]) -> None:
        """All lines as server-sent events; then the job is over."""
        lines = ["===== Job started at 2026-01-01 00:00:00 =====", *job["_log"]]
        events = [{"data": line, "timestamp": f"2026-01-01T00:00:{i:02d}.000Z"} for i, line in enumerate(lines)]
        if job["status"]["stage"] == "SCHEDULING":
            job["status"] = job["_end"]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        request._answer(body, {"content-type": "text/event-stream"}, 200)
