"""The services whose calls are one message each way, as both clients have them."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from typing import Any

from docmem import v1
from docmem._core import Call, Core
from docmem._operation import StreamOperation, paged, unary
from docmem._requests import allows_missing, has_no_revision, header_of


class Collections:
    create = unary("Collection.Create", v1.CreateCollectionRequest, v1.Collection)
    get = unary("Collection.Get", v1.GetCollectionRequest, v1.Collection, safe=True)
    list = paged("Collection.List", v1.ListCollectionsRequest, "collections", v1.Collection)
    update = unary(
        "Collection.Update", v1.UpdateCollectionRequest, v1.Collection, safe=has_no_revision
    )
    delete = unary(
        "Collection.Delete",
        v1.DeleteCollectionRequest,
        v1.DeleteCollectionResponse,
        safe=allows_missing,
    )


class Trainings:
    start = unary("Training.Start", v1.StartTrainingRequest, v1.TrainingJob, document=header_of)
    get = unary("Training.Get", v1.GetTrainingJobRequest, v1.TrainingJob, safe=True)
    list = paged("Training.List", v1.ListTrainingJobsRequest, "jobs", v1.TrainingJob)
    cancel = unary("Training.Cancel", v1.CancelTrainingRequest, v1.TrainingJob)

    @StreamOperation
    async def watch(core: Core, /, job_id: str) -> AsyncGenerator[v1.TrainingEvent, None]:
        """Changes of state, steps and losses until the job has ended, without a deadline. After a
        lost connection the job's state comes again."""
        request = v1.WatchTrainingRequest(job_id=job_id)
        call = Call("Training.Watch", safe=True, timeout=math.inf)
        async for event in core.stream(call, request, last=_ends_job):
            yield event


class Admin:
    status = unary("Admin.GetStatus", v1.GetStatusRequest, v1.GetStatusResponse, safe=True)
    residents = paged("Admin.ListResident", v1.ListResidentRequest, "items", v1.ResidentItem)
    drain = unary("Admin.Drain", v1.DrainRequest, v1.DrainResponse, safe=True)


def _ends_job(event: Any) -> bool:
    job = v1.TrainingJob
    return event.HasField("job") and event.job.state in (
        job.STATE_SUCCEEDED,
        job.STATE_FAILED,
        job.STATE_CANCELLED,
    )
