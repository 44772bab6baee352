package route53

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/miekg/dns"
)

// aliasDepth is how many aliases may lead to one another.
const aliasDepth = 8

// setKey is a record set's name, in lower case, and type.
type setKey struct {
	name string
	typ  types.RRType
}

func keyOf(text string, typ types.RRType) setKey { return setKey{folded(name(text)), typ} }

// folded is a name in the one form of all that are the same.
func folded(name string) string {
	lower, err := wire.LowerName(name)
	if err != nil {
		return strings.ToLower(name)
	}
	return wire.Text(lower)
}

// listing is what has come of a zone's record sets. Those are large as the API has them: of a page only the records stay, and
// the aliases, which may lead to names of later pages.
type listing struct {
	id      string // the zone's
	warn    mirror.Warn
	records []dns.RR
	aliases []types.ResourceRecordSet
}

// add takes a page of record sets in. Sets for some clients only (weighted, by place, and the like) come together.
func (l *listing) add(sets []types.ResourceRecordSet) {
	for _, s := range sets {
		if s.AliasTarget != nil {
			l.aliases = append(l.aliases, s)
			continue
		}
		l.records = append(l.records, recordsOf(name(aws.ToString(s.Name)), s, l.warn)...)
	}
}

// all is the records of the zone. Aliases of the API to names in the zone have the records of these; others are aliases that mirror
// follows.
func (l *listing) all() []dns.RR {
	if len(l.aliases) == 0 {
		return l.records
	}
	t := targets{id: strings.TrimPrefix(l.id, "/hostedzone/"), warn: l.warn, aliases: map[setKey][]types.ResourceRecordSet{}, records: map[setKey][]dns.RR{}}
	for _, s := range l.aliases {
		k := keyOf(aws.ToString(s.Name), s.Type)
		t.aliases[k] = append(t.aliases[k], s)
		if to, ok := t.inside(s); ok {
			t.records[to] = nil
		}
	}
	for _, rr := range l.records {
		k := setKey{folded(rr.Header().Name), types.RRType(dns.TypeToString[rr.Header().Rrtype])}
		if of, ok := t.records[k]; ok {
			t.records[k] = append(of, rr)
		}
	}
	all := l.records
	for _, s := range l.aliases {
		all = t.follow(all, name(aws.ToString(s.Name)), s, nil, map[setKey]bool{})
	}
	return all
}

// targets is what aliases may lead to: other aliases, and records.
type targets struct {
	id      string
	warn    mirror.Warn
	aliases map[setKey][]types.ResourceRecordSet
	records map[setKey][]dns.RR
}

// inside is what an alias leads to, if that is in the zone.
func (t *targets) inside(s types.ResourceRecordSet) (to setKey, ok bool) {
	if aws.ToString(s.AliasTarget.HostedZoneId) != t.id {
		return to, false
	}
	return keyOf(aws.ToString(s.AliasTarget.DNSName), s.Type), true
}

// follow appends the records to all that owner has by an alias. via is the targets of the aliases that led to it: who comes to
// one again goes in a circle. met is all of them: where many sets of one name lead to many of another one, and those further on,
// there are more ways than can be gone.
func (t *targets) follow(all []dns.RR, owner string, s types.ResourceRecordSet, via []setKey, met map[setKey]bool) []dns.RR {
	to, ok := t.inside(s)
	switch {
	case !ok:
		return append(all, recordsOf(owner, s, t.warn)...)
	case len(via) == aliasDepth || slices.Contains(via, to):
		t.warn("Alias %s leads to too many others", aws.ToString(s.Name))
		return all
	case met[to]:
		return all
	}
	met[to] = true
	for _, rr := range t.records[to] {
		rr = dns.Copy(rr)
		rr.Header().Name = owner
		all = append(all, rr)
	}
	via = append(via[:len(via):len(via)], to)
	for _, next := range t.aliases[to] {
		all = t.follow(all, owner, next, via, met)
	}
	return all
}

// recordsOf is the records of one set, at owner. Values that are none are left out, with a warning.
func recordsOf(owner string, s types.ResourceRecordSet, warn mirror.Warn) (all []dns.RR) {
	if s.AliasTarget != nil {
		rr, err := mirror.Alias(owner, dns.StringToType[string(s.Type)], name(aws.ToString(s.AliasTarget.DNSName)))
		if err != nil {
			warn("Failed to process resource record set: %s: %v", owner, err)
			return nil
		}
		return []dns.RR{rr}
	}
	for _, v := range s.ResourceRecords {
		text := fmt.Sprintf("%s %d IN %s %s", owner, aws.ToInt64(s.TTL), s.Type, value(s.Type, aws.ToString(v.Value)))
		rr, err := zonefile.Line(text)
		if err != nil || rr == nil {
			warn("Failed to process resource record set: %s: %v", text, err)
			continue
		}
		all = append(all, rr)
	}
	return all
}

// name is a name as the API writes it, with octets in octal digits (\052), as master files have it, with decimal ones.
func name(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+3 >= len(text) || !octal(text[i+1:i+4]) {
			b.WriteByte(c)
			continue
		}
		v := octet(text[i+1 : i+4])
		i += 3
		if v == '*' || v == '-' || v == '_' || '0' <= v && v <= '9' || 'a' <= v && v <= 'z' || 'A' <= v && v <= 'Z' {
			b.WriteByte(v)
			continue
		}
		fmt.Fprintf(&b, "\\%03d", v)
	}
	return dns.Fqdn(b.String())
}

// value is a value as the API writes it, as master files have it. Octets in texts are in octal digits; a backslash before
// anything else is as there.
func value(typ types.RRType, text string) string {
	if typ != types.RRTypeTxt && typ != types.RRTypeSpf {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if i+3 < len(text) && octal(text[i+1:i+4]) {
			fmt.Fprintf(&b, "\\%03d", octet(text[i+1:i+4]))
			i += 3
			continue
		}
		b.WriteString(text[i : i+2])
		i++
	}
	return b.String()
}

func octet(digits string) byte { return (digits[0]-'0')<<6 | (digits[1]-'0')<<3 | (digits[2] - '0') }

func octal(digits string) bool {
	return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= '7' && digits[2] >= '0' && digits[2] <= '7'
}
