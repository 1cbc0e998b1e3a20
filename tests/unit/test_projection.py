"""Vectors of many dimensions in two."""

from __future__ import annotations

import numpy as np
import pytest

from kb.vectors.projection import project


def scattered(count, dimensions=64, seed=1):
    random = np.random.default_rng(seed)
    spread = np.concatenate([[9, 5], np.ones(dimensions - 2)])
    axes = np.linalg.qr(random.normal(size=(dimensions, dimensions)))[0]
    return (random.normal(size=(count, dimensions)) * spread @ axes + 3).astype(np.float32)


def test_the_axes_are_those_along_which_vectors_differ_most():
    vectors = scattered(400)
    centred = vectors - vectors.mean(axis=0)
    _, _, best = np.linalg.svd(centred, full_matrices=False)
    for column, expected in zip(project(vectors.copy()).T, (centred @ best[:2].T).T, strict=True):
        assert abs(np.corrcoef(column, expected)[0, 1]) > 0.999


def test_the_same_vectors_lie_at_the_same_places_and_fill_the_plane():
    vectors = scattered(300)
    places = project(vectors.copy())
    assert (places == project(vectors.copy())).all()
    assert places.min(axis=0) == pytest.approx([-1, -1])
    assert places.max(axis=0) == pytest.approx([1, 1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_vectors_have_places_too(count):
    assert np.isfinite(project(scattered(count))).all()


def test_vectors_that_are_all_the_same_lie_at_one_place():
    places = project(np.ones((50, 16), np.float32))
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(3), axis=0)) == 1
