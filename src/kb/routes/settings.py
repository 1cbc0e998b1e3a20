"""The settings of the engine."""

from fastapi import APIRouter

from kb.api.settings_models import SettingList, SettingsChange
from kb.routes.dependencies import ADMIN, AuthorDep, ServicesDep
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.store.rows import AuditEvent

router = APIRouter(route_class=ThreadRoute, tags=["settings"])


@router.get("/settings", summary="Get the settings", dependencies=[ADMIN])
def get_settings(services: ServicesDep) -> SettingList:
    """Return each setting of the engine, its value, and whether the environment or a saved change sets it."""
    return services.live_settings.state()


@router.patch("/settings", summary="Change settings", dependencies=[ADMIN], responses=problems(400, 409, 413, 507))
def change_settings(change: SettingsChange, services: ServicesDep, author: AuthorDep) -> SettingList:
    """Change settings at once. kb saves them in the data folder, so that they stay after a restart.

    Settings in kb's environment cannot be changed here.
    """
    state = services.live_settings.change(change)
    with services.store.write() as tx:  # only now, because a part that stops may wait for its own write
        tx.audit.add([AuditEvent("settings-change")], author)
    return state
