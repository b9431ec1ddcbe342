"""Workbooks for tests, written by hand: what the reader needs of the format, and no more."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["Cell", "write_ods", "write_xlsx"]

Cell = float | str | bool | None

_TYPES = """<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/></Types>"""
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_STYLES = (
    f"""<styleSheet xmlns="{_MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>"""
)


def write_xlsx(path: Path, *, hidden: Sequence[str] = (), **sheets: Sequence[Sequence[Cell]]) -> Path:
    """Write sheets of rows; a text such as "=45292" is the day of this number."""
    names = list(sheets)
    states = ['state="hidden"' if name in hidden else "" for name in names]
    numbered = [
        (name.replace("_", " "), state, k) for k, (name, state) in enumerate(zip(names, states, strict=True), 1)
    ]
    listed = "".join(f'<sheet name="{name}" sheetId="{k}" {state} r:id="r{k}"/>' for name, state, k in numbered)
    relations = "".join(
        f'<Relationship Id="r{k}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{k}.xml"/>' for _, _, k in numbered
    )
    relations += f'<Relationship Id="s" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    root = f'<Relationship Id="r" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">{root}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">{relations}</Relationships>',
        "xl/styles.xml": _STYLES,
    }
    for k, name in enumerate(names, 1):
        rows = "".join(_row(number, cells) for number, cells in enumerate(sheets[name], 1) if cells)
        parts[f"xl/worksheets/sheet{k}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
    return path


def _row(number: int, cells: Sequence[Cell]) -> str:
    found = (_cell(f"{chr(65 + k)}{number}", value) for k, value in enumerate(cells) if value is not None)
    return f'<row r="{number}">{"".join(found)}</row>'


def _cell(place: str, value: Cell) -> str:
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str) and value.startswith("="):
        return f'<c r="{place}" s="1"><v>{value[1:]}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def write_ods(path: Path, rows: Sequence[Sequence[float | str]]) -> Path:
    """Write one sheet as LibreOffice does."""
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
            if isinstance(value, str)
            else f'<table:table-cell office:value-type="float" office:value="{value}"/>'
            for value in row
        )
        + "</table:table-row>"
        for row in rows
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    sheet = f'<table:table table:name="trips">{cells}</table:table>'
    content = f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", f"<office:document-content {spaces}>{content}</office:document-content>")
    return path
