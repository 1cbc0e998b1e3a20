"""What compose makes of the files, in every combination; Docker's client is enough for it."""

from __future__ import annotations

import json
from itertools import product

import pytest

from kb import __version__
from tests.conftest import ROOT, without_settings
from tests.images.conftest import output_of

pytestmark = pytest.mark.images
DEVICES = [(), ("cuda",), ("rocm",)]
PORTS = [(), ("engine-port",)]
DATABASES = [(), ("litestream",), ("postgres",)]


def configured(*overrides):
    files = [word for name in ("compose", *overrides) for word in ("-f", f"compose/{name}.yaml")]
    command = ["docker", "compose", "--env-file", "compose/.env.example", *files, "config", "--format", "json"]
    required = {"KB_ROCM_IMAGE": "base", "KB_POSTGRES_PASSWORD": "secret"}
    return json.loads(output_of(*command, cwd=ROOT, env=without_settings() | required))


@pytest.mark.parametrize("overrides", [sum(each, ()) for each in product(DEVICES, PORTS, DATABASES)])
def test_every_combination_keeps_the_containers_locked_up_and_off_the_network(overrides):
    services = configured(*overrides)["services"]
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert configured(*overrides)["networks"]["outside"]["driver_opts"] == {
        "com.docker.network.bridge.enable_ip_masquerade": "false"
    }
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


def test_over_postgresql_both_engines_have_the_same_settings_and_each_its_own_data():
    services = configured("postgres")["services"]
    first, second = services["engine"], services["engine-2"]
    assert first["environment"] == second["environment"]
    assert first["environment"]["KB_DATABASE_URL"] == "postgresql://kb:secret@postgres/kb"
    assert [each["volumes"][0]["source"] for each in (first, second)] == ["data", "data-2"]
    assert all(set(services[name]["networks"]) == {"inside"} for name in services if name != "gateway")


def test_the_images_carry_the_version():
    services = configured()["services"]
    assert {service["image"] for service in services.values()} == {f"kb-engine:{__version__}", f"kb-mcp:{__version__}"}
    assert {service["build"]["args"]["VERSION"] for service in services.values()} == {__version__}
