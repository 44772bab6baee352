package zonefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A line reads no files.
func TestLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "60")
	if err := os.WriteFile(path, []byte("read.example.org. 60 IN A 192.0.2.66\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"www.example.org. 60 IN A 192.0.2.1":          "www.example.org.\t60\tIN\tA\t192.0.2.1",
		"www.example.org. 60 IN A 192.0.2.1\nx":       "www.example.org.\t60\tIN\tA\t192.0.2.1",
		"$INCLUDE " + path:                            "not allowed",
		"$INCLUDE " + path + "\nw. 60 IN A 192.0.2.1": "not allowed",
		"www.example.org. A 192.0.2.1":                "www.example.org.\t3600\tIN\tA\t192.0.2.1",
		"www.example.org. 60 IN A nonsense":           "bad A",
		"":                                            "",
	} {
		got := ""
		switch rr, err := Line(line); {
		case err != nil:
			got = err.Error()
		case rr != nil:
			got = rr.String()
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// Names have 255 octets at most (RFC 1035 §3.1), with escapes as without; the library's parser takes some that are longer.
func TestLineOfLongNames(t *testing.T) {
	label := strings.Repeat("a", 63) + "."
	most := label + label + label + strings.Repeat(`\"`, 61) + "."
	for _, format := range []string{"% 60 IN A 192.0.2.1", "a. 60 IN CNAME %", "a. 60 IN MX 1 %", "a. 60 IN SOA a. % 1 2 3 4 5"} {
		for longer, name := range []string{most, most[:len(most)-1] + "b.", most[:len(most)-1] + "bc."} {
			rr, err := Line(strings.Replace(format, "%", name, 1))
			if (err != nil) != (longer > 0) || (rr != nil) != (err == nil) {
				t.Errorf("%s, %d octets too long: %v, %v", format, longer, rr, err)
			}
		}
	}
}
