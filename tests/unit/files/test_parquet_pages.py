"""Tests of `elmokit.files.parquet_pages`."""

import pytest

from elmokit.files.parquet_pages import ParquetPages

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_values_of_pages_are_those_of_the_footer(version, compression, dictionary, tmp_path):
    numbers = pa.array([[float(k), -1.5] for k in range(3000)], pa.list_(pa.float32(), 2))
    table = pa.table({"words": [f"word {k % 7}" for k in range(3000)], "numbers": numbers})
    parquet.write_table(
        table, tmp_path / "a.parquet", row_group_size=1100, data_page_size=512,
        data_page_version=version, compression=compression, use_dictionary=dictionary,
    )  # fmt: skip
    pages, metadata = (
        ParquetPages(tmp_path / "a.parquet"),
        parquet.read_metadata(tmp_path / "a.parquet"),
    )
    for group in range(3):
        for number in range(2):
            column = metadata.row_group(group).column(number)
            read = list(pages.pages(group, number))
            assert sum(page.num_values for page in read) == column.num_values
            assert [page.names_again for page in read] == [dictionary] + [False] * (len(read) - 1)
            assert pages.num_bytes(group, number, value_bytes=0) >= 4 * column.num_values
