# Opens a file that CAPE wrote by the description of the format alone: reader.py FILE
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
(length,) = struct.unpack_from("<Q", data)
assert (8 + length) % 8 == 0
header = json.loads(data[8:8 + length].decode("utf-8"))
assert header.pop("__metadata__") == {"format": 'caf\u00e9 "1"'}
end = 0
tensors = {}
for name, entry in header.items():  # json keeps their order
    assert set(entry) == {"dtype", "shape", "data_offsets"} and entry["dtype"] == "F32"
    begin, last = entry["data_offsets"]
    assert begin == end and (last - begin) % 4 == 0
    end = last
    tensors[name] = entry["shape"], struct.unpack_from("<%df" % ((last - begin) // 4), data, 8 + length + begin)
assert 8 + length + end == len(data) and list(header) == sorted(header)
assert tensors.pop("empty") == ([0, 3], ())
assert tensors.pop("\u03b2") == ([2, 3], (0, 1, 2, 3, 4, 5))
assert tensors == {"t%d" % i: ([i], i * (0.5,)) for i in range(300)}

try:  # the format's own library, where it is
    import safetensors
except ImportError:
    sys.exit()
with safetensors.safe_open(sys.argv[1], framework="numpy") as file:
    assert set(file.keys()) == set(header) and file.metadata() == {"format": 'caf\u00e9 "1"'}
    for name, entry in header.items():
        assert list(file.get_slice(name).get_shape()) == entry["shape"]
