package memory

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"
)

func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("memory.max", "max\n")
	write("pods/memory.max", "2000000\n")
	write("pods/one/memory.max", "3000000\n")
	write("pods/two/memory.max", "1000000\n")
	write("memory/memory.limit_in_bytes", "9223372036854771712\n")
	write("memory/box/memory.limit_in_bytes", "500000\n")
	for own, want := range map[string]int64{
		"":                                  math.MaxInt64,
		"0::/\n":                            math.MaxInt64,
		"0::/pods/one\n":                    2000000,
		"0::/pods/two\n":                    1000000,
		"0::/pods/three/four\n":             2000000,
		"4:memory:/box\n0::/\n":             500000,
		"4:memory:/\n3:cpu:/box\n":          math.MaxInt64,
		"4:memory:/box\n0::/pods/one\n":     500000,
		"1:name=systemd:/x\n0::/pods/two\n": 1000000,
		"nonsense\n":                        math.MaxInt64,
	} {
		if got := groupLimitOf(root, own); got != want {
			t.Errorf("%q: got %d, want %d", own, got, want)
		}
	}
}

func TestToKeep(t *testing.T) {
	for _, tc := range []struct {
		group, told, want int64
		ok                bool
	}{
		{1000 << 20, math.MaxInt64, 900 << 20, true},
		{170 << 20, math.MaxInt64, 138 << 20, true},
		{100 << 20, math.MaxInt64, 68 << 20, true},
		{40 << 20, math.MaxInt64, 20 << 20, true},
		{100 << 20, 50 << 20, 0, false}, // GOMEMLIMIT
		{math.MaxInt64, math.MaxInt64, 0, false},
	} {
		if got, ok := toKeep(tc.group, tc.told); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%+v: got %d, %t", tc, got, ok)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		memory                        int64
		files                         int
		connections, waiting, inBytes int
	}{
		{1 << 20, 1 << 20, 1024, 1024, 16 << 20},
		{64 << 20, 1 << 20, 1024, 2048, 16 << 20},
		{170 << 20, 1 << 20, 1360, 5440, 170 << 20 / 8},
		{1 << 40, 1 << 16, 16384, 65536, 1 << 30},
		{1 << 40, 1024, 256, 65536, 1 << 30},
		{1 << 20, 128, 32, 1024, 16 << 20},
		{1 << 20, 3, 1, 1024, 16 << 20},
		{math.MaxInt64, 1 << 20, 16384, 65536, 1 << 30},
	} {
		if a, b, c := Connections(tc.memory, tc.files), Waiting(tc.memory), Unsent(tc.memory); a != tc.connections || b != tc.waiting || c != tc.inBytes {
			t.Errorf("%+v: got %d, %d, %d", tc, a, b, c)
		}
	}
}

func TestStreams(t *testing.T) {
	for _, tc := range []struct {
		memory int64
		want   int
	}{{1 << 20, 16}, {170 << 20, 2720}, {math.MaxInt64, math.MaxInt32}} {
		if got := Streams(tc.memory); got != tc.want {
			t.Errorf("%+v: got %d", tc, got)
		}
	}
}

// With addresses of 32 bits there is a limit that nobody tells.
func TestAddressable(t *testing.T) {
	for bits, want := range map[int]int64{32: 2 << 30, 64: math.MaxInt64} {
		if got := addressable(bits); got != want {
			t.Errorf("%d bits: got %d", bits, got)
		}
		if got := Limit(); bits == strconv.IntSize && got > want {
			t.Errorf("the limit is %d", got)
		}
	}
}

// Who has told Go a limit is not overruled, and what he has told counts where the control groups allow more.
func TestLimitThatGoWasTold(t *testing.T) {
	const told = 1 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(told))
	Keep()
	if got := debug.SetMemoryLimit(-1); got != told {
		t.Errorf("Go knows %d", got)
	}
	if got := Limit(); got != told {
		t.Errorf("got %d", got)
	}
}
