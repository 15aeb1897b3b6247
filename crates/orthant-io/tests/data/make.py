"""Writes the fixtures next to this file, with h5py, anndata, pyarrow and NumPy.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install numpy pandas pyarrow h5py anndata
    /tmp/venv/bin/python make.py

The tests compare the files with the numbers below, which they repeat.
"""

from pathlib import Path

import anndata as ad
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import scipy.sparse as sp

here = Path(__file__).parent
points = np.arange(40, dtype="f8").reshape(20, 2) / 4
weights = np.arange(1, 21)


def h5(name, libver="earliest"):
    return h5py.File(here / name, "w", libver=libver, track_order=False)


for name, settings in {
    "plain": {},
    "gzip": {"chunks": (6, 2), "compression": "gzip", "shuffle": True},
    "lzf": {"chunks": (20, 2), "compression": "lzf"},
    "checked": {"chunks": (7, 1), "fletcher32": True},
}.items():
    with h5(f"{name}.h5") as file:
        file.create_dataset("points", data=points, **settings)
with h5("latest.h5", "latest") as file:
    file.create_dataset("a/points", data=points.astype(">f4"), chunks=(3, 2), compression="gzip")
with h5("several.h5") as file:
    file["x"] = points
    file["group/y"] = points.astype("i4")
    file["group/mass"] = weights
    file["group/kind"] = ["even" if i % 2 == 0 else "odd" for i in range(20)]
    file["cube"] = np.zeros((2, 2, 2))
    file["group/fixed"] = np.array([b"ab", b"c"] * 10, dtype="S3")
with h5("empty.h5") as file:
    file.create_group("nothing")

obs = pd.DataFrame(
    {
        "mass": weights.astype("f4"),
        "kind": pd.Categorical(["B" if i % 3 else "T" for i in range(20)]),
        "donor": [f"d{i % 2}" for i in range(20)],
        "good": [i % 2 == 0 for i in range(20)],
        "age": pd.array([None if i == 4 else i for i in range(20)], dtype="Int32"),
    },
    index=[f"cell{i}" for i in range(20)],
)
obs.loc["cell5", "kind"] = None
var = pd.DataFrame(index=["CD4", "CD8"])
cells = ad.AnnData(X=points.astype("f4"), obs=obs, var=var)
cells.obsm["X_pca"] = points
cells.obsm["X_umap"] = points[:, ::-1].copy()
cells.write_h5ad(here / "cells.h5ad")
bare = ad.AnnData(X=sp.csr_matrix(points.astype("f4")), obs=obs[["mass"]], var=var)
bare.write_h5ad(here / "sparse.h5ad")
bare.obsm["X_umap"] = points
bare.write_h5ad(here / "umap.h5ad")

table = pa.table(
    {
        "x": points[:, 0],
        "name": [f"n{i}" for i in range(20)],
        "y": points[:, 1].astype("f4"),
        "kind": pa.array(["a" if i % 2 else "b" for i in range(20)]).dictionary_encode(),
        "n": pa.array([None if i == 3 else i for i in range(20)], pa.int16()),
        "day": pa.array(range(20), pa.date32()),
        "flag": [i % 2 == 0 for i in range(20)],
    }
)
for codec in ["uncompressed", "lz4", "zstd"]:
    feather.write_feather(table, here / f"{codec}.feather", compression=codec, chunksize=8)
with pa.OSFile(str(here / "stream.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
    writer.write_table(table, max_chunksize=8)

# Encodings by differences, and pages of the second version.
pq.write_table(
    pa.table(
        {
            "i": pa.array(range(200), pa.int64()),
            "x": pa.array(np.arange(200) / 4),
            "s": [f"value number {i}" for i in range(200)],
            "t": [f"t{i}" for i in range(200)],
        }
    ),
    here / "delta.parquet",
    use_dictionary=False,
    data_page_version="2.0",
    compression="zstd",
    column_encoding={
        "i": "DELTA_BINARY_PACKED",
        "x": "BYTE_STREAM_SPLIT",
        "s": "DELTA_BYTE_ARRAY",
        "t": "DELTA_LENGTH_BYTE_ARRAY",
    },
)
