#!/usr/bin/env python3
"""Re-encodes the graphs published with the DOPPLER paper in this project's graph format.

    scripts/encode_published.py [FOLDER] [OUTPUT]

reads the paper's text files from FOLDER (default ../shared/reference/graphs) and writes
OUTPUT/NAME.json (default datasets/published). Node names are the numbers of the files; compute
becomes raw seconds and FLOPs alike, communication the bytes of the one output, as the text reader
has it.
"""

import json
import pathlib
import sys

SOURCE = "CC BY 4.0, github.com/xinyuyao/Doppler"
FILES = {
    "chainmm": "gdp_chain_mm_112nodes",
    "ffnn": "gdp_ffnn_192nodes",
    "llama-block": "gdp_transformer_block_215nodes",
    "llama-layer": "gdp_full_transformer_layer_261nodes",
    "llama-block-8": "8gpu_transformer_block",
    "llama-layer-8": "8gpu_full_transformer",
}


def numbers(line):
    return [int(token) for token in line.replace(",", " ").split()]


def encode(name, text):
    lines = text.splitlines()
    (total,), inputs, sources, readers = (numbers(line) for line in lines[:4])
    rows = [line.split(",") for line in lines[4:] if line.strip()]
    if len(sources) != len(readers) or len(rows) != total - len(inputs):
        raise SystemExit(f"{name}: the counts of the file do not match")
    nodes = [
        {
            "name": str(v),
            "kind": row[2].strip() if len(row) > 2 else "node",
            "flops": int(row[0]),
            "outputs": [{"bytes": int(row[1])}],
        }
        for v, row in enumerate(rows)
    ]

    def block(key, items):
        return f'"{key}": [\n' + ",\n".join(json.dumps(item) for item in items) + "\n]"

    head = {"format": "doppler-graph", "version": 1}
    return (
        ",\n".join(
            [
                json.dumps(head)[:-1],
                f'"name": {json.dumps(f"published/{name} ({SOURCE})")}',
                block("nodes", nodes),
                block("edges", list(zip(sources, readers, strict=True))),
                block("inputs", [{"name": str(i), "bytes": 0} for i in inputs]),
                block("raw_compute", [node["flops"] for node in nodes]),
            ]
        )
        + "}\n"
    )


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "../shared/reference/graphs"
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else root / "datasets/published"
    output.mkdir(parents=True, exist_ok=True)
    for name, file in FILES.items():
        path = folder / f"{file}.txt"
        if not path.is_file():
            raise SystemExit(f"{path} is missing; name the folder of the published graphs")
        (output / f"{name}.json").write_text(encode(name, path.read_text()))


if __name__ == "__main__":
    main()
