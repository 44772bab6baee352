package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// threeSections is a reply with two answers, an authority and two additional records.
func threeSections(q *Query) *Reply {
	w := new(Reply)
	w.Reset(nil)
	w.Begin(q)
	ns := MustName("ns.example.org")
	w.Addr(Answer, q.Name(), 10, netip.MustParseAddr("192.0.2.1"))
	w.Addr(Answer, q.Name(), 20, netip.MustParseAddr("192.0.2.2"))
	w.Target(Authority, MustName("example.org"), TypeNS, 30, ns)
	w.Addr(Additional, ns, 40, netip.MustParseAddr("192.0.2.3"))
	w.Addr(Additional, ns, 50, netip.MustParseAddr("2001:db8::3"))
	return w
}

// The layout tells where each record stands: sections one after the other, TTLs to be read and set, RDATA from its
// begin to its end.
func TestLayout(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 1232)
	w := threeSections(q)
	for s, want := range map[Section][]uint16{Answer: {TypeA, TypeA}, Authority: {TypeNS}, Additional: {TypeA, TypeAAAA}} {
		recs := w.Section(s)
		if len(recs) != len(want) || w.Count(s) != len(want) {
			t.Fatalf("section %d has %d records, counts %d, want %d", s, len(recs), w.Count(s), len(want))
		}
		for i, r := range recs {
			if r.Sec != s || r.Type != want[i] {
				t.Errorf("section %d, record %d: %+v, want type %d", s, i, r, want[i])
			}
		}
	}
	for i, want := range []string{"\xC0\x00\x02\x01", "\xC0\x00\x02\x02", "\x02ns\xC0\x10", "\xC0\x00\x02\x03"} {
		if w.TTL(i) != uint32(10*(i+1)) || string(w.RData(i)) != want {
			t.Errorf("record %d: TTL %d, RDATA %q", i, w.TTL(i), w.RData(i))
		}
	}
	w.SetTTL(2, 1<<31)
	if w.TTL(1) != 20 || w.TTL(2) != 1<<31 || w.TTL(3) != 40 {
		t.Errorf("after SetTTL: %d %d %d", w.TTL(1), w.TTL(2), w.TTL(3))
	}
	if w.SetTTLs(5); w.TTL(0) != 5 || w.TTL(4) != 5 {
		t.Errorf("after SetTTLs: %d %d", w.TTL(0), w.TTL(4))
	}
	w.Truncate(3)
	if w.Count(Additional) != 0 || w.Count(Authority) != 1 || len(w.Recs()) != 3 {
		t.Errorf("after Truncate: %v", w.Recs())
	}
	if m := unpack(t, w.Finish(q, 1232)); len(m.Answer) != 2 || len(m.Ns) != 1 || len(m.Extra) != 1 {
		t.Errorf("after Truncate:\n%v", m)
	}
}

// A reply is a message, a failure or a drop, whatever it was before; only a message is sent.
func TestStates(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 1232)
	cause := errors.New("cause")
	var w Reply
	w.Reset(nil)
	for _, tc := range []struct {
		what                   string
		do                     func()
		holds, failed, dropped bool
		rcode                  int
		err                    error
	}{
		{"nothing", func() {}, false, false, false, 0, nil},
		{"a message", func() { w.Begin(q) }, true, false, false, 0, nil},
		{"a message with an error", func() { w.SetErr(cause) }, true, false, false, 0, cause},
		{"a failure", func() { w.Fail(ServFail, cause) }, false, true, false, ServFail, cause},
		{"a drop", func() { w.Drop() }, false, false, true, 0, nil},
		{"a failure without error", func() { w.Fail(Refused, nil) }, false, true, false, Refused, nil},
		{"a message again", func() { w.Begin(q); w.SetRcode(NXDomain) }, true, false, false, NXDomain, nil},
		{"another one", func() { w.Begin(q) }, true, false, false, 0, nil},
		{"nothing again", func() { w.Fail(ServFail, cause); w.Reset(nil) }, false, false, false, 0, nil},
	} {
		tc.do()
		if w.Holds() != tc.holds || w.Failed() != tc.failed || w.Dropped() != tc.dropped || w.Rcode() != tc.rcode || w.Err() != tc.err {
			t.Errorf("%s: message %v, failure %v, drop %v, rcode %d, %v", tc.what, w.Holds(), w.Failed(), w.Dropped(), w.Rcode(), w.Err())
		}
		w.Cut(q)
		if told := w.AppendFinished(nil, q, 1232); (told != nil) != tc.holds || (w.Finish(q, 1232) != nil) != tc.holds {
			t.Errorf("%s: told %x", tc.what, told)
		}
	}
	w.Begin(q)
	w.SetWriter("file")
	for _, bit := range []uint16{FlagAA, FlagTC, FlagRA, FlagAD} {
		w.SetFlag(bit, true)
		if !w.Flag(bit) || w.Flag((FlagAA|FlagTC|FlagRA|FlagAD)&^bit) || w.Rcode() != 0 {
			t.Errorf("flag %#x alone is not set", bit)
		}
		if w.SetFlag(bit, false); w.Flag(bit) {
			t.Errorf("flag %#x is not cleared", bit)
		}
	}
	if w.Writer() != "file" {
		t.Errorf("writer %q", w.Writer())
	}
	if w.Reset(nil); w.Writer() != "" {
		t.Errorf("writer %q after Reset", w.Writer())
	}
}

// A copy is sent as the original would be, also after more records were added to it, and the original stays as it was.
func TestCopy(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 1232)
	from := threeSections(q)
	from.SetFlag(FlagAA, true)
	from.SetRcode(dns.RcodeBadCookie)
	from.SetWriter("file")
	from.AddOption(OptionNSID, []byte("x"))
	from.SetNonAuthoritative(true)
	want := from.AppendFinished(nil, q, 1232)
	var w, again Reply
	w.Reset(nil)
	w.Copy(from)
	kept := w.Copied()
	if w.PlainLen() != from.PlainLen() || w.Writer() != "file" || w.Rcode() != dns.RcodeBadCookie {
		t.Errorf("length %d, writer %s, rcode %d", w.PlainLen(), w.Writer(), w.Rcode())
	}
	if got := w.AppendFinished(nil, q, 1232); !bytes.Equal(got, want) || !slices.Equal(w.Recs(), from.Recs()) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	w.Target(Additional, MustName("example.org"), TypePTR, 1, MustName("ns.example.org"))
	w.SetTTL(0, 99)
	if m := unpack(t, w.Finish(q, 1232)); len(m.Extra) != 4 || m.Extra[2].(*dns.PTR).Ptr != "ns.example.org." {
		t.Errorf("with one more:\n%v", m)
	}
	if again.Paste(&kept); kept.Count(Additional) != 2 || !kept.NonAuthoritative() || !again.NonAuthoritative() {
		t.Errorf("%d additional records, resolved %t, %t", kept.Count(Additional), kept.NonAuthoritative(), again.NonAuthoritative())
	}
	if got := again.Finish(q, 1232); !bytes.Equal(got, want) || again.Writer() != "file" {
		t.Errorf("pasted\n%x\nwant\n%x", got, want)
	}
	if got := from.Finish(q, 1232); !bytes.Equal(got, want) {
		t.Errorf("the original is now\n%x\nwas\n%x", got, want)
	}
}

// Who vouches for a message does not vouch for what it becomes.
func TestVouch(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 1232)
	another := threeSections(q).Pack()
	for what, change := range map[string]func(*Reply){
		"Reset": func(w *Reply) { w.Reset(nil) }, "Begin": func(w *Reply) { w.Begin(q) }, "Fail": func(w *Reply) { w.Fail(ServFail, nil) },
		"Drop": func(w *Reply) { w.Drop() }, "SetRcode": func(w *Reply) { w.SetRcode(NXDomain) }, "SetTTL": func(w *Reply) { w.SetTTL(0, 1) },
		"SetTTLs": func(w *Reply) { w.SetTTLs(1) }, "Truncate": func(w *Reply) { w.Truncate(1) }, "Keep": func(w *Reply) { w.Keep(func(i int) bool { return i > 0 }) },
		"Load": func(w *Reply) { w.Load(&another, q) }, "Copy": func(w *Reply) { w.Copy(threeSections(q)) },
		"Addr":     func(w *Reply) { w.Addr(Answer, q.Name(), 1, netip.MustParseAddr("192.0.2.1")) },
		"Record":   func(w *Reply) { w.Record(Answer, q.Name(), TypeA, ClassIN, 1, make([]byte, 4)) },
		"Target":   func(w *Reply) { w.Target(Answer, q.Name(), TypePTR, 1, q.Name()) },
		"Relative": func(w *Reply) { w.Relative(Additional, w.QuestionOwner(), TypeA, 1, make([]byte, 4), nil, 0, 4) },
		"SetMsg":   func(w *Reply) { _ = w.SetMsg(new(dns.Msg).SetQuestion("www.example.org.", TypeA)) },
	} {
		w := threeSections(q)
		w.Vouch("me")
		w.AddOption(OptionNSID, []byte("x"))
		w.SetFlag(FlagAD, true)
		w.SetWriter("file")
		w.Keep(func(int) bool { return true })
		if w.Vouched() != "me" {
			t.Fatalf("vouched by %v", w.Vouched())
		}
		if change(w); w.Vouched() != nil {
			t.Errorf("%s: vouched by %v", what, w.Vouched())
		}
	}
}

// What is put away keeps its key, counts and return code, and no TC: whether it fits is another question for each
// client. It knows how many octets it takes, and cannot be given for a name of another length.
func TestPackedFacts(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 1232)
	w := threeSections(q)
	w.SetFlag(FlagTC, true)
	w.SetFlag(FlagRA, true)
	w.SetRcode(NXDomain)
	bare, key := w.Pack(), []byte("a key")
	p := w.PackWith(key)
	key[0] = 'x' // it is a copy
	if string(p.Key()) != "a key" || len(bare.Key()) != 0 || p.Size() != bare.Size()+5 || p.Rcode() != NXDomain {
		t.Errorf("key %q and %q, sizes %d and %d, rcode %d", p.Key(), bare.Key(), p.Size(), bare.Size(), p.Rcode())
	}
	if p.Count(Answer) != 2 || p.Count(Authority) != 1 || p.Count(Additional) != 2 {
		t.Errorf("counts %d %d %d", p.Count(Answer), p.Count(Authority), p.Count(Additional))
	}
	if k := PackKey([]byte("alone")); string(k.Key()) != "alone" || k.Size() != 5 || k.Count(Answer) != 0 {
		t.Errorf("a key alone: %q, %d octets", k.Key(), k.Size())
	}
	for _, p := range []Packed{bare, p} {
		var again Reply
		again.Reset(nil)
		again.Load(&p, q)
		if again.Flag(FlagTC) || !again.Flag(FlagRA) || again.Rcode() != NXDomain || again.PlainLen() != w.PlainLen() {
			t.Errorf("flags %#x, length %d", again.flags, again.PlainLen())
		}
		got, want := unpack(t, again.Finish(q, 1232)), unpack(t, w.AppendFinished(nil, q, 1232))
		want.Truncated = false
		if got.String() != want.String() {
			t.Errorf("got\n%v\nwant\n%v", got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a reply is given for a name of another length")
		}
	}()
	var other Reply
	other.Reset(nil)
	other.Load(&p, query(t, "wwww.example.org.", TypeA, 0))
}

// The words for outcomes, transports and cookies are those of logs and metrics.
func TestWords(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{Unpack.String(), "unpack"}, {Done.String(), "done"}, {Block.String(), "block"}, {Park.String(), "park"}, {Outcome(99).String(), "unknown outcome"},
		{UDP.String(), "udp"}, {TCP.String(), "tcp"},
		{CookieNone.String(), "none"}, {CookieClient.String(), "client"}, {CookieInvalid.String(), "invalid"}, {CookieValid.String(), "valid"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// waiting is an exchange that notes who waits for it, and how.
type waiting struct{ then, owner []eventloop.Resumer }

func (x *waiting) Then(r eventloop.Resumer)      { x.then = append(x.then, r) }
func (x *waiting) ThenOwner(r eventloop.Resumer) { x.owner = append(x.owner, r) }

type nobody struct{}

func (nobody) Resume() {}

// A query waits as the owner of the exchange that was begun for it, and as one of several for any other; it forgets it
// with the next packet.
func TestAwait(t *testing.T) {
	q := query(t, "www.example.org.", TypeA, 0)
	if q.Awaited() != nil {
		t.Fatal("it awaits something")
	}
	var x waiting
	q.AwaitOwn(&x)
	q.Wait(nobody{})
	if q.Awaited() != eventloop.Exchange(&x) || len(x.owner) != 1 || len(x.then) != 0 {
		t.Errorf("its own: %+v", x)
	}
	q.Await(&x) // that of another query
	q.Wait(nobody{})
	if len(x.owner) != 1 || len(x.then) != 1 {
		t.Errorf("another's: %+v", x)
	}
	q.SetMayBlock(true)
	packet := packed(t, question("x.", TypeA))
	if !q.Parse(packet) || q.Awaited() != nil || q.MayBlock() || q.JustCame() {
		t.Errorf("the next query awaits %v, may block %v", q.Awaited(), q.MayBlock())
	}
	if q.Flags() != FlagRD {
		t.Errorf("flags %#x", q.Flags())
	}
}
