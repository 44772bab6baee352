package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// signedLab is a signed root with signed zones below it, signed by BIND's tools and served by two named: one for the
// root, one for the zones and theirs. Some zones have faults.
type signedLab struct {
	dir   string
	root  string // DS record of the root
	zones []*signedZone
}

// signedZone is a zone below the root. sub below it is not signed, sec is.
type signedZone struct {
	name, algorithm, denial, fault string
}

// What is varied, and how often each: zones go through all of these at their own pace.
var (
	algorithms  = []string{"13", "15", "8", "13", "14", "15", "10"}
	denialKinds = []string{"nsec", "nsec3", "opt-out", "nsec3 20"}
	zoneFaults  = []string{
		"", "", "expired", "", "future", "www unsigned", "www changed", "", "wrong DS", "not signed", "no denials", "DS digest 3", "DS algorithm 12", "",
		"one DS of two wrong", "keys unsigned", "60 iterations", "SOA changed", "wildcard changed",
	}
)

func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// key makes a key, and tells its file and its DS record.
func (l *signedLab) key(t *testing.T, zone, algorithm string) (file, ds string) {
	args := []string{"-q", "-a", algorithm, "-f", "KSK"}
	if algorithm == "8" || algorithm == "10" {
		args = append(args, "-b", "1024")
	}
	file = tool(t, l.dir, "dnssec-keygen", append(args, zone)...)
	return file, tool(t, l.dir, "dnssec-dsfromkey", "-2", file+".key")
}

// sign writes a signed zone file, and returns its text. The one key is made to sign all.
func (l *signedLab) sign(t *testing.T, zone, text, key string, args ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, key+".key"))
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(l.dir, "in")
	if err := os.WriteFile(in, []byte(text+string(b)), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-q", "-z", "-x", "-P", "-O", "full", "-o", zone, "-f", "out"}, args...)
	tool(t, l.dir, "dnssec-signzone", append(args, in, key)...)
	if b, err = os.ReadFile(filepath.Join(l.dir, "out")); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const zoneHead = "$TTL 300\n@ SOA ns h 1 3600 600 86400 300\n@ NS ns\nns A 127.9.1.1\n"

// buildSigned makes so many zones.
func buildSigned(t *testing.T, n int) *signedLab {
	t.Helper()
	l := &signedLab{dir: t.TempDir()}
	root, conf := "$TTL 300\n. SOA ns.z0. h.z0. 1 3600 600 86400 300\n. NS a.root.\na.root. A 127.9.0.1\n", ""
	for i := range n {
		z := &signedZone{fmt.Sprintf("z%d.", i), algorithms[i%len(algorithms)], denialKinds[i%len(denialKinds)], zoneFaults[i%len(zoneFaults)]}
		l.zones = append(l.zones, z)
		delegation, files := l.zone(t, z, fmt.Sprintf("z%d.", (i+1)%n))
		root += delegation
		conf += files
	}
	key, ds := l.key(t, ".", "13")
	l.root = ds
	l.write(t, "root", l.sign(t, ".", root, key))
	l.write(t, "named0.conf", fmt.Sprintf(authorityConf, "127.9.0.1", l.dir)+`zone "." { type primary; file "root"; };`+"\n")
	l.write(t, "named1.conf", fmt.Sprintf(authorityConf, "127.9.1.1", l.dir)+conf)
	l.write(t, "hints", ". 86400 IN NS a.root.\na.root. 86400 IN A 127.9.0.1\n")
	return l
}

const authorityConf = `options {
 listen-on port 53 { %s; };
 listen-on-v6 { none; };
 directory %q;
 pid-file none;
 session-keyfile none;
 recursion no;
 dnssec-validation no;
 minimal-responses yes;
 check-integrity no;
};
controls { };
`

func (l *signedLab) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// zone makes a zone and those below it. It returns what stands in the root, and in the configuration of the server.
func (l *signedLab) zone(t *testing.T, z *signedZone, next string) (delegation, conf string) {
	secKey, secDS := l.key(t, "sec."+z.name, "13")
	l.write(t, "sec."+z.name, l.sign(t, "sec."+z.name, zoneHead+"www A 192.0.2.2\n", secKey))
	l.write(t, "sub."+z.name, zoneHead+"www A 192.0.2.3\nback CNAME www."+z.name+"\n")
	text := zoneHead + "www A 192.0.2.1\nwww TXT text\nwww TYPE65280 \\# 1 00\na.b.c A 192.0.2.1\n*.wild A 192.0.2.4\n*.cn CNAME www\nalias CNAME www\n" +
		"hop CNAME alias\ninsec CNAME www.sub\ndeep CNAME www.sec\nnowhere CNAME nothing\ndn DNAME c\n" +
		"far CNAME www." + next + "\nfarther CNAME far." + next + "\n" +
		"sub NS ns.sub\nns.sub A 127.9.1.1\nsec NS ns.sec\nns.sec A 127.9.1.1\nent.sub2 NS ns.sub\n" + secDS + "\n"
	key, ds := l.key(t, z.name, z.algorithm)
	var args []string
	iterations := "0"
	if z.fault == "60 iterations" {
		z.denial, iterations = "nsec3", "60"
	}
	switch z.denial {
	case "nsec3":
		args = []string{"-3", "-", "-H", iterations}
	case "nsec3 20":
		args = []string{"-3", "AABBCCDD", "-H", "20"}
	case "opt-out":
		args = []string{"-3", "-", "-H", "0", "-A"}
	}
	switch z.fault {
	case "expired":
		args = append(args, "-s", "20200101000000", "-e", "20200201000000")
	case "future":
		args = append(args, "-s", "20400101000000", "-e", "20400201000000")
	}
	signed := l.spoil(z, l.sign(t, z.name, text, key, args...))
	if z.fault == "not signed" {
		signed = text
	}
	l.write(t, "zone."+z.name, signed)
	for file, name := range map[string]string{"zone.": "", "sec.": "sec.", "sub.": "sub."} {
		conf += fmt.Sprintf("zone %q { type primary; file %q; };\n", name+z.name, file+z.name)
	}
	return fmt.Sprintf("%s NS ns.%s\nns.%s A 127.9.1.1\n%s\n", z.name, z.name, z.name, l.spoilDS(z, ds)), conf
}

// spoil puts the fault into a signed zone's text.
func (l *signedLab) spoil(z *signedZone, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 {
			b.WriteString(line)
			continue
		}
		sig := f[3] == "RRSIG"
		switch {
		case z.fault == "www unsigned" && f[0] == "www."+z.name && sig && f[4] == "A",
			z.fault == "keys unsigned" && sig && f[4] == "DNSKEY",
			z.fault == "no denials" && (strings.HasPrefix(f[3], "NSEC") && f[3] != "NSEC3PARAM" || sig && strings.HasPrefix(f[4], "NSEC")):
			continue
		case z.fault == "www changed" && f[0] == "www."+z.name && f[3] == "A":
			line = strings.Replace(line, "192.0.2.1", "192.0.2.9", 1)
		case z.fault == "wildcard changed" && f[0] == "*.wild."+z.name && f[3] == "A":
			line = strings.Replace(line, "192.0.2.4", "192.0.2.9", 1)
		case z.fault == "SOA changed" && f[3] == "SOA":
			line = strings.Replace(line, "86400", "86401", 1)
		}
		b.WriteString(line)
	}
	return b.String()
}

// spoilDS is the DS records that the root has for a zone.
func (l *signedLab) spoilDS(z *signedZone, text string) string {
	rr, err := dns.NewRR(text)
	if err != nil {
		return text
	}
	ds := rr.(*dns.DS)
	flip := map[byte]string{'0': "1"}[ds.Digest[0]]
	if flip == "" {
		flip = "0"
	}
	switch z.fault {
	case "wrong DS":
		ds.Digest = flip + ds.Digest[1:]
	case "one DS of two wrong":
		bad := *ds
		bad.Digest = flip + bad.Digest[1:]
		return ds.String() + "\n" + bad.String()
	case "DS digest 3":
		ds.DigestType = 3
	case "DS algorithm 12":
		ds.Algorithm = 12
	}
	return ds.String()
}
