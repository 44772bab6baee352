package autotrust

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

var start = time.Unix(1_800_000_000, 0)

func key(n byte, flags byte) string { return string([]byte{1, flags, 3, 13, n, n, n}) }

// A roll as RFC 5011 §6 has it, day by day, with the file written and read between any two days.
func TestRoll(t *testing.T) {
	old, new := key(1, 1), key(2, 1)
	revoked := key(1, 0x81)
	z := &Zone{Name: "\x00"}
	for _, c := range []struct {
		day    int
		keys   []string
		secure bool
		want   string // states of both keys
	}{
		{0, []string{old}, true, "valid -"},
		{1, []string{old, new}, true, "valid addpend"},
		{20, []string{old}, true, "valid -"}, // it went again: begins anew
		{21, []string{old, new}, true, "valid addpend"},
		{22, []string{new}, false, "valid addpend"}, // what is not secure tells nothing
		{50, []string{old, new}, true, "valid addpend"},
		{51, []string{old, new}, true, "valid valid"},
		{52, []string{new}, true, "missing valid"},
		{53, []string{old, new}, true, "valid valid"},
		{60, []string{revoked, new}, true, "revoked valid"},
		{61, []string{new}, true, "revoked valid"},
		{62, []string{old, new}, true, "revoked valid"}, // for ever
		{89, []string{new}, true, "revoked valid"},
		{90, []string{new}, true, "removed valid"},
		{91, []string{old, new}, true, "removed valid"},
	} {
		now := start.Add(time.Duration(c.day) * day)
		z.See(Seen{
			Keys: c.keys, Secure: c.secure, TTL: time.Hour, Left: day,
			Trusted: func(r string) bool { return r == old }, Revokes: func(string) bool { return true },
		}, now)
		z.Age(now)
		got := state(z, old) + " " + state(z, new)
		if got != c.want {
			t.Errorf("day %d: %s, want %s", c.day, got, c.want)
		}
		zones, err := Parse(string(Append(nil, []*Zone{z})))
		if err != nil || len(zones) != 1 || !reflect.DeepEqual(zones[0], z) {
			t.Fatalf("day %d: read %+v %v, wrote %+v", c.day, zones, err, z)
		}
		z = zones[0]
	}
	if !z.Ended(old) || !z.Ended(revoked) || z.Ended(new) || len(z.Trusted()) != 1 || z.Trusted()[0] != new {
		t.Errorf("believed: %q", z.Trusted())
	}
}

func state(z *Zone, rdata string) string {
	if k := z.find(rdata); k != nil {
		return k.State.String()
	}
	return "-"
}

// Keys without SEP are nobody's anchor; one that has not signed its own revocation, or is not believed, is not revoked.
func TestSee(t *testing.T) {
	z := &Zone{Name: "\x00"}
	none := func(string) bool { return false }
	z.See(Seen{Keys: []string{key(1, 0), key(2, 1), "x"}, Secure: true, Trusted: none, Revokes: none}, start)
	if len(z.Keys) != 1 || z.Keys[0].State != AddPend {
		t.Errorf("%+v", z.Keys)
	}
	z.See(Seen{Keys: []string{key(2, 1), key(7, 1)}, Trusted: func(string) bool { return true }, Revokes: none}, start.Add(AddHold))
	if len(z.Keys) != 1 || z.Keys[0].State != AddPend {
		t.Errorf("what nobody has signed counts: %+v", z.Keys)
	}
	z.Keys[0].State = Valid
	z.See(Seen{Keys: []string{key(2, 0x81)}, Trusted: none, Revokes: none}, start)
	if z.Keys[0].State != Valid {
		t.Error("revoked by somebody else")
	}
	z.See(Seen{Keys: []string{key(2, 0x81)}, Trusted: none, Revokes: func(string) bool { return true }}, start)
	if z.Keys[0].State != Revoked {
		t.Error("its own revocation counts, though nobody else has signed it")
	}
}

func TestRefresh(t *testing.T) {
	for _, c := range []struct {
		ttl, left time.Duration
		failed    bool
		want      time.Duration
	}{
		{2 * day, 10 * day, false, day}, {2 * day, day, false, 12 * time.Hour}, {time.Minute, day, false, time.Hour}, {90 * day, 90 * day, false, 15 * day},
		{2 * day, 10 * day, true, 2 * day / 10}, {0, 0, true, time.Hour}, {90 * day, 90 * day, true, day},
	} {
		if got := Refresh(c.ttl, c.left, c.failed); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const k = "key . valid 1 257 3 8 AwEAAQ==\n"
	for text, want := range map[string]string{
		"": "line 1", header: "line 1: it is cut", "validator-anchors 2\n": "line 1", header + "\nzone . x 0\n": "line 2", header + "\n" + k: "no zone", header + "\nzone . 0 0\n" + k + k: "twice",
		header + "\nzone . 0 0\nkey . odd 1 257 3 8 AwEAAQ==\n": "unknown state", header + "\nzone . 0 0\nkey . valid 1 257 3 8 !\n": "line 3", header + "\nother\n": "neither",
		header + "\nzone . 0 0\nkey . valid 1 70000 3 8 AwEAAQ==\n": "range",
		header + "\nzone . 1795824000 17958":                        "line 2: it is cut", header + "\nzone . 0 0\nkey . valid 1 257 3 8 AwEA": "line 3: it is cut",
		header + "\nzone . 0 0\nother " + strings.Repeat("x", 70000) + "\n" + k: "neither", // which is not where the file ends
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(header + "\nzone . 1 2\nkey . valid 1 257 3 8 AwEAAQ==\n")
	f.Fuzz(func(t *testing.T, text string) {
		zones, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(string(Append(nil, zones)))
		if err != nil || !reflect.DeepEqual(zones, again) {
			t.Fatalf("%q: %v, %+v is %+v", text, err, zones, again)
		}
	})
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	killed, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err == nil {
		err = os.Chtimes(killed.Name(), time.Time{}, time.Now().Add(-time.Hour))
		killed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q %v", b, err)
		}
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%d files are left", len(all))
	}
	if err := WriteFile(filepath.Join(path, "x"), nil); err == nil {
		t.Error("a file is no directory")
	}
}
