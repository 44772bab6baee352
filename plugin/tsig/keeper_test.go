package tsig

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/stamp"

	"github.com/miekg/dns"
)

// TestKeeper: keys change with their file; a file that is broken, or gone, changes nothing.
func TestKeeper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key a { secret AAAA; };")
	f := &keyFile{path: path}
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	ring := new(keyring.Ring)
	k := newKeeper([]*keyFile{f}, ring)
	has := func(name, secret string) {
		t.Helper()
		if got, ok := ring.Key(name); got.Secret != secret || ok != (secret != "") {
			t.Errorf("%s is %q", name, got.Secret)
		}
	}
	has("a.", "AAAA")
	write("key a { secret BBBBBBBB; }; key b { algorithm hmac-sha512; secret CCCC; };")
	k.look()
	has("a.", "BBBBBBBB")
	has("b.", "CCCC")
	for _, broken := range []func(){func() { write("key a {") }, func() { os.Remove(path) }} {
		broken()
		k.look()
		has("a.", "BBBBBBBB")
	}
	write("key b { secret DDDD; };")
	k.look()
	has("a.", "")
	has("b.", "DDDD")
	k.start(time.Millisecond)
	write("key c { secret EEEEEEEE; };")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, ok := ring.Key("c."); ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the file is not looked at")
		}
	}
	k.stop()
}

// TestKeeperOfSeveral: a file that is broken does not hold up the keys of others, before it or behind it, and is told of once.
func TestKeeperOfSeveral(t *testing.T) {
	var files []*keyFile
	dir := t.TempDir()
	write := func(i int, text string) {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range []string{"key a { secret AAAA; };", "key b { secret AAAA; };", "key c { secret AAAA; };"} {
		write(i, text)
		f := &keyFile{path: filepath.Join(dir, string(rune('a'+i)))}
		if err := f.read(); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	ring := new(keyring.Ring)
	k := newKeeper(files, ring)
	write(0, "key a { secret BBBBBBBB; };")
	write(1, "key b {")
	write(2, "key c { secret BBBBBBBB; };")
	for range 2 {
		k.look()
		for name, want := range map[string]string{"a.": "BBBBBBBB", "b.": "AAAA", "c.": "BBBBBBBB"} {
			if got, _ := ring.Key(name); got.Secret != want {
				t.Errorf("%s is %q, want %q", name, got.Secret, want)
			}
		}
	}
}

// TestKeeperWaits: a file that was changed just now may still be written; the keys that are not in it yet are not lost.
func TestKeeperWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string, age time.Duration) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at := time.Now().Add(-age); os.Chtimes(path, at, at) != nil {
			t.Fatal("its time")
		}
	}
	write("key a { secret AAAA; };", time.Hour)
	f := &keyFile{path: path}
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	ring := new(keyring.Ring)
	k := newKeeper([]*keyFile{f}, ring)
	k.every = time.Hour
	for _, step := range []struct {
		text  string
		age   time.Duration
		again bool
		a, b  bool
	}{
		{"", 0, true, true, false}, {"key b { secret BBBB; };\n", 0, true, true, false},
		{"key b { secret BBBB; };\nkey a { secret AAAA; };", time.Minute, false, true, true},
		{"", time.Second * 2, false, false, false},
	} {
		write(step.text, step.age)
		again := k.look()
		_, a := ring.Key("a.")
		_, b := ring.Key("b.")
		if a != step.a || b != step.b || again > 0 != step.again || again > stamp.Quiet {
			t.Errorf("%q of %v: a is there: %v, b: %v, again after %v", step.text, step.age, a, b, again)
		}
	}
}

// TestLastTimes: times of a key's signatures do not go back; those of others do not matter.
func TestLastTimes(t *testing.T) {
	var none *lastTimes
	l := new(lastTimes)
	for _, tc := range []struct {
		key  string
		at   uint64
		back bool
	}{{"a.", 10, false}, {"a.", 10, false}, {"A.", 9, true}, {"b.", 5, false}, {"a.", 11, false}, {"a.", 10, true}} {
		sig := &dns.TSIG{Hdr: dns.RR_Header{Name: tc.key}, TimeSigned: tc.at}
		if got := l.goesBack(sig); got != tc.back {
			t.Errorf("%s at %d: %v", tc.key, tc.at, got)
		}
		if none.goesBack(sig) {
			t.Error("none looks at times")
		}
	}
}
