"""What compose makes of the files, in every combination; Docker's client is enough for it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from itertools import product

import pytest

from kb import __version__
from kb.settings import Settings as EngineSettings
from kb_mcp.settings import Settings as GatewaySettings
from tests.conftest import ROOT, without_settings
from tests.images.conftest import fresh_copy, output_of

pytestmark = pytest.mark.images
DEVICES = [(), ("cuda",), ("rocm",)]
PORTS = [(), ("engine-port",)]
FIXED = {"engine": {"data_dir", "model_dir", "database_url"}, "gateway": set()}


def configured(*overrides, **settings):
    files = [word for name in ("compose", *overrides) for word in ("-f", f"compose/{name}.yaml")]
    command = ["docker", "compose", "--env-file", "compose/.env.example", *files, "config", "--format", "json"]
    return json.loads(output_of(*command, cwd=ROOT, env=without_settings() | settings))


@pytest.mark.parametrize("overrides", [device + port for device, port in product(DEVICES, PORTS)])
def test_every_combination_keeps_the_containers_locked_up_and_off_the_network(overrides):
    services = configured(*overrides)["services"]
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    published = {name: service.get("ports", []) for name, service in services.items()}
    assert len(published["engine"]) == overrides.count("engine-port")
    assert {port["host_ip"] for ports in published.values() for port in ports} == {"127.0.0.1"}


def test_each_device_has_its_image_its_packages_and_its_hardware():
    cuda, rocm = configured("cuda")["services"]["engine"], configured("rocm")["services"]["engine"]
    assert (cuda["image"], rocm["image"]) == (f"kb-engine:{__version__}-cuda", f"kb-engine:{__version__}-rocm")
    assert cuda["build"]["args"]["REQUIREMENTS"] == "engine-cuda"
    assert rocm["build"]["args"]["REQUIREMENTS"] == "engine-rocm"
    assert [
        (device["driver"], device["count"]) for device in cuda["deploy"]["resources"]["reservations"]["devices"]
    ] == [("nvidia", 1)]
    assert ["/dev/kfd" in str(device) or "/dev/dri" in str(device) for device in rocm["devices"]] == [True, True]
    assert (cuda["environment"]["KB_DEVICE"], rocm["environment"]["KB_DEVICE"]) == ("cuda", "rocm")


@pytest.mark.parametrize(("service", "settings"), [("engine", EngineSettings), ("gateway", GatewaySettings)])
def test_every_setting_reaches_its_container(service, settings):
    names = {f"KB_{name.upper()}" for name in settings.model_fields.keys() - FIXED[service]}
    assert names <= configured()["services"][service]["environment"].keys()


def test_the_images_carry_the_version():
    services = configured()["services"]
    assert {service["image"] for service in services.values()} == {f"kb-engine:{__version__}", f"kb-mcp:{__version__}"}
    assert {service["build"]["args"]["VERSION"] for service in services.values()} == {__version__}


def test_keys_are_made_once_for_their_owner_alone_and_never_shown(tmp_path):
    script = fresh_copy(tmp_path) / "compose" / "make-env.sh"
    file = script.with_name(".env")
    said = output_of(script)
    made = file.read_text()
    keys = [line.partition("=")[2] for line in made.splitlines() if line.startswith(("KB_API_KEY=", "KB_MCP_API_KEY="))]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [len(key) for key in keys] == [64, 64]
    assert keys[0] != keys[1]
    assert not any(key in said for key in keys)
    assert output_of(script) == ""
    assert file.read_text() == made


def test_a_key_that_is_missing_is_made_and_the_rest_left_alone(tmp_path):
    script = fresh_copy(tmp_path) / "compose" / "make-env.sh"
    file = script.with_name(".env")
    file.write_text("KB_API_KEY=mine\nKB_MCP_PORT=9000\n")
    output_of(script)
    first, second, third = file.read_text().splitlines()
    assert (first, second) == ("KB_API_KEY=mine", "KB_MCP_PORT=9000")
    assert third.startswith("KB_MCP_API_KEY=")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_make_publishes_the_engine_only_if_asked(tmp_path):
    folder = fresh_copy(tmp_path)
    command = ["make", "-n", "up-gpu"]
    asked = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
    assert "engine-port.yaml" not in output_of(*command, cwd=folder, env=asked)
    (folder / "compose" / ".env").write_text("KB_ENGINE_PORT=8001\n")
    said = subprocess.run(command, cwd=folder, env=asked, capture_output=True, text=True, check=True).stdout
    assert "-f compose/compose.yaml -f compose/engine-port.yaml -f compose/cuda.yaml up" in said
