package route53

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/file/mirror"
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

// records makes records of record sets. Sets for some clients only (weighted, by place, and the like) come together. Aliases of the API
// to names in the zone, whose id is given, have the records of these; others are aliases that mirror follows.
func records(sets []types.ResourceRecordSet, id string, warn mirror.Warn) (all []dns.RR) {
	byKey := map[setKey][]types.ResourceRecordSet{}
	for _, s := range sets {
		k := keyOf(aws.ToString(s.Name), s.Type)
		byKey[k] = append(byKey[k], s)
	}
	for _, s := range sets {
		owner := name(aws.ToString(s.Name))
		for _, target := range resolved(byKey, s, id, nil, warn) {
			all = append(all, recordsOf(owner, target, warn)...)
		}
	}
	return all
}

func keyOf(text string, typ types.RRType) setKey { return setKey{strings.ToLower(name(text)), typ} }

// resolved is the sets with records, or with an alias that leads out of the zone, that s is, or stands for. via is the targets of
// the aliases that led to s: who comes to one again goes in a circle, of which there are many ways where sets are many.
func resolved(byKey map[setKey][]types.ResourceRecordSet, s types.ResourceRecordSet, id string, via []setKey, warn mirror.Warn) (all []types.ResourceRecordSet) {
	alias := s.AliasTarget
	if alias == nil {
		return []types.ResourceRecordSet{s}
	}
	if aws.ToString(alias.HostedZoneId) != strings.TrimPrefix(id, "/hostedzone/") {
		return []types.ResourceRecordSet{s}
	}
	to := keyOf(aws.ToString(alias.DNSName), s.Type)
	if len(via) == aliasDepth || slices.Contains(via, to) {
		warn("Alias %s leads to too many others", aws.ToString(s.Name))
		return nil
	}
	via = append(via[:len(via):len(via)], to)
	for _, target := range byKey[to] {
		all = append(all, resolved(byKey, target, id, via, warn)...)
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
