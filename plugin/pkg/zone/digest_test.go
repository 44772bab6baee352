package zone

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
)

// simple is the zone of RFC 8976 appendix A.1.
const simple = `@ 86400 SOA ns1 admin 2018031900 1800 900 604800 86400
@ 86400 NS ns1
@ 86400 NS ns2
ns1 3600 A 203.0.113.63
ns2 3600 AAAA 2001:db8::63
`

const (
	simple384 = "c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9a9713b3c9ae5cc27777f98b8e730044c"
	simple512 = "500d47a50c572d7f9501a01a5fa1fc2b64b1e9a58198784a6d9b0ab95fbba8a1dc9c7836c9ac4960a5625a7a67e3abe963a4d870cb97e3e67fb0a130463b33f1"
)

func TestDigest(t *testing.T) {
	z := build(t, "example.", simple)
	for algorithm, want := range map[uint8]string{DigestSHA384: simple384, DigestSHA512: simple512} {
		if sum, err := z.Digest(DigestSimple, algorithm); err != nil || hex.EncodeToString(sum) != want {
			t.Errorf("algorithm %d: %x %v", algorithm, sum, err)
		}
	}
	if _, err := z.Digest(2, 1); err == nil {
		t.Error("scheme 2")
	}
	if _, err := z.Digest(1, 3); err == nil {
		t.Error("algorithm 3")
	}
}

func TestVerifyDigest(t *testing.T) {
	zonemd := func(s string) string { return simple + "@ 86400 ZONEMD " + s + "\n" }
	for _, tc := range []struct {
		what, text string
		want       error
	}{
		{"none", simple, ErrNoDigest},
		{"right", zonemd("2018031900 1 1 " + simple384), nil},
		{"right with the other algorithm", zonemd("2018031900 1 2 " + simple512), nil},
		{"both right", zonemd("2018031900 1 1 "+simple384) + "@ 86400 ZONEMD 2018031900 1 2 " + simple512 + "\n", nil},
		{"one wrong, one right", zonemd("2018031900 1 1 "+strings.Replace(simple384, "c", "d", 1)) + "@ 86400 ZONEMD 2018031900 1 2 " + simple512 + "\n", nil},
		{"wrong", zonemd("2018031900 1 1 " + strings.Replace(simple384, "c", "d", 1)), ErrDigestMismatch},
		{"another zone", strings.Replace(zonemd("2018031900 1 1 "+simple384), "203.0.113.63", "203.0.113.64", 1), ErrDigestMismatch},
		{"another TTL", strings.Replace(zonemd("2018031900 1 1 "+simple384), "3600", "3601", 1), ErrDigestMismatch},
		{"serial", zonemd("2018031901 1 1 " + simple384), ErrDigestSerial},
		{"scheme", zonemd("2018031900 240 1 " + simple384), ErrUnknownDigest},
		{"algorithm", zonemd("2018031900 1 240 " + simple384), ErrUnknownDigest},
		{"twice the same algorithm", zonemd("2018031900 1 1 "+simple384) + "@ 86400 ZONEMD 2018031900 1 1 " + strings.Replace(simple384, "c", "d", 1) + "\n", ErrUnknownDigest},
		{"mixed case", strings.Replace(zonemd("2018031900 1 1 "+simple384), "ns1", "NS1", -1), nil},
		{"a record twice", zonemd("2018031900 1 1 "+simple384) + "ns1 3600 A 203.0.113.63\n", nil},
	} {
		if err := build(t, "example.", tc.text).VerifyDigest(); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.what, err, tc.want)
		}
	}
}

// TestSignedDigest: signatures, NSEC records, names in all kinds of RDATA, as another program digests them.
func TestSignedDigest(t *testing.T) {
	text, err := os.ReadFile("testdata/digest.zone")
	if err != nil {
		t.Fatal(err)
	}
	if err := build(t, "example.", string(text)).VerifyDigest(); err != nil {
		t.Error(err)
	}
	for _, sum := range []string{"c186dc1a8fe94156", "223f6cd3cb9cc79e"} { // each on its own
		var left []string
		for l := range strings.Lines(string(text)) {
			if !strings.HasPrefix(l, "example.\t86400\tIN\tZONEMD") || strings.Contains(l, sum) {
				left = append(left, l)
			}
		}
		if err := build(t, "example.", strings.Join(left, "")).VerifyDigest(); err != nil {
			t.Errorf("%s: %v", sum, err)
		}
	}
	if err := build(t, "example.", strings.Replace(string(text), "Web.Example.", "web.example.", 1)).VerifyDigest(); !errors.Is(err, ErrDigestMismatch) {
		t.Errorf("an HTTPS target in another case: %v", err)
	}
	if err := build(t, "example.", strings.Replace(string(text), "Srv.Target", "srv.target", 1)).VerifyDigest(); err != nil {
		t.Errorf("an SRV target in another case: %v", err)
	}
}
