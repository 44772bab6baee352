package reply

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

const tsigKey, tsigSecret = "key.example.org.", "c2VjcmV0IG9mIDMyIG9jdGV0cyBmb3IgdGVzdHMuLi4="

// signed is a signed question, and its MAC.
func signed(t *testing.T, key, secret string, at time.Time) (r *dns.Msg, b []byte, mac string) {
	t.Helper()
	m := question(1232, false)
	m.SetTsig(key, dns.HmacSHA256, 300, at.Unix())
	b, mac, err := dns.TsigGenerate(m, secret, "", false)
	if err != nil {
		t.Fatal(err)
	}
	r = new(dns.Msg)
	if err := r.Unpack(b); err != nil {
		t.Fatal(err)
	}
	return r, b, mac
}

func TestVerify(t *testing.T) {
	secrets := map[string]string{tsigKey: tsigSecret}
	for _, tc := range []struct {
		name, key, secret string
		at                time.Time
		f                 *Finisher
		want              error
	}{
		{"good", tsigKey, tsigSecret, time.Now(), &Finisher{Secrets: secrets}, nil},
		{"in capitals", "KEY.Example.org.", tsigSecret, time.Now(), &Finisher{Secrets: secrets}, nil},
		{"another key", "other.", tsigSecret, time.Now(), &Finisher{Secrets: secrets}, dns.ErrSecret},
		{"another secret", tsigKey, "YW5vdGhlciBzZWNyZXQ=", time.Now(), &Finisher{Secrets: secrets}, dns.ErrSig},
		{"another time", tsigKey, tsigSecret, time.Now().Add(-time.Hour), &Finisher{Secrets: secrets}, dns.ErrTime},
		{"nobody looks", "other.", tsigSecret, time.Now(), new(Finisher), nil},
		{"no Finisher", "other.", tsigSecret, time.Now(), nil, nil},
	} {
		r, b, _ := signed(t, tc.key, tc.secret, tc.at)
		w, _ := writerFor(tc.f, "tcp")
		if w.Verify(b, r); w.TsigStatus() != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, w.TsigStatus(), tc.want)
		}
	}
	w, _ := writerFor(&Finisher{Secrets: secrets}, "tcp")
	r := question(1232, false)
	if w.Verify(packed(t, r), r); w.TsigStatus() != nil {
		t.Errorf("unsigned: %v", w.TsigStatus())
	}
}

// A query with a MAC of one octet gets its reply, too: the library has no room for so short a one where it signs.
func TestShortMAC(t *testing.T) {
	secrets := map[string]string{tsigKey: tsigSecret}
	for _, mac := range []string{"", "ab", "abcd"} {
		for _, key := range []string{tsigKey, "other."} {
			r := question(1232, false)
			r.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
			r.IsTsig().MAC, r.IsTsig().MACSize = mac, uint16(len(mac)/2)
			w, out := writerFor(&Finisher{Secrets: secrets}, "tcp")
			if w.Verify(packed(t, r), r); w.TsigStatus() == nil {
				t.Errorf("MAC %q of %s: taken", mac, key)
			}
			m := answers(r, 1)
			m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
			m.IsTsig().Error = dns.RcodeBadSig
			if err := w.WriteMsg(m); err != nil || len(out.sent) != 1 {
				t.Errorf("MAC %q of %s: %v, %d replies", mac, key, err, len(out.sent))
			}
		}
	}
}

// A query that went through others has an id that it was not signed with; the packet has the one of the client
// afterwards.
func TestVerifyForwarded(t *testing.T) {
	r, b, mac := signed(t, tsigKey, tsigSecret, time.Now())
	signedID := r.Id
	r.Id++
	b[0], b[1] = byte(r.Id>>8), byte(r.Id)
	w, out := writerFor(&Finisher{Secrets: map[string]string{tsigKey: tsigSecret}}, "tcp")
	w.Verify(b, r)
	if w.TsigStatus() != nil || b[0] != byte(r.Id>>8) || b[1] != byte(r.Id) {
		t.Fatalf("status %v, id %x", w.TsigStatus(), b[:2])
	}
	m := answers(r, 1)
	m.SetTsig(tsigKey, dns.HmacSHA256, 300, time.Now().Unix())
	m.IsTsig().OrigId = signedID
	if err := w.WriteFit(m, r); err != nil {
		t.Fatal(err)
	}
	got := out.sent[0]
	if got[0] != byte(r.Id>>8) || got[1] != byte(r.Id) {
		t.Errorf("the reply has id %x, want %04x", got[:2], r.Id)
	}
	if err := dns.TsigVerify(got, tsigSecret, mac, false); err != nil {
		t.Errorf("the reply's signature: %v", err)
	}
}

// Several messages are signed one after the other, the further ones with timers only (RFC 8945 §5.3.1).
func TestSignedMessages(t *testing.T) {
	r, b, mac := signed(t, tsigKey, tsigSecret, time.Now())
	w, out := writerFor(&Finisher{Secrets: map[string]string{tsigKey: tsigSecret}}, "tcp")
	w.Verify(b, r)
	for i := range 3 {
		m := answers(r, 1+i)
		m.SetTsig(tsigKey, dns.HmacSHA256, 300, time.Now().Unix())
		if err := w.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
		w.TsigTimersOnly(true)
		got := new(dns.Msg)
		if err := got.Unpack(out.sent[i]); err != nil || len(got.Answer) != 1+i {
			t.Fatalf("%v, %v", got, err)
		}
		if err := dns.TsigVerify(out.sent[i], tsigSecret, mac, i > 0); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
		mac = got.IsTsig().MAC
	}
	m := answers(r, 1)
	m.SetTsig(tsigKey, "no algorithm.", 300, time.Now().Unix())
	if err := w.WriteMsg(m); err == nil || len(out.sent) != 3 {
		t.Errorf("an unknown algorithm: %v, sent %d", err, len(out.sent))
	}
}

// What another server has signed goes on as it came, where nobody looks at signatures and where the key is unknown: with its cookie and
// its size, and to clients without EDNS, too.
func TestSignedElsewhere(t *testing.T) {
	for name, f := range map[string]*Finisher{"nobody looks": {Cookies: ring}, "unknown": {Cookies: ring, Secrets: map[string]string{"other.": tsigSecret}}} {
		for _, size := range []uint16{0, 512, 4096} {
			r, b, mac := signed(t, tsigKey, tsigSecret, time.Now())
			if r.Extra = r.Extra[1:]; size > 0 {
				r.Extra = append(question(size, true, cookieOption(clientCookie)).Extra, r.Extra...)
			}
			m := answers(r, 40)
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{cookieOption(clientCookie + "0123456789abcdef")}
			m.Compress = true
			m.SetTsig(tsigKey, dns.HmacSHA256, 300, time.Now().Unix())
			sent, _, err := dns.TsigGenerate(m, tsigSecret, mac, false)
			if err != nil {
				t.Fatal(err)
			}
			got := new(dns.Msg)
			if err := got.Unpack(sent); err != nil {
				t.Fatal(err)
			}
			got.Compress = true
			w, out := writerFor(f, "udp")
			w.Verify(b, r)
			if err := w.WriteFit(got, r); err != nil || len(out.sent) != 1 {
				t.Errorf("%s, %d: %v, sent %d", name, size, err, len(out.sent))
			} else if err := dns.TsigVerify(out.sent[0], tsigSecret, mac, false); err != nil {
				t.Errorf("%s, %d: %v", name, size, err)
			}
		}
	}
}
