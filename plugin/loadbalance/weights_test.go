package loadbalance

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

func TestParseWeights(t *testing.T) {
	w, err := parseWeights([]byte("# weights\na.example.org\n 192.0.2.1 1 # one\n2001:db8::1\t255\n\nB.example.org.\n192.0.2.1 2\r\na.example.org\n192.0.2.2 3"), "f")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, addr string
		weight     uint8
	}{
		{"\x01a\x07example\x03org\x00", "192.0.2.1", 1}, {"\x01a\x07example\x03org\x00", "2001:db8::1", 255},
		{"\x01b\x07example\x03org\x00", "192.0.2.1", 2}, {"\x01a\x07example\x03org\x00", "192.0.2.2", 3},
	} {
		if got := w[tc.name][netip.MustParseAddr(tc.addr)]; got != tc.weight {
			t.Errorf("%q %s: %d, want %d", tc.name, tc.addr, got, tc.weight)
		}
	}
	for text, want := range map[string]string{
		"192.0.2.1 3":                         "missing domain name in weight file f",
		"a.example.org\n192.0.2.1":            `wrong domain name:"192.0.2.1" in weight file f. (Maybe a missing weight value?)`,
		"a..example.org":                      `wrong domain name:"a..example.org" in weight file f`,
		"a.example.org\n192.0.2.300 1":        `wrong IP address:"192.0.2.300" in weight file f`,
		"a.example.org\n192.0.2.3 0":          `wrong weight value:"0" in weight file f`,
		"a.example.org\n192.0.2.3 256":        `wrong weight value:"256" in weight file f`,
		"a.example.org\n192.0.2.3 x":          `wrong weight value:"x" in weight file f`,
		"a.example.org\n 192.0.2.3 1 2 #more": `could not parse weight line:"192.0.2.3 1 2" in weight file f`,
	} {
		if _, err := parseWeights([]byte(text), "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestReload(t *testing.T) {
	out := logtest.Capture(t)
	file := write(t, "www.example.org\n192.0.2.1 3\n")
	f := &weightFile{path: file, every: time.Hour}
	steps := []struct {
		do   func() error
		log  string
		want uint8
	}{
		{func() error { return nil }, "Successfully reloaded weight file " + file, 3},
		{func() error { return nil }, "", 3},
		{func() error { return os.WriteFile(file, []byte("www.example.org\n192.0.2.1 x\n"), 0o600) }, "wrong weight value", 3},
		{func() error { return nil }, "", 3},
		{func() error { return os.Remove(file) }, "Failed to open weight file:weight file open error. Will try again in 1h0m0s\n", 3},
		{func() error { return os.WriteFile(file, []byte("www.example.org\n192.0.2.1 9\n"), 0o600) }, "Successfully reloaded weight file " + file, 9},
	}
	for i, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		out.Take()
		f.reload()
		if got := out.String(); !strings.Contains(got, s.log) || s.log == "" && got != "" {
			t.Errorf("step %d: log %q, want %q", i, got, s.log)
		}
		if got := (*f.current.Load())["\x03www\x07example\x03org\x00"][netip.MustParseAddr("192.0.2.1")]; got != s.want {
			t.Errorf("step %d: weight %d, want %d", i, got, s.want)
		}
	}
}

func FuzzWeights(f *testing.F) {
	f.Add([]byte("www.example.org\n192.0.2.1 3 # x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := parseWeights(text, "f")
		if err == nil {
			for name, addrs := range w {
				for a, n := range addrs {
					if n == 0 || !a.IsValid() {
						t.Fatalf("%q: weight %d of %s", name, n, a)
					}
				}
			}
		}
	})
}
