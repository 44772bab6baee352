package geoip

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A small writer of MaxMind DB files (https://maxmind.github.io/MaxMind-DB/), for the databases of these tests.

type (
	object map[string]any
	list   []any
)

// appendValue appends an object, list, string, float64, bool, uint16, uint32 or uint64 in the format of the data section.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(appendControl(b, 2, len(v)), v...)
	case float64:
		return binary.BigEndian.AppendUint64(appendControl(b, 3, 8), math.Float64bits(v))
	case uint16:
		return binary.BigEndian.AppendUint16(appendControl(b, 5, 2), v)
	case uint32:
		return binary.BigEndian.AppendUint32(appendControl(b, 6, 4), v)
	case uint64:
		return binary.BigEndian.AppendUint64(appendControl(b, 9, 8), v)
	case bool:
		size := 0
		if v {
			size = 1
		}
		return appendControl(b, 14, size)
	case object:
		b = appendControl(b, 7, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = appendValue(appendValue(b, k), v[k])
		}
		return b
	case list:
		b = appendControl(b, 11, len(v))
		for _, e := range v {
			b = appendValue(b, e)
		}
		return b
	}
	panic("a value of a type that is not written")
}

// appendControl appends the octets that tell a value's type and size.
func appendControl(b []byte, typ, size int) []byte {
	more := []byte(nil)
	switch {
	case size >= 285:
		more, size = []byte{byte((size - 285) >> 8), byte(size - 285)}, 30
	case size >= 29:
		more, size = []byte{byte(size - 29)}, 29
	}
	if typ > 7 {
		b = append(b, byte(size), byte(typ-7))
	} else {
		b = append(b, byte(typ<<5|size))
	}
	return append(b, more...)
}

// buildDatabase is a database of a type with what it has for networks, for addresses of a version.
func buildDatabase(databaseType string, version int, networks map[string]any) []byte {
	type node [2]int // greater than 0: a node, less: data, 0: nothing
	tree := []node{{}}
	var data []byte
	for _, text := range slices.Sorted(maps.Keys(networks)) {
		p := netip.MustParsePrefix(text)
		bits, from := p.Addr().AsSlice(), 0
		length := p.Bits()
		if version == 6 && p.Addr().Is4() {
			bits, length = append(make([]byte, 12), bits...), length+96
		}
		at := from
		for i := range length {
			side := bits[i/8] >> (7 - i%8) & 1
			if i == length-1 {
				tree[at][side] = -1 - len(data)
				break
			}
			if tree[at][side] == 0 {
				tree = append(tree, node{})
				tree[at][side] = len(tree) - 1
			}
			at = tree[at][side]
		}
		data = appendValue(data, networks[text])
	}
	var out []byte
	for _, n := range tree {
		for _, v := range n {
			switch {
			case v == 0:
				v = len(tree)
			case v < 0:
				v = len(tree) + 16 + (-1 - v)
			}
			out = append(out, byte(v>>16), byte(v>>8), byte(v))
		}
	}
	out = append(out, make([]byte, 16)...)
	out = append(out, data...)
	out = append(out, "\xab\xcd\xefMaxMind.com"...)
	return appendValue(out, object{
		"node_count": uint32(len(tree)), "record_size": uint16(24), "ip_version": uint16(version), "database_type": databaseType,
		"languages": list{"en"}, "binary_format_major_version": uint16(2), "binary_format_minor_version": uint16(0),
		"build_epoch": uint64(1700000000), "description": object{"en": "for tests"},
	})
}

// writeDatabase writes a database to a file.
func writeDatabase(t testing.TB, databaseType string, version int, networks map[string]any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.mmdb")
	if err := os.WriteFile(file, buildDatabase(databaseType, version, networks), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func english(name string) object { return object{"en": name, "de": "x"} }

// places is what the city database of the tests knows.
var places = map[string]any{
	"192.0.2.0/25": object{
		"city": object{"names": english("Cambridge")}, "continent": object{"code": "EU", "names": english("Europe")},
		"country":  object{"iso_code": "GB", "names": english("United Kingdom")},
		"location": object{"latitude": 52.2242, "longitude": 0.1315, "time_zone": "Europe/London"}, "postal": object{"code": "CB4"},
		"subdivisions": list{object{"iso_code": "ENG"}, object{"iso_code": "CAM"}},
	},
	"2001:db8::/32": object{
		"country": object{"iso_code": "SE", "names": english("Sweden"), "is_in_european_union": true}, "location": object{"latitude": -0.5, "longitude": 0.0},
	},
	"198.51.100.0/24": object{"country": object{"iso_code": "XX"}, "location": object{"latitude": "no number"}},
}

// systems is what the ASN database knows.
var systems = map[string]any{
	"192.0.2.0/24": object{"autonomous_system_number": uint32(64496), "autonomous_system_organization": "Example Networks"},
}

// The example in README.md has a database, which is written by -update.
func TestReadmeDatabase(t *testing.T) {
	const file = "../../test/testdata/readme/GeoLite2-City.mmdb"
	want := buildDatabase("GeoLite2-City", 6, map[string]any{"192.0.2.0/25": places["192.0.2.0/25"], "2001:db8::/32": places["2001:db8::/32"]})
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is another one (%v): write it with -update", file, err)
	}
}
