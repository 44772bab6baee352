package validator

import (
	"context"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// rolling is a zone whose keys change. It answers below the validator.
type rolling struct {
	t    *testing.T
	now  time.Time
	keys []*dns.DNSKEY // that are in the zone; the first signs data
	priv map[string]crypto.Signer

	mu    sync.Mutex
	asked []string
}

func (z *rolling) add(flags uint16) *dns.DNSKEY {
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.", Rrtype: dns.TypeDNSKEY, Class: 1, Ttl: 3600}, Flags: flags, Protocol: 3, Algorithm: dns.ED25519}
	p, err := k.Generate(256)
	if err != nil {
		z.t.Fatal(err)
	}
	z.priv[k.PublicKey] = p.(crypto.Signer)
	z.keys = append(z.keys, k)
	return k
}

func (z *rolling) remove(k *dns.DNSKEY) {
	for i := range z.keys {
		if z.keys[i] == k {
			z.keys = append(z.keys[:i:i], z.keys[i+1:]...)
			return
		}
	}
}

func (z *rolling) sign(k *dns.DNSKEY, set []dns.RR) dns.RR {
	g := &dns.RRSIG{
		Hdr: dns.RR_Header{Name: set[0].Header().Name, Rrtype: dns.TypeRRSIG, Class: 1, Ttl: 3600}, Algorithm: k.Algorithm, KeyTag: k.KeyTag(), SignerName: "example.",
		Inception: uint32(z.now.Add(-time.Hour).Unix()), Expiration: uint32(z.now.Add(10 * 24 * time.Hour).Unix()),
	}
	if err := g.Sign(z.priv[k.PublicKey], set); err != nil {
		z.t.Fatal(err)
	}
	return g
}

func (z *rolling) Name() string { return "rolling" }

func (z *rolling) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	q := r.Question[0]
	z.mu.Lock()
	z.asked = append(z.asked, q.Name+" "+dns.Type(q.Qtype).String())
	z.mu.Unlock()
	switch {
	case q.Qtype == dns.TypeDNSKEY && q.Name == "example.":
		for _, k := range z.keys {
			m.Answer = append(m.Answer, k)
		}
		set := m.Answer
		for _, k := range z.keys { // each key signs, as RFC 5011 has it
			m.Answer = append(m.Answer, z.sign(k, set))
		}
	case q.Qtype == dns.TypeSOA && q.Name == "example.":
		set := []dns.RR{test.SOA("example. 3600 IN SOA a. b. 1 2 3 4 5")}
		m.Answer = append(set, z.sign(z.keys[0], set))
	case q.Qtype == dns.TypeA:
		set := []dns.RR{test.A("www.example. 3600 IN A 192.0.2.1")}
		m.Answer = append(set, z.sign(z.keys[0], set))
	default:
		m.Rcode = dns.RcodeServerFailure
	}
	m.SetEdns0(1232, true)
	return 0, w.WriteMsg(m)
}

// begun is a new process's validator with that state, at the zone's time.
func (z *rolling) begun(anchor, options string) *Validator {
	z.t.Helper()
	s, err := parseText(fmt.Sprintf("validator {\nanchor \"%s\"\n%s\n}", anchor, options))
	if err != nil {
		z.t.Fatal(err)
	}
	delete(s.anchors, rrset.Root)
	s.fixed = z.now
	v := newValidator(s)
	v.Next = z
	if _, err := v.negatives.load(z.now); err != nil {
		z.t.Fatal(err)
	}
	if err := v.keeper.load(); err != nil {
		z.t.Fatal(err)
	}
	v.keeper.publish()
	v.keeper.used.Store(true)
	return v
}

// The key of an anchor is rolled: for months the answers stay secure, though each day the process is killed and another one
// begins with the state that is in the file.
func TestRollOver(t *testing.T) {
	z := &rolling{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), priv: map[string]crypto.Signer{}}
	old := z.add(257)
	anchor := strings.ReplaceAll(old.ToDS(dns.SHA256).String(), "\t", " ")
	path := filepath.Join(t.TempDir(), "anchors")
	var next *dns.DNSKEY
	for day := range 140 {
		switch day {
		case 10:
			next = z.add(257)
		case 45: // the new key signs, the old one says that it is revoked
			z.remove(old)
			old.Flags |= dns.REVOKE
			z.keys = append(z.keys, old)
		case 80:
			z.remove(old)
		}
		v := z.begun(anchor, "state "+path)
		v.keeper.look(context.Background(), z.now)
		m, _, err := ask(t, v, "www.example.", do)
		if err != nil || !m.AuthenticatedData || !v.Ready() {
			t.Fatalf("day %d: %v %v, ready %v", day, m, err, v.Ready())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{day >= 10 && day < 40: "addpend", day >= 45 && day < 75: "revoked", day >= 75: "removed"}[true]
		if want != "" && !strings.Contains(string(b), " "+want+" ") || !strings.Contains(string(b), " valid ") {
			t.Fatalf("day %d: no %s key in\n%s", day, want, b)
		}
		z.now = z.now.Add(24 * time.Hour)
	}
	// The old key is back, as its thief has it: it proves nothing any more, though the configuration still names it.
	v := z.begun(anchor, "state "+path)
	old.Flags &^= dns.REVOKE
	z.remove(next)
	z.keys = append(z.keys, old)
	if m, _, err := ask(t, v, "www.example.", do); err == nil {
		t.Errorf("a revoked key is believed: %v", m)
	}
	v.keeper.look(context.Background(), z.now.Add(20*24*time.Hour))
	if v.Ready() {
		t.Error("no key is believed, and the server is ready")
	}
}

func TestKeeperAsks(t *testing.T) {
	z := &rolling{t: t, now: time.Now(), priv: map[string]crypto.Signer{}}
	k := z.add(257)
	anchor := strings.ReplaceAll(k.ToDS(dns.SHA256).String(), "\t", " ")
	for _, c := range []struct {
		options, has, not string
	}{
		{"", fmt.Sprintf("_ta-%04x.example. NULL", k.KeyTag()), ""}, {"signal off", "example. DNSKEY", "NULL"}, {"rfc5011 off", "", "e"},
	} {
		z.asked = nil
		v := z.begun(anchor, c.options)
		v.keeper.look(context.Background(), z.now)
		n := len(z.asked)
		v.keeper.look(context.Background(), z.now.Add(time.Minute)) // nothing is due
		got := strings.Join(z.asked, ", ")
		if !strings.Contains(got, c.has) || c.not != "" && strings.Contains(got, c.not) || len(z.asked) != n {
			t.Errorf("%q: asked for %s", c.options, got)
		}
		if next := v.keeper.zones[0].Next; next != next.Round(0) {
			t.Errorf("%q: asked again %v, not while the machine is asleep", c.options, next)
		}
	}
}

func TestBadState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "line 1", filepath.Join(path, "x"): "not a directory", "/nowhere/x": "no such file"} {
		s, err := parseText("validator {\nstate " + file + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		if err := newValidator(s).start(time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// A state that is as it should be is not written at the start: who restarts on a full disk serves. The file's name leaves
// no room for that of an unfinished one here.
func TestStateIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	begin := func(path string) error {
		s, err := parseText("validator {\nanchor \"b. DS 1 13 2 " + strings.Repeat("00", 32) + "\"\nanchor \"a. DS 1 13 2 " +
			strings.Repeat("00", 32) + "\"\nstate " + path + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		v := newValidator(s)
		defer v.keeper.stop()
		return v.start(time.Now())
	}
	short, long := filepath.Join(dir, "state"), filepath.Join(dir, strings.Repeat("x", 255))
	if err := begin(short); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(short, long); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := begin(long); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := begin(long); err == nil {
		t.Error("one that has to be written, and cannot be, is none")
	}
}

// A negative trust anchor ends with its time, or as soon as the name validates again. Those of the file outlive the process.
func TestNegativeEnds(t *testing.T) {
	z := &rolling{t: t, now: time.Now(), priv: map[string]crypto.Signer{}}
	k := z.add(257)
	other := *k
	other.PublicKey = strings.Replace(k.PublicKey, k.PublicKey[:1], "A", 1)
	right, wrong := k.ToDS(dns.SHA256), (&other).ToDS(dns.SHA256)
	wrong.KeyTag = right.KeyTag
	if wrong.Digest[0] == right.Digest[0] {
		wrong.Digest = "00" + wrong.Digest[2:]
	}
	text := func(d *dns.DS) string { return strings.ReplaceAll(d.String(), "\t", " ") }
	file := filepath.Join(t.TempDir(), "ntas")
	name, later := rrset.MustName("example."), z.now.Add(time.Hour)

	v := z.begun(text(wrong), "nta_file "+file)
	if err := v.negatives.set(name, later, true); err != nil {
		t.Fatal(err)
	}
	v.keeper.look(context.Background(), z.now)
	if m, _, err := ask(t, v, "www.example.", do); err != nil || m.AuthenticatedData || !explains(m, 33) {
		t.Errorf("broken, with NTA: %v %v", m, err)
	}
	v = z.begun(text(wrong), "nta_file "+file)
	if !v.negatives.holds(name, z.now) {
		t.Error("it did not outlive the process")
	}
	v.keeper.look(context.Background(), later)
	if v.negatives.holds(name, z.now) {
		t.Error("it outlives its time")
	}
	if b, err := os.ReadFile(file); err != nil || len(b) != 0 {
		t.Errorf("the file has %q %v", b, err)
	}

	v = z.begun(text(right), "")
	if err := v.negatives.set(name, later, false); err != nil {
		t.Fatal(err)
	}
	if until := v.negatives.get()[name]; until != later.Round(0) {
		t.Errorf("until %v: while the machine is asleep it does not end", until)
	}
	v.keeper.look(context.Background(), z.now.Add(mended-time.Minute))
	if !v.negatives.holds(name, z.now) {
		t.Error("it ended before its name was to be looked at")
	}
	v.keeper.look(context.Background(), z.now.Add(mended+time.Minute))
	if v.negatives.holds(name, z.now) {
		t.Error("the name validates again, and it is still there")
	}
	if m, _, err := ask(t, v, "www.example.", do); err != nil || !m.AuthenticatedData {
		t.Errorf("mended: %v %v", m, err)
	}
	for _, bad := range []string{"x\n", "x y\n", "x.. 1\n"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (&ntas{path: file}).load(z.now); err == nil || !strings.Contains(err.Error(), file+":1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A negative trust anchor that could not be stored does not hold, and does not come into the file with the next.
func TestNegativeIsStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ntas")
	n := &ntas{path: filepath.Join(dir, "file")}
	one, other, now := rrset.MustName("one."), rrset.MustName("other."), time.Now()
	if err := n.set(one, now.Add(time.Hour), true); err == nil {
		t.Fatal("stored in a folder that is not there")
	}
	if n.holds(one, now) {
		t.Error("it holds, and its caller was told that it failed")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := n.set(other, now.Add(time.Hour), true); err != nil || !n.holds(other, now) {
		t.Fatalf("with the folder: %v", err)
	}
	if b, err := os.ReadFile(n.path); err != nil || !strings.HasPrefix(string(b), "other. ") || strings.Contains(string(b), "one.") {
		t.Errorf("the file has %q, %v", b, err)
	}
}

var _ validate.Memory = (*skeptic)(nil)

// A zone none of whose keys is believed keeps the server from being ready until it is mended, and not until its keys are due to be
// looked at again, which they are after an hour at the earliest.
func TestReadyOnceMended(t *testing.T) {
	z := &rolling{t: t, now: time.Now(), priv: map[string]crypto.Signer{}}
	right := z.add(257)
	wrong := z.add(257)
	z.remove(right)
	v := z.begun(strings.ReplaceAll(right.ToDS(dns.SHA256).String(), "\t", " "), "")
	v.keeper.look(context.Background(), z.now)
	if v.Ready() {
		t.Fatal("no key is believed, and the server is ready")
	}
	v.keeper.look(context.Background(), z.now.Add(time.Minute))
	if v.Ready() {
		t.Fatal("no key is believed still, and the server is ready")
	}
	z.remove(wrong)
	z.keys = append(z.keys, right)
	v.memory.forget() // bogus_ttl is over
	v.keeper.look(context.Background(), z.now.Add(2*time.Minute))
	if !v.Ready() {
		t.Error("the key is there again, and the server is not ready")
	}
}

// A process that begins while none of a zone's keys is believed finds that out with the first name that is validated,
// though the state says that the keys are not to be looked at for long.
func TestNotReadyAfterRestart(t *testing.T) {
	z := &rolling{t: t, now: time.Now(), priv: map[string]crypto.Signer{}}
	right := z.add(257)
	anchor, state := strings.ReplaceAll(right.ToDS(dns.SHA256).String(), "\t", " "), "state "+filepath.Join(t.TempDir(), "anchors")
	v := z.begun(anchor, state)
	if v.keeper.look(context.Background(), z.now); !v.Ready() {
		t.Fatal("the key is believed, and the server is not ready")
	}
	z.remove(right)
	z.add(257)
	v = z.begun(anchor, state)
	if next := v.keeper.zones[0].Next; !next.After(z.now) {
		t.Fatalf("the keys are to be looked at at %v", next)
	}
	if v.keeper.look(context.Background(), z.now); v.Ready() {
		t.Error("no key is believed, and the server is ready")
	}
}

// A Corefile that names a key which the state does not know, as it is older, has it believed beside those that the state has.
func TestStateAndCorefile(t *testing.T) {
	z := &rolling{t: t, now: time.Now(), priv: map[string]crypto.Signer{}}
	followed, named := z.add(257), z.add(257)
	anchor := func(k *dns.DNSKEY) string { return strings.ReplaceAll(k.ToDS(dns.SHA256).String(), "\t", " ") }
	state := "state " + filepath.Join(t.TempDir(), "anchors")
	z.keys = []*dns.DNSKEY{followed}
	v := z.begun(anchor(followed), state)
	v.keeper.look(context.Background(), z.now)
	for _, k := range []*dns.DNSKEY{followed, named} {
		z.keys = []*dns.DNSKEY{k}
		if m, _, err := ask(t, z.begun(anchor(named), state), "www.example.", do); err != nil || !m.AuthenticatedData {
			t.Errorf("signed by key %d: %v %v", k.KeyTag(), m, err)
		}
	}
	z.keys = nil
	z.add(257)
	if m, _, err := ask(t, z.begun(anchor(named), state), "www.example.", do); err == nil {
		t.Errorf("signed by another key: %v", m)
	}
}

// That none of an anchor's keys is believed is logged once an hour.
func TestLostAnchorIsLogged(t *testing.T) {
	z := &rolling{t: t, now: time.Now(), priv: map[string]crypto.Signer{}}
	right := z.add(257)
	v := z.begun(strings.ReplaceAll(right.ToDS(dns.SHA256).String(), "\t", " "), "")
	z.keys = nil
	z.add(257)
	out := logtest.Capture(t)
	for minute, want := range []int{0: 1, 1: 1, 59: 1, 61: 2, 119: 2, 122: 3} {
		if want == 0 {
			continue
		}
		v.memory.forget()
		v.keeper.look(context.Background(), z.now.Add(time.Duration(minute)*time.Minute))
		if n := strings.Count(out.String(), "no key of the zone is believed"); n != want {
			t.Fatalf("after %d minutes it was told %d times, want %d:\n%s", minute, n, want, out)
		}
	}
}
