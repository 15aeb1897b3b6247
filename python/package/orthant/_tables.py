"""What is no array becomes one, if it holds numbers; columns that have names are matched by them."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Optional, Sequence

import numpy as np

Names = list[str]


def to_array(name: str, table: Any) -> Any:
    """A NumPy array of a table of pandas, polars or Arrow, of a tensor, or of nested lists."""
    return _read(name, table)[0]


def is_one_cloud(given: Any) -> bool:
    """Whether something is one table or array, and no list of them."""
    return hasattr(given, "ndim") or hasattr(given, "obsm") or _library(given) in ("pandas", "polars", "pyarrow")


def matched(given: Sequence[tuple[str, Any]]) -> tuple[list[Any], Optional[Names], list[Optional[list[int]]]]:
    """Clouds whose coordinates are in one order: that of the first table.

    Returns the clouds (tables have become arrays), the names of the coordinates if there are any, and for every cloud
    the place of each coordinate in it, or None if that is the same. Names that a library gives to columns without
    names, as 0, 1, ..., go with any others.
    """
    clouds: list[Any] = []
    places: list[Optional[list[int]]] = []
    first: Optional[tuple[str, Names]] = None
    for name, table in given:
        if not _may_have_names(table):
            clouds.append(table)
            places.append(None)
            continue
        array, names = _read(name, table)
        place = None
        if names is not None:
            if first is None:
                first = name, names
            elif set(names) == set(first[1]) or not (is_default(names) or is_default(first[1])):
                place = _places(name, names, *first)
            elif is_default(first[1]):
                first = name, names
        clouds.append(array if place is None else array[:, place])
        places.append(place)
    return clouds, None if first is None else first[1], places


def placed(name: str, points: Any, columns: Optional[Names]) -> Any:
    """Points whose coordinates are in the order of these columns."""
    if columns is None or not _may_have_names(points):
        return points
    array, names = _read(name, points)
    if names is None or (set(names) != set(columns) and (is_default(names) or is_default(columns))):
        return array
    place = _places(name, names, "the plan", columns)
    return array if place is None else array[:, place]


def _places(name: str, names: Names, other: str, wanted: Names) -> Optional[list[int]]:
    """Where the wanted columns are among these; None if they are there in order."""
    if names == wanted:
        return None
    twice = next((n for both in (names, wanted) for n, count in Counter(both).items() if count > 1), None)
    if twice is not None:
        raise ValueError(
            f"{name} and {other} have different columns, and two of them are named {twice!r}: rename them, or pass "
            f"{name}.to_numpy() to match by position"
        )
    if set(names) != set(wanted):
        raise ValueError(
            f"{other} has the columns {_listed(wanted, names)} and {name} has {_listed(names, wanted)}: select the same "
            "columns of both, or pass .to_numpy() of them to match by position"
        )
    where = {n: k for k, n in enumerate(names)}
    return [where[n] for n in wanted]


def _listed(names: Names, other: Names) -> str:
    """All names; of very many those that the other does not have."""
    most = 12
    if len(names) > most:
        known = set(other)
        names = [n for n in names if n not in known]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return f"[{', '.join(map(repr, names[:most]))}{more}] (among others)"
    return f"[{', '.join(map(repr, names))}]"


def is_default(names: Names) -> bool:
    """Names that libraries give to columns that have none."""
    return any(names == [f"{prefix}{k}" for k in range(len(names))] for prefix in ("", "column_"))


def _library(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


def _may_have_names(table: Any) -> bool:
    return _library(table) in ("pandas", "polars", "pyarrow") or (
        isinstance(table, (str, os.PathLike)) or hasattr(table, "obsm")
    )


def _read(name: str, table: Any) -> tuple[Any, Optional[Names]]:
    """The numbers, and the names of the columns if there are any."""
    library = _library(table)
    if library == "pandas":
        return _of_pandas(name, table)
    if library == "polars":
        return _of_polars(name, table)
    if library == "pyarrow":
        return _of_arrow(name, table)
    if hasattr(table, "obsm") and hasattr(table, "obs"):
        return _of_anndata(name, table)
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
    return array, None


def _of_anndata(name: str, data: Any) -> tuple[Any, Optional[Names]]:
    """The principal components of cells. Nothing else is a cloud: counts of all genes are no coordinates."""
    there = [str(key) for key in data.obsm.keys()]
    if "X_pca" in there:
        return _read(f"{name}.obsm['X_pca']", data.obsm["X_pca"])
    listed = ", ".join(f"{name}.obsm[{key!r}]" for key in there) or "nothing"
    raise TypeError(
        f"{name} ({type(data).__name__}) has no obsm['X_pca']: compute it (scanpy.pp.pca), or pass the coordinates "
        f"themselves; obsm has {listed}"
    )


def _of_file(name: str, file: Any) -> tuple[Any, Optional[Names]]:
    """The numbers of a file: Parquet, which needs pyarrow, or NumPy."""
    kind = os.path.splitext(os.fspath(file))[1]
    if kind == ".npy":
        return np.load(file, allow_pickle=False), None
    if kind != ".parquet":
        raise TypeError(
            f"{name} is text: a file must end in .parquet or .npy, others are for pandas to read; got {os.fspath(file)[:60]!r}"
        )
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise TypeError(f"{name} is a Parquet file, and pyarrow, which would read it, is not installed") from error
    return _of_arrow(name, pq.read_table(file))


def _refuse(name: str, columns: list[str], kinds: list[str]) -> None:
    if columns:
        listed = ", ".join(f"{c!r} ({k})" for c, k in zip(columns[:12], kinds))
        more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
        raise TypeError(
            f"{name} has columns that hold no numbers: {listed}{more}; choose the others, or encode these as numbers"
        )


def _of_pandas(name: str, table: Any) -> tuple[Any, Optional[Names]]:
    import pandas as pd

    if not isinstance(table, (pd.DataFrame, pd.Series)):
        return np.asarray(table), None
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    numeric = [pd.api.types.is_numeric_dtype(t) or pd.api.types.is_bool_dtype(t) for t in frame.dtypes]
    complex_ = [pd.api.types.is_complex_dtype(t) for t in frame.dtypes]
    bad = [k for k, (n, c) in enumerate(zip(numeric, complex_)) if c or not n]
    _refuse(name, [str(frame.columns[k]) for k in bad], [str(frame.dtypes.iloc[k]) for k in bad])
    single = all(t == np.float32 for t in frame.dtypes)
    # What is missing becomes NaN, which is refused with its place.
    array = table.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return array, None if table is not frame else [str(n) for n in frame.columns]


def _of_polars(name: str, table: Any) -> tuple[Any, Optional[Names]]:
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    frame = table.to_frame() if isinstance(table, pl.Series) else table
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"{name} is a {type(table).__name__} of polars: collect() it first")
    bad = [(c, str(t)) for c, t in frame.schema.items() if not (t.is_numeric() or t == pl.Boolean)]
    _refuse(name, [c for c, _ in bad], [t for _, t in bad])
    single = all(t == pl.Float32 for t in frame.schema.values())
    array = frame.cast(pl.Float32 if single else pl.Float64).to_numpy()
    return (array[:, 0], None) if isinstance(table, pl.Series) else (array, list(frame.columns))


def _of_arrow(name: str, table: Any) -> tuple[Any, Optional[Names]]:
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
        names = list(table.schema.names)
        if table.num_columns == 0:
            return np.empty((table.num_rows, 0)), names
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        columns = [table.column(k).cast(pa.float64()).to_numpy() for k in range(table.num_columns)]
        return np.stack(columns, axis=1), names
    if isinstance(table, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_fixed_size_list(table.type) and is_number(table.type.value_type):
            if isinstance(table, pa.ChunkedArray):
                table = table.combine_chunks()
            if table.null_count:
                raise ValueError(f"{name} has rows that are missing; drop_null() leaves them out")
            return column(table.flatten()).reshape(-1, table.type.list_size), None
        if not is_number(table.type):
            raise TypeError(f"{name} has Arrow type {table.type}, and numbers are needed")
        values = table.cast(pa.float64())
        return column(values) if isinstance(table, pa.Array) else values.to_numpy(), None
    raise TypeError(f"{name} is a {type(table).__name__} of Arrow: a Table, a RecordBatch or an Array is needed")
