package cookie_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

func secret(t testing.TB, text string) cookie.Secret {
	t.Helper()
	s, err := cookie.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The examples of RFC 9018, appendix A.
func TestAppendixA(t *testing.T) {
	for _, tc := range []struct {
		name, secrets, client, query string
		now                          uint32
		state                        wire.CookieState
		reply                        string
	}{
		{"A.1 learning a new server cookie", "e5e973e5a6b2a43f48e7dc849e37bfcf", "198.51.100.100",
			"2464c4abcf10c957", 1559731985, wire.CookieClient, "2464c4abcf10c957010000005cf79f111f8130c3eee29480"},
		{"A.2 the same client learning a renewed (fresh) server cookie", "e5e973e5a6b2a43f48e7dc849e37bfcf", "198.51.100.100",
			"2464c4abcf10c957010000005cf79f111f8130c3eee29480", 1559734385, wire.CookieValid, "2464c4abcf10c957010000005cf7a871d4a564a1442aca77"},
		{"A.3 another client learning a renewed server cookie", "e5e973e5a6b2a43f48e7dc849e37bfcf", "203.0.113.203",
			"fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5", 1559734700, wire.CookieInvalid, "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e"},
		{"A.4 IPv6 query with a rolled over secret", "445536bcd2513298075a5d379663c962 dd3bdf9344b678b185a6f5cb60fca715", "2001:db8:220:1:59de:d0f4:8769:82b8",
			"22681ab97d52c298010000005cf7c57926556bd0934c72f8", 1559741961, wire.CookieValid, "22681ab97d52c298010000005cf7c609a6bb79d16625507a"},
	} {
		var keys cookie.Keys
		for _, s := range strings.Fields(tc.secrets) {
			keys = append(keys, secret(t, s))
		}
		state, reply := keys.Judge(unhex(t, tc.query), netip.MustParseAddr(tc.client), tc.now)
		if got := hex.EncodeToString(reply[:]); state != tc.state || got != tc.reply {
			t.Errorf("%s: got %s, %s, want %s, %s", tc.name, state, got, tc.state, tc.reply)
		}
	}
}

const (
	secretA = "e5e973e5a6b2a43f48e7dc849e37bfcf"
	secretB = "445536bcd2513298075a5d379663c962"
	began   = 1559731985
)

var (
	client4 = netip.MustParseAddr("192.0.2.1")
	client6 = netip.MustParseAddr("2001:db8::1")
)

// What becomes of a cookie of began, by when and how it is shown.
func TestJudge(t *testing.T) {
	a, b := secret(t, secretA), secret(t, secretB)
	for _, addr := range []netip.Addr{client4, client6} {
		_, first := cookie.Keys{a}.Judge([]byte("12345678"), addr, began)
		with := func(at int, v byte) []byte {
			c := append([]byte(nil), first[:]...)
			c[at] = v
			return c
		}
		other := client4
		if addr == client4 {
			other = netip.MustParseAddr("192.0.2.2")
		}
		for _, tc := range []struct {
			name   string
			keys   cookie.Keys
			option []byte
			addr   netip.Addr
			now    uint32
			state  wire.CookieState
			same   bool
		}{
			{"at once", cookie.Keys{a}, first[:], addr, began, wire.CookieValid, true},
			{"just fresh", cookie.Keys{a}, first[:], addr, began + 1799, wire.CookieValid, true},
			{"to be renewed", cookie.Keys{a}, first[:], addr, began + 1800, wire.CookieValid, false},
			{"just good", cookie.Keys{a}, first[:], addr, began + 3600, wire.CookieValid, false},
			{"too old", cookie.Keys{a}, first[:], addr, began + 3601, wire.CookieInvalid, false},
			{"of a clock ahead", cookie.Keys{a}, first[:], addr, began - 300, wire.CookieValid, true},
			{"of the future", cookie.Keys{a}, first[:], addr, began - 301, wire.CookieInvalid, false},
			{"half the clock away", cookie.Keys{a}, first[:], addr, began ^ 1<<31, wire.CookieInvalid, false},
			{"other client", cookie.Keys{a}, first[:], other, began + 1, wire.CookieInvalid, false},
			{"other secret", cookie.Keys{b}, first[:], addr, began + 1, wire.CookieInvalid, false},
			{"secret that signs no more", cookie.Keys{b, a}, first[:], addr, began, wire.CookieValid, false},
			{"secret that signs not yet", cookie.Keys{a, b}, first[:], addr, began, wire.CookieValid, true},
			{"other client cookie", cookie.Keys{a}, with(0, 'x'), addr, began + 1, wire.CookieInvalid, false},
			{"other version", cookie.Keys{a}, with(8, 2), addr, began + 1, wire.CookieInvalid, false},
			{"other reserved octet", cookie.Keys{a}, with(9, 1), addr, began + 1, wire.CookieInvalid, false},
			{"other time", cookie.Keys{a}, with(15, first[15]+1), addr, began + 1, wire.CookieInvalid, false},
			{"other hash", cookie.Keys{a}, with(23, first[23]+1), addr, began + 1, wire.CookieInvalid, false},
			{"short server cookie", cookie.Keys{a}, first[:16], addr, began + 1, wire.CookieInvalid, false},
			{"long server cookie", cookie.Keys{a}, append(first[:len(first):len(first)], 0), addr, began + 1, wire.CookieInvalid, false},
			{"client cookie", cookie.Keys{a}, first[:8], addr, began + 1, wire.CookieClient, false},
		} {
			state, reply := tc.keys.Judge(tc.option, tc.addr, tc.now)
			if state != tc.state || (reply == first) != tc.same {
				t.Errorf("%s, %s: got %s, same %v", addr, tc.name, state, reply == first)
			}
			if state, again := tc.keys.Judge(reply[:], tc.addr, tc.now); state != wire.CookieValid || again != reply || string(reply[:8]) != string(tc.option[:8]) {
				t.Errorf("%s, %s: the reply's cookie is %s, and becomes %x after %x", addr, tc.name, state, again, reply)
			}
		}
	}
}

func TestParseSecret(t *testing.T) {
	for text, want := range map[string]string{
		secretA:                  "",
		strings.ToUpper(secretA): "",
		"":                       "a secret has 32 hexadecimal digits, not 0 characters",
		secretA + "00":           "a secret has 32 hexadecimal digits, not 34 characters",
		secretA[:31] + "g":       "a secret has 32 hexadecimal digits, and nothing else",
	} {
		_, err := cookie.ParseSecret(text)
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A random secret signs for a day and is good for what it has signed.
func TestRandomRing(t *testing.T) {
	r := cookie.NewRandomRing(began)
	show := func(c []byte, now uint32) (wire.CookieState, []byte) {
		state, next := r.Judge(c, client4, now)
		return state, next[:]
	}
	_, first := show([]byte("12345678"), began+86399)
	if state, again := show(first, began+86399); state != wire.CookieValid || string(again) != string(first) {
		t.Errorf("on the same day %s, then %x after %x", state, again, first)
	}
	state, second := show(first, began+86400)
	if state != wire.CookieValid || string(second) == string(first) {
		t.Errorf("on the next day %s, the same %x", state, second)
	}
	if state, again := show(second, began+86399); state != wire.CookieValid || string(again) != string(second) {
		t.Errorf("with a clock that is behind %s, then %x after %x", state, again, second)
	}
	if state, _ := cookie.NewRandomRing(began).Judge(second, client4, began+86400); state != wire.CookieInvalid {
		t.Errorf("in another process %s", state)
	}
	if state, _ := show(second, began+3*86400); state != wire.CookieInvalid {
		t.Errorf("days later %s", state)
	}
}

func TestRingSet(t *testing.T) {
	a, b := secret(t, secretA), secret(t, secretB)
	r := cookie.NewRing(cookie.Keys{a})
	_, first := r.Judge([]byte("12345678"), client6, began)
	for _, tc := range []struct {
		keys cookie.Keys
		want wire.CookieState
	}{{cookie.Keys{b, a}, wire.CookieValid}, {cookie.Keys{b}, wire.CookieInvalid}, {cookie.Keys{a}, wire.CookieValid}} {
		r.Set(tc.keys)
		if state, _ := r.Judge(first[:], client6, began); state != tc.want {
			t.Errorf("%d keys: %s", len(tc.keys), state)
		}
	}
}

// Whatever an option holds, the reply's cookie is one that is good, and nobody makes a good one by chance.
func FuzzJudge(f *testing.F) {
	keys := cookie.Keys{secret(f, secretA), secret(f, secretB)}
	_, good := keys.Judge([]byte("12345678"), client4, began)
	f.Add([]byte("12345678"), uint32(began))
	f.Add(good[:], uint32(began))
	f.Add(append(good[:], good[:16]...), uint32(began))
	f.Fuzz(func(t *testing.T, option []byte, now uint32) {
		if !wire.CookieSized(len(option)) {
			return
		}
		state, reply := keys.Judge(option, client4, now)
		if state == wire.CookieValid && string(option) != string(good[:]) {
			t.Fatalf("%x is good", option)
		}
		if again, next := keys.Judge(reply[:], client4, now); again != wire.CookieValid || next != reply {
			t.Fatalf("%x at %d: the reply's cookie %x is %s", option, now, reply, again)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	r := cookie.NewRandomRing(began)
	_, good := r.Judge([]byte("12345678"), client6, began)
	for _, bc := range []struct {
		name   string
		option []byte
	}{{"client", good[:8]}, {"valid", good[:]}} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Judge(bc.option, client6, began+1)
			}
		})
	}
}

func TestJudgeDoesNotAllocate(t *testing.T) {
	r := cookie.NewRandomRing(began)
	_, good := r.Judge([]byte("12345678"), client6, began)
	if n := testing.AllocsPerRun(100, func() { r.Judge(good[:], client6, began+1801) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
