package zonefile

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// TestMisread: records that github.com/miekg/dns refuses or misreads, and RFCs allow; BIND 9.18 reads the same data.
func TestMisread(t *testing.T) {
	key := "mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ=="
	for text, want := range map[string]string{
		// RFC 1876 §3: minutes without seconds, and seconds with thousandths.
		"LOC 42 21 N 71 06 W 10m 20m 30m 40m": "00233343 89165ae0 70be5c40 00989a68", "LOC 42 21 54 N 71 06 W 10m": "00121613 89172dd0 70be5c40 00989a68",
		"LOC 42 n 71 06 18 w 10m": "00121613 89032100 70be15f0 00989a68", "LOC 1 1 1.001 N 2 2 2.02 E 1m": "00121613 8037dcc9 806fb9a4 009896e4",
		"LOC 1 1 59.999 N 2 2 2. E 1m": "00121613 8038c33f 806fb990 009896e4", "LOC 1 59 N 2 59 E 1m 2m": "00221613 806cf2a0 80a3e120 009896e4",
		// RFC 8777 §4.3.1: the bit for optional discovery.
		"AMTRELAY 10 0 1 203.0.113.15": "0a01 cb00710f", "AMTRELAY 10 1 1 203.0.113.15": "0a81 cb00710f", "AMTRELAY 10 1 2 2001:db8::15": "0a82 20010db8000000000000000000000015",
		"AMTRELAY 10 1 3 relay": "0a83 0572656c6179076578616d706c65036f726700", "AMTRELAY 10 1 0 .": "0a80", `AMTRELAY \# 6 0a81cb00710f`: "0a81 cb00710f",
		`AMTRELAY \# 19 0a830572656c6179076578616d706c65036f7267 00`: "", `AMTRELAY \# 5 0a81cb0071`: "", `AMTRELAY \# 3 0a8305`: "", `AMTRELAY \# 1 0a`: "", `AMTRELAY \# 0`: "",
		"AMTRELAY 10 2 0 .": "", "AMTRELAY 10 0 4 .": "", "AMTRELAY 256 0 0 .": "", "AMTRELAY 10 0 0 a": "", "AMTRELAY 10 1 1 2001:db8::15": "", "AMTRELAY 10 1 2 192.0.2.1": "",
		"AMTRELAY 10 1 3 a..b": "", "AMTRELAY 10 1 3": "", "AMTRELAY 10 1 0 . .": "",
		// RFC 4034 §2.2: algorithms by their names.
		"DNSKEY 257 3 ECDSAP256SHA256 " + key: "0101030d 99db2cc14cabdc33d6d77da63a2f15f71112584f234e8d1dc428e39e8a4a97e1aa271a555dc90701e17e2a4c4b6f120b7c32d44f4ac02bd894cf2d4be7778a19",
		"CDNSKEY 257 3 rsasha256 AwEAAQ==":    "01010308 03010001", "DNSKEY 257 3 8 AwEAAQ==": "01010308 03010001", "DNSKEY 257 3 256 AwEAAQ==": "", "DNSKEY 257 3 SHA AwEAAQ==": "",
		"DS 1 ed25519 2 aa": "00010f02 aa", "CDS 0 0 0 00": "00000000 00", "RRSIG A ed25519 3 300 20300101000000 20200101000000 12345 . AAAA": "00010f03 0000012c 70dbd880 5e0be100 3039 00 000000",
		// RFC 2535 §5.2: one bitmap.
		`NXT \# 5 0162004001`: "01620040 01", `NXT \# 3 016200`: "016200", `NXT \# 2 0162`: "",
		"NXT b A MX SIG NXT": "0162076578616d706c65036f726700 40010082", "NXT b. TYPE127": "016200 00000000000000000000000000000001", "NXT b.": "016200",
		"NXT b. TYPE128": "", "NXT b. FOO": "", "NXT": "", "NXT b..c A": "",
		// Types that it has no name for: RFC 9859 §2.2, RFC 9886; others in the form for all types.
		"DSYNC CDS NOTIFY 5300 Scan": "003b0114b4 045363616e076578616d706c65036f726700", "dsync TYPE62 2 53 a.": "003e020035 016100",
		"DSYNC 59 1 53 .": "003b01003500", "DSYNC 65536 1 53 .": "", "DSYNC FOO 1 53 .": "", "DSYNC CDS NOTIFY 5300": "", "DSYNC NONE NOTIFY 5300 a": "", "DSYNC CDS UPDATE 5300 a": "", "HHIT AQ ID": "010203", "BRID AQID": "010203", "HHIT": "", "HHIT A": "",
		`WALLET BTC "a b"`: "03425443 03612062", `CLA TCP-v4-v6`: "095443502d76342d7636", "WALLET": "", `NSAP \# 2 4700`: "4700", "NSAP 0x4700": "", `A6 \# 1 80`: "80",
		"NSEC b A RRSIG NSEC DSYNC": "0162076578616d706c65036f726700 0009 400000000003000020", "NSEC b A RRSIG NSEC TYPE66": "0162076578616d706c65036f726700 0009 400000000003000020",
		// RFC 1183 §3.1, §3.2: strings, the second of which may be missing.
		`X25 "311061700956"`: "0c333131303631373030393536", "X25 311061700956": "0c333131303631373030393536", "X25": "",
		// RFC 1712 §3.
		`GPOS "-32.6882" "116.8652" "10.0"`: "082d33322e36383832083131362e383635320431302e30", `GPOS "" 1 2`: "", `GPOS x 1 2`: "",
		`ISDN "15086"`: "053135303836", "ISDN 15086 4": "053135303836 0134", "ISDN": "", `ISDN \# 6 053135303836`: "053135303836",
		// RFC 3597 §5: no data, in the form for all types.
		`APL \# 0`: "", `NULL \# 0`: "", `TYPE65280 \# 0`: "", `A \# 0`: "none", `TXT \# 0`: "none", `MX \# 0`: "none", `SVCB \# 0`: "none", `CAA \# 0`: "none",
	} {
		r, err := New(strings.NewReader("a 5 "+text+"\n"), "db", wire.MustName("example.org")).Next()
		empty := strings.HasSuffix(text, `\# 0`) && !strings.HasPrefix(text, "AMT")
		switch {
		case want == "none" || want == "" && !empty:
			if err == nil || err == io.EOF {
				t.Errorf("%s is taken: %x", text, r.RData)
			}
		case err != nil || fmt.Sprintf("%x", r.RData) != strings.ReplaceAll(want, " ", ""):
			t.Errorf("%s: %v %v, want %s", text, r, err, want)
		}
	}
}
