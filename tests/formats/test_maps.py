"""Tracks and maps: names, descriptions and a count, but no coordinates."""

from __future__ import annotations

import json
import time
from io import BytesIO
from zipfile import ZipFile

from tests.support.reading import read

KML = """<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>Wells</name>
<Style id="s"><LineStyle><color>ff00ff00</color></LineStyle></Style><Folder><name>North</name>
<Placemark><name>Well one</name><description><![CDATA[<b>Deep</b> water]]></description>
<ExtendedData><Data name="owner"><value>Ann</value></Data></ExtendedData>
<Point><coordinates>8.1,61.2,0</coordinates></Point></Placemark>
<Placemark><name>Path</name><LineString><coordinates>8.1,61.2,0 8.2,61.3 8.3,61.4</coordinates></LineString></Placemark>
</Folder></Document></kml>"""


def track(points):
    lines = "".join(
        f'<trkpt lat="61.{n:05}" lon="8.{n:05}"><ele>{n}</ele><time>2026-05-0{1 + n // 9000}T08:00:{n % 60:02}Z</time></trkpt>'
        for n in range(points)
    )
    return (
        '<gpx xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="61.1" lon="8.1"><name>Hut</name><cmt>locked</cmt></wpt>'
        f"<trk><name>Fell walk</name><desc>over the slate pass</desc><trkseg>{lines}</trkseg></trk></gpx>"
    )


def test_a_track_is_its_names_its_times_and_the_number_of_its_points():
    walk = read(track(1500), "walk.gpx")
    times = "2026-05-01T08:00:00Z to 2026-05-01T08:00:59Z"
    assert walk.text == f"Hut\n\nlocked\n\nFell walk\n\nover the slate pass\n\n[1,500 points] {times}\n"
    assert (walk.title, walk.date) == ("Fell walk", "2026-05-01T08:00:00Z")


def test_a_long_track_takes_no_longer_than_reading_it():
    begin = time.process_time()
    assert len(read(track(30_000), "walk.gpx").text) < 200
    assert time.process_time() - begin < 5


def test_a_map_is_its_places_and_what_is_said_of_them():
    wells = read(KML, "wells.kml")
    assert wells.title == "Wells"
    assert wells.sections[-1].heading == ("Wells", "North", "Path")
    assert wells.text == "Wells\n\nNorth\n\nWell one\n\nDeep water\n\nowner: Ann\n\nPath\n\n[3 points]\n"


def test_geojson_is_the_properties_of_its_features():
    line = {"type": "LineString", "coordinates": [[8.1, 61.2], [8.2, 61.3]]}
    feature = {
        "type": "Feature",
        "bbox": [8, 61, 9, 62],
        "properties": {"name": "Old quay", "depth": 3},
        "geometry": line,
    }
    whole = {"type": "FeatureCollection", "name": "Quays", "features": [feature]}
    quays = read(json.dumps(whole), "quays.geojson")
    assert (quays.title, quays.text) == ("Quays", "Quays\n\nOld quay\n\ndepth: 3\n[2 points]\n")
    assert read(f"{json.dumps(feature)}\n" * 2, "quays.geojson").text.count("[2 points]") == 2
    found = read(json.dumps({"results": [{"place": "Hut", "geometry": line}]}), "found.json").text
    assert '"place": "Hut"' in found
    assert '"coordinates": "[2 points]"' in found
    assert "61" not in found
    topology = {
        "type": "Topology",
        "objects": {"a": {"name": "Quay", "arcs": [[0]]}},
        "arcs": [[[8.1, 61.2], [8.2, 61.3]]],
    }
    assert "61" not in read(json.dumps(topology), "quay.topojson").text + read(json.dumps(topology), "quay.json").text


def test_json_whose_coordinates_are_words_stays_as_it_is():
    for text in (
        '{"coordinates":\n "none"}',
        '{"coordinates":\n [1, 2]}',
        '{"type": ["Point"],\n "coordinates": []}',
        '{"coordinates"\n',
    ):
        assert read(text, "a.json").text == text


def test_a_kmz_is_its_map():
    with BytesIO() as file:
        with ZipFile(file, "w") as archive:
            archive.writestr("files/legend.kml", KML.replace("Wells", "Legend"))
            archive.writestr("doc.kml", KML)
            archive.writestr("files/well.png", b"")
        data = file.getvalue()
    wells = read(data, "wells.kmz")
    assert (wells.title, wells.text) == ("Wells", read(KML, "wells.kml").text)
