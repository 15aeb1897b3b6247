"""What is no array becomes one, if it holds numbers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def to_array(name: str, table: Any) -> Any:
    """A NumPy array of a table of pandas, polars or Arrow, of a tensor, or of nested lists."""
    library = type(table).__module__.partition(".")[0]
    if library == "pandas":
        return _of_pandas(name, table)
    if library == "polars":
        return _of_polars(name, table)
    if library == "pyarrow":
        return _of_arrow(name, table)
    if getattr(table, "requires_grad", False):
        raise TypeError(
            f"{name} is a tensor that wants a gradient, which would be lost here: use orthant.torch, or "
            f"{name}.detach()"
        )
    if isinstance(table, (str, os.PathLike)):
        return _of_file(name, table)
    if hasattr(table, "toarray"):
        raise TypeError(f"{name} is sparse, and sparse input is not supported: {name}.toarray() has all its entries")
    try:
        array = np.asarray(table)
    except Exception as error:
        raise TypeError(f"{name} cannot be made an array: {error}") from error
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} has masked entries: leave such rows out, or fill them")
    if array.dtype == object and array.ndim == 0:
        what = "None" if table is None else f"a {type(table).__name__}"
        raise TypeError(f"{name} is {what}, and an array is needed, a row a point: np.array(list(...)) makes one")
    return array


def _of_file(name: str, file: Any) -> Any:
    """The numbers of a file: Parquet, which needs pyarrow, or NumPy."""
    kind = os.path.splitext(os.fspath(file))[1]
    if kind == ".npy":
        return np.load(file, allow_pickle=False)
    if kind != ".parquet":
        raise TypeError(f"{name} is text: a file must end in .parquet or .npy, others are for pandas to read; got {file!r}")
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise TypeError(f"{name} is a Parquet file, and pyarrow, which would read it, is not installed") from error
    return _of_arrow(name, pq.read_table(file))


def _refuse(name: str, columns: list[str], kinds: list[str]) -> None:
    if columns:
        listed = ", ".join(f"{c!r} ({k})" for c, k in zip(columns, kinds))
        raise TypeError(
            f"{name} has columns that hold no numbers: {listed}; choose the others, or encode these as numbers"
        )


def _of_pandas(name: str, table: Any) -> Any:
    import pandas as pd

    if not isinstance(table, (pd.DataFrame, pd.Series)):
        return np.asarray(table)
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    numeric = [pd.api.types.is_numeric_dtype(t) or pd.api.types.is_bool_dtype(t) for t in frame.dtypes]
    complex_ = [pd.api.types.is_complex_dtype(t) for t in frame.dtypes]
    bad = [k for k, (n, c) in enumerate(zip(numeric, complex_)) if c or not n]
    _refuse(name, [str(frame.columns[k]) for k in bad], [str(frame.dtypes.iloc[k]) for k in bad])
    single = all(t == np.float32 for t in frame.dtypes)
    # What is missing becomes NaN, which is refused with its place.
    return table.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)


def _of_polars(name: str, table: Any) -> Any:
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    frame = table.to_frame() if isinstance(table, pl.Series) else table
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"{name} is a {type(table).__name__} of polars: collect() it first")
    bad = [(c, str(t)) for c, t in frame.schema.items() if not (t.is_numeric() or t == pl.Boolean)]
    _refuse(name, [c for c, _ in bad], [t for _, t in bad])
    single = all(t == pl.Float32 for t in frame.schema.values())
    array = frame.cast(pl.Float32 if single else pl.Float64).to_numpy()
    return array[:, 0] if isinstance(table, pl.Series) else array


def _of_arrow(name: str, table: Any) -> Any:
    import pyarrow as pa

    def column(values: Any) -> Any:
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False)

    def is_number(kind: Any) -> bool:
        t = pa.types
        return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))

    # Files and data sets of Parquet.
    for read in ("read", "to_table"):
        if not isinstance(table, (pa.Table, pa.RecordBatch)) and hasattr(table, read):
            table = getattr(table, read)()
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        bad = [f for f in table.schema if not is_number(f.type)]
        _refuse(name, [f.name for f in bad], [str(f.type) for f in bad])
        if table.num_columns == 0:
            return np.empty((table.num_rows, 0))
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        columns = [table.column(k).cast(pa.float64()).to_numpy() for k in range(table.num_columns)]
        return np.stack(columns, axis=1)
    if isinstance(table, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_fixed_size_list(table.type) and is_number(table.type.value_type):
            if isinstance(table, pa.ChunkedArray):
                table = table.combine_chunks()
            if table.null_count:
                raise ValueError(f"{name} has rows that are missing; drop_null() leaves them out")
            return column(table.flatten()).reshape(-1, table.type.list_size)
        if not is_number(table.type):
            raise TypeError(f"{name} has Arrow type {table.type}, and numbers are needed")
        return table.cast(pa.float64()).to_numpy(zero_copy_only=False) if isinstance(
            table, pa.Array
        ) else table.cast(pa.float64()).to_numpy()
    raise TypeError(f"{name} is a {type(table).__name__} of Arrow: a Table, a RecordBatch or an Array is needed")
