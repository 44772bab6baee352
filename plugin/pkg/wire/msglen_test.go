package wire

import (
	"testing"

	"github.com/miekg/dns"
)

// Whichever lane a reply takes, it is equally long for those who log and count it.
func TestMsgLen(t *testing.T) {
	for _, text := range []string{
		"A 192.0.2.1", "AAAA 2001:db8::1", "NS ns.example.org.", "SOA ns.example.org. h.example.org. 1 2 3 4 5", "MX 1 mx\\.a.example.org.", "SRV 1 2 3 t\\200.example.org.",
		`TXT "a\200\"b\\c" "\000\001"`, `TXT "plain"`, `HINFO "a\200" "b"`, `NAPTR 1 1 "u" "E2U+sip" "!^.*$!sip:a@b\\!" .`, "APL 1:192.168.32.0/21 !1:192.168.38.0/28 2:2001:db8::/32",
		"CERT PGP 1 1 AQIDBAUGBw==", "CAA 0 issue \"ca.example\\;x=1\"", `HTTPS 1 . alpn="h2,h3" ipv4hint=192.0.2.1 key65333="a\200b"`, "NSEC host.example.org. A MX RRSIG NSEC TYPE1234", "NSEC host.example.org.",
		"NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr A RRSIG", "DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118", `TYPE65400 \# 5 0102030405`,
		"RRSIG A 13 2 60 20300101000000 20200101000000 1 example.org. AQIDBA==", "DNSKEY 257 3 13 AQIDBA==", "SSHFP 2 1 123456789abcdef67890123456789abcdef67890",
		"IPSECKEY 10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==", `URI 10 1 "ftp://a/\200"`, "OPENPGPKEY AQIDBAUGBwg=", "NID 10 0014:4fff:ff20:ee64",
	} {
		rr, err := dns.NewRR("www.ex\\.ample.org. 60 IN " + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		m := new(dns.Msg).SetQuestion("www.ex\\.ample.org.", rr.Header().Rrtype)
		m.Answer = []dns.RR{rr, rr}
		var w Reply
		w.Reset(nil)
		if err := w.SetMsg(m); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, want := MsgLen(m), w.PlainLen(); got != want {
			t.Errorf("%s: %d octets, want %d; Len has %d", text, got, want, m.Len())
		}
		m.SetEdns0(1232, true)
		if got, want := MsgLen(m), w.PlainLen()+11; got != want {
			t.Errorf("%s with EDNS: %d octets, want %d", text, got, want)
		}
	}
}

// A plugin may answer many queries at one time with one record, so records are only read.
func TestRecordsAreOnlyRead(t *testing.T) {
	rr, err := dns.NewRR("www.example.org. 60 IN TXT a b")
	if err != nil {
		t.Fatal(err)
	}
	const mark = 12345
	rr.Header().Rdlength = mark // which dns.PackRR would set
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeTXT)
	m.Answer = []dns.RR{rr}
	var w Reply
	w.Reset(nil)
	if err := w.SetMsg(m); err != nil || w.Count(Answer) != 1 {
		t.Fatal(err)
	}
	if n := MsgLen(m); n != w.PlainLen() {
		t.Errorf("%d octets, want %d", n, w.PlainLen())
	}
	if b, err := AppendRR([]byte("before"), rr); err != nil || string(b[:6]) != "before" || string(b[len(b)-4:]) != "\x01a\x01b" {
		t.Errorf("got %q, %v", b, err)
	}
	if n := rr.Header().Rdlength; n != mark {
		t.Errorf("the length of the data is %d", n)
	}
}
